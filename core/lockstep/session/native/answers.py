"""What an adapter's seams do with a call of a native run: state it, run it for real or take what was recorded of it.

call = ask(calls, "research/find", "model", make, fault, native="crewai/research/find")
if call is None: …                     # a fault of ours keeps it from being recorded: it runs as ever
elif call.live:
    with Running(call): answer = …
    call.end("ok", value)
else:
    value = answered(call)             # of a thread; `await answer(call)` of a task
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar, Token
from typing import Any

import msgspec

from lockstep.errors import Code, LockstepError
from lockstep.log.model import Status, Value
from lockstep.session import current as sessions
from lockstep.session import exceptions
from lockstep.session.call import Call, Piece
from lockstep.session.lanes import NATIVE
from lockstep.session.native.calls import Calls
from lockstep.session.policy import Declared

# The call whose own code is running: what that calls in turn is its child, and does not happen where it is served.
within: ContextVar[Call | None] = ContextVar("lockstep_native_call", default=None)


class Question(msgspec.Struct, frozen=True):
    """What a call asks: `key` of it is what has to be the same in a replay."""

    name: str
    request: Value
    key: Value
    declared: Declared | None = None


def ask(
    calls: Calls, lane: str, kind: str, make: Callable[[], Question], fault: Callable[[str, BaseException], None], *,
    native: str,
) -> Call | None:  # fmt: skip
    """Begins a call in a lane and states what `make` makes of it. None where a fault of ours keeps it from being
    recorded, which `fault` is told. `native`: in which lane of its framework a session notes the effect. Raises
    Divergence, Cut and Refusal."""
    call = calls.call(lane, kind, within.get())
    try:
        question = make()
    except Exception as error:
        if not call.live:
            raise
        fault(f"a {kind} call", error)
        return None
    token = NATIVE.set(native) if sessions.session is not None else None
    try:
        call.ask(question.name, question.request, question.key, declared=question.declared)
    finally:
        if token is not None:
            NATIVE.reset(token)
    return call


class Running:
    """What runs in this block belongs to the call. Can be entered again and again."""

    __slots__ = ("_call", "_inside", "_token")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._inside: Any = None
        self._token: Token[Call | None] | None = None

    def __enter__(self) -> None:
        self._token = within.set(self._call)
        self._inside = self._call.inside()
        self._inside.__enter__()

    def __exit__(self, *error: object) -> None:
        self._inside.__exit__(*error)
        if self._token is not None:
            try:  # noqa: SIM105 - passed for each chunk of an answer
                within.reset(self._token)
            except ValueError:
                pass  # a coroutine that was dropped half way is closed in another context


async def taken(call: Any) -> AsyncIterator[Piece]:
    """What was recorded of a call, piece by piece, the end with its value too; raises what it raised."""
    while (piece := await call.atake()).status is None:
        yield piece
    yield _end(call, piece)


def took(call: Any) -> Iterator[Piece]:
    """The same of a thread."""
    while (piece := call.take()).status is None:
        yield piece
    yield _end(call, piece)


def _end(call: Any, piece: Piece) -> Piece:
    if piece.status is Status.ERROR:
        raise exceptions.revive(piece.value, call)
    if piece.status is Status.CLOSED:
        call.session.diverge(Code.PAST_END, "the recorded program read no further", call=call)
    return piece


async def answer(call: Any) -> Value:
    """The value that a call ended with."""
    value: Value = None
    async for piece in taken(call):
        value = piece.value
    return value


def answered(call: Any) -> Value:
    """The same of a thread."""
    value: Value = None
    for piece in took(call):
        value = piece.value
    return value


async def close(stream: Any) -> None:
    """Closes what was streamed, where that can be: an iterator need not be a generator."""
    closing = getattr(stream, "aclose", None)
    if closing is not None:
        await closing()


def made(call: Any, make: Callable[[Any], Any], value: Value, *, framework: str) -> Any:
    """An object of the framework's, of what was recorded or what somebody wrote in its place. `framework`: its name, as
    a difference has it."""
    if isinstance(value, dict) and value.get("$") == "unstorable":
        call.session.diverge(
            Code.UNSERVABLE, f"this answer could not be recorded: {value.get('why')!s}", call=call
        )  # fmt: skip
    try:
        return make(value)
    except LockstepError as error:
        call.session.diverge(Code.UNSERVABLE, error.message, call=call)
    except (TypeError, ValueError) as error:
        reason = f"this is no answer that {framework} takes: {error}"
        call.session.diverge(Code.UNSERVABLE, reason, call=call)
    raise AssertionError("unreachable")


def unstorable(error: BaseException) -> dict[str, Value]:
    """In the place of an outcome that cannot be recorded."""
    return {"$": "unstorable", "why": f"{type(error).__name__}: {error}"}
