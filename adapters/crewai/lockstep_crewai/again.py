"""A recorded turn that is made again: the same method of a fresh crew, agent or flow, with what it was given then."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lockstep.errors import Code, LockstepError, TargetError
from lockstep.session import snapshot
from lockstep.session.native.endings import Terms
from lockstep_crewai import given
from lockstep_crewai.turns import BESIDE, FILES, PENDING, UNMADE

TERMS = Terms("task", "a recorded step was never done")


@contextmanager
def options(request: Mapping[str, Any], origin: str) -> Iterator[dict[str, Any]]:
    """The arguments of a turn, by their names; files among them are there in this block. `origin`: where the run came
    from, "" for here. Raises TargetError LS402 where one cannot be made again, LockstepError LS302 for what only a run
    of one's own may be made of."""
    unmade = request.get(UNMADE)
    if isinstance(unmade, list) and unmade:
        raise TargetError(
            Code.BAD_TARGET, f"the kickoff was given {unmade[0]}, which is no data that it could be given again"
        )
    if given.CHECKPOINT in request and origin:
        raise LockstepError(
            Code.UNTRUSTED,
            f"this run came from {origin}, and went on from a checkpoint of CrewAI's, which says what classes a crew is"
            " made of: it can be read here, and replayed where it was recorded",
        )
    if FILES not in request and given.CHECKPOINT not in request:
        yield _options(request, Path())
        return
    with TemporaryDirectory(prefix="lockstep-crewai-") as place:
        yield _options(request, Path(place))


def _options(request: Mapping[str, Any], place: Path) -> dict[str, Any]:
    """`place`: a directory for files."""
    found: dict[str, Any] = {}
    files = {(argument, key) for argument, key in request.get(FILES, ())}
    for name, value in request.items():
        if name in BESIDE:
            continue
        try:
            if name == given.CHECKPOINT:
                found[name] = given.checkpoint_again(value, place)
                continue
            those = {key for argument, key in files if argument == name}
            rest = {key: each for key, each in value.items() if key not in those} if those else value
            found[name] = snapshot.from_value(rest)
            if those:
                made = found[name]
                found[name] = {
                    key: given.file_again(each, place) if key in those else made[key] for key, each in value.items()
                }
        except LockstepError as error:
            raise TargetError(
                Code.BAD_TARGET, f"the kickoff was given {name}, which cannot be made again here: {error.message}"
            ) from error
    return found


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


def turn(target: Any, entry: str, arguments: Mapping[str, Any]) -> Any:
    """Makes the turn, in a thread that has no loop, and gives what it returned: of a stream, once that has been read,
    what it came to."""
    method = getattr(target, entry)
    if inspect.iscoroutinefunction(method):
        return asyncio.run(_aturn(method, arguments))
    return _read(method(**arguments))


async def _aturn(method: Any, arguments: Mapping[str, Any]) -> Any:
    found = await method(**arguments)
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
