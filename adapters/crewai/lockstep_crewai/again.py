"""A recorded turn that is made again: the same method of a fresh crew, agent or flow, with what it was given then."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Mapping
from typing import Any

from lockstep.errors import Code, LockstepError, TargetError
from lockstep.session import snapshot
from lockstep.session.native.endings import Terms
from lockstep_crewai.turns import BESIDE, PENDING, UNMADE

TERMS = Terms("task", "a recorded step was never done")


def options(request: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a turn, by their names. Raises TargetError LS402 where one cannot be made again."""
    unmade = request.get(UNMADE)
    if isinstance(unmade, list) and unmade:
        raise TargetError(
            Code.BAD_TARGET, f"the kickoff was given {unmade[0]}, which is no data that it could be given again"
        )
    given: dict[str, Any] = {}
    for name, value in request.items():
        if name not in BESIDE:
            try:
                given[name] = snapshot.from_value(value)
            except LockstepError as error:
                raise TargetError(
                    Code.BAD_TARGET, f"the kickoff was given {name}, which cannot be made again here: {error.message}"
                ) from error
    return given


def restore(target: Any, request: Mapping[str, Any]) -> None:
    """Puts a fresh flow where the recorded one was that had been paused and was resumed, as `from_pending` does."""
    pending = request.get(PENDING)
    if not isinstance(pending, Mapping):
        return
    from crewai.flow.async_feedback.types import PendingFeedbackContext

    target._initialize_state(pending["state"])
    target._pending_feedback_context = PendingFeedbackContext.from_dict(pending["context"])
    target._is_execution_resuming = True
    target._flow_match_id = target.flow_id


def turn(target: Any, entry: str, given: Mapping[str, Any]) -> Any:
    """Makes the turn, in a thread that has no loop, and gives what it returned: of a stream, once that has been read,
    what it came to."""
    method = getattr(target, entry)
    if inspect.iscoroutinefunction(method):
        return asyncio.run(_aturn(method, given))
    return _read(method(**given))


async def _aturn(method: Any, given: Mapping[str, Any]) -> Any:
    found = await method(**given)
    if isinstance(found, list):
        return [await _aread(each) for each in found]
    return await _aread(found)


def _read(found: Any) -> Any:
    if isinstance(found, list):
        return [_read(each) for each in found]
    if not is_stream(found):
        return found
    for _ in found:
        pass
    return _result(found)


async def _aread(found: Any) -> Any:
    if not is_stream(found):
        return found
    async for _ in found:
        pass
    return _result(found)


def _result(stream: Any) -> Any:
    many = getattr(stream, "_results", None)
    return stream.results if many is not None else stream.result


def is_stream(found: Any) -> bool:
    """Whether a kickoff gave something to be read, by what it is called: `CrewStreamingOutput`, `StreamSession`, …"""
    names = ("StreamingOutput", "StreamSession", "StreamSessionBase")
    return any(cls.__name__.endswith(names) for cls in type(found).__mro__)
