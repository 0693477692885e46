"""Runs a kickoff in a replay or fork, and leaves it where that stops.

Each is run in a thread of its own, whatever loop it has, since nothing takes down a crew that waits: where nobody gets
on any more, its thread is left to itself, a daemon that every call stops.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from lockstep.errors import Stop
from lockstep.log import untapped
from lockstep.session.native.endings import Ended

if TYPE_CHECKING:
    from lockstep.session.native.guard import Watched
    from lockstep.session.native.latch import Latch

_LOOK = 0.05  # seconds between two looks at whether anybody gets on
LEAVES = 2.0  # seconds that a crew which was stopped is given to end

driven: ContextVar[Drive | None] = ContextVar("lockstep_crewai_driven", default=None)


class Drive:
    """One replay's or fork's kickoffs."""

    def __init__(
        self, latch: Latch, moved: Callable[[], Any], stuck: Callable[[], None], deadline: float,
        watched: Watched | None = None,
    ) -> None:  # fmt: skip
        """`moved`: gives something else whenever anybody gets on, None where nobody has to. `stuck` is told when that
        has been the same for `deadline` seconds, and latches why. `watched`: who is told what the program's own code
        reaches by itself, None once it may reach what it likes."""
        self.watched = watched
        self.deadline = deadline
        self._latch = latch
        self._moved = moved
        self._stuck = stuck

    def run(self, begin: Callable[[], Any]) -> Ended:
        """Runs it, until it ends or is stuck. A program that hides what stopped it has been stopped all the same."""
        if self._latch.stopped:
            return Ended(stopped=True)
        found: list[Ended] = []
        context = contextvars.copy_context()
        context.run(driven.set, self)
        thread = threading.Thread(target=context.run, args=(_begun, begin, found), name="lockstep-kickoff", daemon=True)
        thread.start()
        self._watch(thread)
        if self._latch.stopped or not found:
            return Ended(stopped=True)
        return found[0]

    def _watch(self, thread: threading.Thread) -> None:
        """Returns once it has ended, is stuck, or has not ended though it was stopped."""
        seen, since = self._moved(), untapped.monotonic()
        while thread.is_alive():
            thread.join(_LOOK)
            moved, now = self._moved(), untapped.monotonic()
            if moved is None or moved != seen:
                seen, since = moved, now
            elif now - since > (LEAVES if self._latch.stopped else self.deadline):
                if not self._latch.stopped:
                    self._stuck()
                return


def _begun(begin: Callable[[], Any], found: list[Ended]) -> None:
    try:
        ended = Ended(begin())
    except Stop:
        ended = Ended(stopped=True)
    except BaseException as error:  # what it was recorded to raise, maybe
        ended = Ended(error=error)
    found.append(ended)


def watched() -> Watched | None:
    """See `lockstep.session.native.guard.watch`."""
    drive = driven.get()
    return drive.watched if drive is not None else None
