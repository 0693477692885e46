"""One native invocation while it is on, as its journal has it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lockstep.log.model import RunState

if TYPE_CHECKING:
    from lockstep.session.native.journal import Journal


class Turn:
    """One native invocation while it is on.

    pos   of its BEGIN: negative until that is stored, and as good for `of`
    seed  what its ids and draws come from, for the framework's adapter
    held  whether no other turn was on in this branch, in any process, when it began
    """

    def __init__(self, journal: Journal, pos: int, seed: bytes, lock: Any) -> None:
        self.journal = journal
        self.seed = seed
        self.held = lock is not None
        self._pos = pos
        self._lock = lock
        self._ended = False

    @property
    def pos(self) -> int:
        return self.journal.place(self._pos)

    def end(self, status: str, value: Any = None, state: RunState | None = None) -> None:
        """It is over: "ok" with what it returned, as inert data; "error" with the exception; "closed" where its
        stream was read no further; "cancelled". Durable when it returns, as far as the store can be written; what
        goes wrong is in the journal's `faults`. `state`: that of the branch from now on, where it is not complete or
        failed."""
        if self._ended:
            return
        self._ended = True
        try:
            self.journal.end_turn(self._pos, status, value, state)
        finally:
            if self._lock is not None:
                self._lock.release()

    def leave(self) -> None:
        """It was cut off, and goes on nowhere: without an end, so that it reads as interrupted. All that it told is
        stored."""
        if self._ended:
            return
        self._ended = True
        try:
            self.journal.store_told()
        finally:
            if self._lock is not None:
                self._lock.release()
