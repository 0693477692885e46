"""A recorded turn that is made again: the same method of a fresh team, with what it was given then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from autogen_agentchat.base import Response, TaskResult
from autogen_agentchat.messages import MessageFactory
from autogen_core import CancellationToken

from lockstep.errors import Code, TargetError
from lockstep.log.model import Value
from lockstep.session.native.endings import Terms
from lockstep_autogen.layout import RESTORE

_WITH_TOKEN = frozenset({"on_reset"})


def _rest(value: Value, recorded: Value) -> Value:
    """Of what a turn returned, what the recorded one returned that had begun in its middle."""
    if not isinstance(value, dict) or not isinstance(recorded, dict):
        return value
    said, was = value.get("messages"), recorded.get("messages")
    if not isinstance(said, list) or not isinstance(was, list):
        return value
    return {**value, "messages": said[max(len(said) - len(was), 0) :]}


TERMS = Terms("message", "a recorded message was never said", _rest)


async def turn(team: Any, entry: str, request: Mapping[str, Any]) -> Any:
    """Makes the turn, and gives what it returned: of a stream, what came last. Raises TargetError LS402 where a message
    of it cannot be made again."""
    if entry in ("run", "run_stream"):
        options: dict[str, Any] = {"task": given(team, request.get("task"))}
        if request.get("output_task_messages") is False:
            options["output_task_messages"] = False
        return await team.run(**options) if entry == "run" else await _last(team.run_stream(**options))
    if entry in ("on_messages", "on_messages_stream"):
        messages, token = given(team, request.get("messages")), CancellationToken()
        if entry == "on_messages":
            return await team.on_messages(messages, token)
        return await _last(team.on_messages_stream(messages, token))
    if entry == "load_state":
        return await team.load_state(request.get("state"))
    if entry == RESTORE:
        from lockstep_autogen import restoring

        return await restoring.as_turn(team, request.get("channels") or {})
    method: Callable[..., Any] = getattr(team, entry)
    return await (method(CancellationToken()) if entry in _WITH_TOKEN else method())


async def _last(stream: Any) -> Any:
    result = None
    async for item in stream:
        if isinstance(item, (TaskResult, Response)):
            result = item
    return result


def given(team: Any, task: Value) -> Any:
    """A recorded task as it was given: a text, a message, a list of messages, or none."""
    if isinstance(task, list):
        return [given(team, each) for each in task]
    return _message(team, task) if isinstance(task, dict) else task


def _message(team: Any, dumped: Mapping[str, Any]) -> Any:
    known = getattr(team, "_message_factory", None)
    try:
        return (known if isinstance(known, MessageFactory) else MessageFactory()).create(dumped)
    except ValueError as error:
        kind = dumped.get("type")
        raise TargetError(
            Code.BAD_TARGET, f"the recorded task has a {kind}, which the target's team cannot make: {error}"
        ) from error
