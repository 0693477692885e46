"""Who answers the calls of a team, and whose code makes one.

With a session on, it does. Else whoever the team was attached to does: what records a native run, replays or forks one.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextvars import ContextVar, Token
from typing import Any

from lockstep.errors import Code, LockstepError
from lockstep.log.model import Status, Value
from lockstep.session import exceptions, sites
from lockstep.session.call import Call, Piece

sites.pass_over(os.path.dirname(__file__))

# The call whose own code is running: what that calls in turn is its child, and does not happen where it is served.
within: ContextVar[Call | None] = ContextVar("lockstep_autogen_call", default=None)


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
    if piece.status is Status.ERROR:
        raise exceptions.revive(piece.value, call)
    if piece.status is Status.CLOSED:
        call.session.diverge(Code.PAST_END, "the recorded program read no further", call=call)
    yield piece


async def close(stream: Any) -> None:
    """Closes what was streamed, where that can be: an iterator need not be a generator."""
    closing = getattr(stream, "aclose", None)
    if closing is not None:
        await closing()


async def answer(call: Any) -> Value:
    """The value that a call ended with."""
    value: Value = None
    async for piece in taken(call):
        value = piece.value
    return value


def made(call: Any, make: Any, value: Value) -> Any:
    """An object of AutoGen's, of what was recorded or what somebody wrote in its place."""
    if isinstance(value, dict) and value.get("$") == "unstorable":
        call.session.diverge(
            Code.UNSERVABLE, f"this answer could not be recorded: {value.get('why')!s}", call=call
        )  # fmt: skip
    try:
        return make(value)
    except LockstepError as error:
        call.session.diverge(Code.UNSERVABLE, error.message, call=call)
    except (TypeError, ValueError) as error:
        reason = f"this is no answer that AutoGen takes: {error}"
        call.session.diverge(Code.UNSERVABLE, reason, call=call)
    raise AssertionError("unreachable")


def unstorable(error: BaseException) -> dict[str, Value]:
    """In the place of an outcome that cannot be recorded."""
    return {"$": "unstorable", "why": f"{type(error).__name__}: {error}"}
