"""The calls of an agent: who answers one, and whose code makes it.

With a session on, it does. Else the turn does that the running code is part of, in the lane of its strand.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import suppress
from contextvars import Token
from typing import Any
from uuid import UUID

from lockstep.errors import Code, LockstepError
from lockstep.log.model import Status, Value
from lockstep.session import current as sessions
from lockstep.session import exceptions, sites, snapshot
from lockstep.session.asides import aside, is_aside, told
from lockstep.session.call import Call, Piece
from lockstep.session.lanes import ours
from lockstep_ag2 import events, strands
from lockstep_ag2.strands import within

EVENT, ENQUEUED = "event", "enqueued"
_UNTOLD = frozenset({"HumanInputRequest", "ToolApprovalRequest", "MessageEnqueued"})  # what is sent again by itself

sites.pass_over(os.path.dirname(__file__))


def opened(kind: str) -> Call | None:
    """Begins a call of the running code; None where nobody answers it. Raises Divergence and the like."""
    strand = strands.running()
    if strand is None or strand.turn.calls is None:
        session = sessions.session
        return session.open(kind) if session is not None else None
    try:
        return strand.turn.calls.call(strands.lane(), kind, within.get())
    except Exception as error:
        strand.turn.fault(f"a {kind} call", error)
        return None


def fault(where: str, error: BaseException) -> None:
    """Something of ours went wrong beside what runs for real: the program is not to notice."""
    strand, session = strands.running(), sessions.session
    if strand is not None:
        strand.turn.fault(where, error)
    elif session is not None:
        session.fault(where, error)


class Running:
    """What runs in this block belongs to the call, and what is sent on the stream meanwhile is told of it."""

    __slots__ = ("_call", "_inside", "_stream", "_telling", "_within")

    def __init__(self, call: Call, stream: UUID) -> None:
        self._call = call
        self._stream = stream
        self._inside: Any = None
        self._within: Token[Any] | None = None
        self._telling: Token[Any] | None = None

    def __enter__(self) -> None:
        self._within = within.set(self._call)
        self._telling = strands.telling.set((self._call, self._stream))
        self._inside = self._call.inside()
        self._inside.__enter__()

    def __exit__(self, *error: object) -> None:
        self._inside.__exit__(*error)
        with suppress(ValueError):  # a coroutine that was dropped half way is closed in another context
            if self._within is not None:
                within.reset(self._within)
            if self._telling is not None:
                strands.telling.reset(self._telling)


async def taken(call: Any) -> AsyncIterator[Piece]:
    """What was recorded of a call, piece by piece, the end too, be it an error. The program takes no less of it than
    the recorded one did."""
    while (piece := await call.atake()).status is None:
        yield piece
    if piece.status is Status.CLOSED:
        call.session.diverge(Code.PAST_END, "the recorded program read no further", call=call)
    yield piece


def revived(call: Any, piece: Piece) -> BaseException:
    return exceptions.revive(piece.value, call)


def kept(call: Any, what: str, make: Any) -> Value:
    """An outcome as data; what is none the program has all the same, and only the recording is the poorer."""
    try:
        found: Value = ours(make)()  # what it makes on the way is none of the program's
    except Exception as error:
        call.session.fault(what, error)
        return {snapshot.TAG: "unstorable", "why": str(error)}
    return found


def given(call: Any, value: Value, make: Any) -> Any:
    """The reverse; a difference where it cannot be made again."""
    if isinstance(value, dict) and value.get(snapshot.TAG) == "unstorable":
        call.session.diverge(Code.UNSERVABLE, f"this could not be recorded: {value.get('why')!s}", call=call)
    try:
        return ours(make)(value)  # an event looks at the clock when it is made
    except LockstepError as error:
        call.session.diverge(Code.UNSERVABLE, error.message, call=call)


# What is sent on a stream while a call runs.


def heard(stream: UUID, event: Any) -> None:
    """An event was sent on a stream: if the running call has sent it, that is part of what it did."""
    told_of = strands.telling.get()
    if told_of is None or told_of[1] != stream or type(event).__name__ in _UNTOLD:
        return
    _tell(told_of[0], EVENT, lambda: events.dump(event), _chunk(event))


def enqueued(stream: UUID, parts: Any) -> None:
    """The running call has put a message into the stream's inbox."""
    told_of = strands.telling.get()
    if told_of is not None and told_of[1] == stream:
        _tell(told_of[0], ENQUEUED, lambda: [events.dump(part) for part in parts], {})


def _tell(call: Any, what: str, make: Any, more: dict[str, Value]) -> None:
    try:
        part = aside(what, make())
    except Exception as error:
        call.session.fault(f"an {what} of a call", error)
        part = aside(what, {"why": str(error)})
    call.part({**part, **more} if isinstance(part, dict) else part)


def _chunk(event: Any) -> dict[str, Value]:
    """A piece of an answer, as it is shown where the whole never came."""
    if type(event).__name__ != "ModelMessageChunk":
        return {}
    return {"chunk": {"type": "ai", "content": event.content}}


async def again(call: Any, piece: Piece, context: Any) -> None:
    """Does what the recorded call did on its stream."""
    if not is_aside(piece.value):
        return
    sent, put = told(piece.value, EVENT), told(piece.value, ENQUEUED)
    if sent is not None:
        await context.send(given(call, _known(call, sent), events.load))
    if put is not None:
        context.enqueue(*given(call, _known(call, put), lambda value: [events.load(part) for part in value]))


def _known(call: Any, value: Value) -> Value:
    if isinstance(value, dict) and value.keys() == {"why"}:
        call.session.diverge(
            Code.UNSERVABLE, f"what the call did besides could not be recorded: {value['why']!s}", call=call
        )
    return value
