"""What a human is asked: outside of a tool an effect of its own, inside of one that tool's child."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ag2.events import HumanMessage

from lockstep.log.model import Status, Value
from lockstep.session.call import failed
from lockstep_ag2 import calls, events
from lockstep_ag2.calls import Running

KIND = "human"


def ending(hook: Any) -> Callable[..., Any]:
    """The end of a chain that asks the human, or is answered."""

    async def asked(event: Any, context: Any) -> Any:
        call = _asked(event)
        if call is None:
            return await hook(event, context)
        if call.held:
            await call.aready()
        if not call.live:
            return await _served(call, event, context)
        try:
            with Running(call, context.stream.id):
                answer = await hook(event, context)
        except BaseException as error:
            failed(call, error)
            raise
        call.end(Status.OK, calls.kept(call, "a human's answer", lambda: _told(answer)))
        return answer

    return asked


def _asked(event: Any) -> Any:
    call = calls.opened(KIND)
    if call is None:
        return None
    request: Value = {"question": str(event.content)}
    call.ask(KIND, request, request)
    return call


def _told(answer: Any) -> Value:
    """What was said, of a plain answer; else the whole event."""
    return answer.content if type(answer) is HumanMessage else events.dump(answer)


def _made(event: Any, value: Value) -> Any:
    found = events.load(value) if isinstance(value, dict) else HumanMessage(str(value))
    found.parent_id = event.id
    return found


async def _served(call: Any, event: Any, context: Any) -> Any:
    async for piece in calls.taken(call):
        if piece.status is None:
            await calls.again(call, piece, context)
            continue
        if piece.status is Status.ERROR:
            raise calls.revived(call, piece)
        return calls.given(call, piece.value, lambda value: _made(event, value))
    raise AssertionError("a call's pieces end with its end")
