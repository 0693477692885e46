"""A session whose calls are held, as a fork's are past its served part: what each becomes is known when it is asked.

    with holding(run, decide) as session: ...

`decide(call)` says what becomes of a call: None (it runs live), an exception (raised from `ready`), or the pieces
that it is answered with. Recorded like any session, so it can be replayed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from lockstep.log.model import Status
from lockstep.session import lanes, session
from lockstep.session.call import Piece
from lockstep.session.effects import LiveCall
from lockstep.session.lanes import INSIDE
from lockstep.session.recording import Recording
from lockstep.session.session import finish, start_recording

type Decide = Callable[[Any], BaseException | list[Any] | None]


class Refused(BaseException):
    """What a fork raises where it may not go live."""


class Held:
    """A call of such a session."""

    held = True
    nested = False

    def __init__(self, session: Any, inner: LiveCall, decide: Decide) -> None:
        self.live = False
        self.session = session
        self.recorded = None
        self._inner = inner
        self._decide = decide
        self._pieces: list[Any] = []

    def ask(self, name: str, request: Any, key: Any, *more: Any, **named: Any) -> None:
        assert not self._inner.pos, "asked twice"
        self._inner.ask(name, request, key, *more, **named)
        self.request = request

    def ready(self) -> None:
        assert self._inner.pos, "not asked yet"
        verdict = self._decide(self)
        if isinstance(verdict, BaseException):
            self._inner.end(Status.CLOSED)
            raise verdict
        if verdict is None:
            self.live = True
        else:
            self._pieces = verdict

    async def aready(self) -> None:
        loop = asyncio.get_running_loop()
        answer = loop.create_future()
        token = INSIDE.set(self._inner)
        try:
            self.session.waiting(loop, answer)
            await answer
        except BaseException:
            self._inner.end(Status.CLOSED)
            raise
        finally:
            lanes.leave(token)
        self._inner.resumed()
        self.ready()

    def inside(self) -> Any:
        assert self.live, "the client runs before the call is known to be live"
        return self._inner.inside()

    def take(self) -> Piece:
        piece = self._pieces.pop(0) if self._pieces else Piece(None, Status.OK)
        if not isinstance(piece, Piece):
            piece = Piece(piece)
        if piece.status is None:
            self._inner.part(piece.value)
        else:
            self._inner.end(piece.status, piece.value)
        return piece

    async def atake(self) -> Piece:
        return self.take()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class Holding(Recording):
    """Such a session."""

    holds = True
    decide: Decide = staticmethod(lambda call: None)
    waiting: Callable[[Any, Any], None]

    def open(self, kind: str) -> Any:
        call = super().open(kind)
        return Held(self, call, self.decide) if lanes.inside() is None else call


def at_once(loop: Any, answer: Any) -> None:
    """The served part is over a few callbacks later."""

    def resume() -> None:
        if not answer.done():
            answer.set_result(None)

    loop.call_soon(loop.call_soon, resume)


@contextmanager
def holding(
    run: str,
    decide: Decide = lambda call: None,
    store: str | None = None,
    waiting: Callable[[Any, Any], None] = at_once,
    exit: int | None = 0,
) -> Iterator[Any]:
    """`report` of the session tells how it went."""
    real = session.Recording
    session.Recording = Holding  # type: ignore[misc]
    try:
        held: Any = start_recording(store, run, {})
    finally:
        session.Recording = real  # type: ignore[misc]
    held.decide, held.waiting = decide, waiting
    error: BaseException | None = None
    try:
        yield held
    except BaseException as raised:
        error = raised
        raise
    finally:
        held.report = finish(held, None if error else exit, error)
