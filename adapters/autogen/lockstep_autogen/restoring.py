"""Gives a fresh team the state of a recorded step, so that it goes on as the recorded one did. Nothing before it runs.

    why = refusal(team, channels, stopped=…)        # "" where that is exact
    await restore(team, channels)
    await team.run()                                # goes on; or with a new task

What AutoGen's own `load_state` leaves out is made up for: conditions are told again what they had heard since they were
last reset, the turn that the cut was made in is counted, and the circles of a graph know what started them. Where
something is left out that nobody can make up for, it is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from autogen_agentchat.agents import BaseChatAgent

from lockstep.errors import Code, TargetError
from lockstep.log.address import quote
from lockstep.log.model import Value
from lockstep_autogen import saving, states, turns
from lockstep_autogen.attaching import attached
from lockstep_autogen.channels import BUFFER, CONTEXT, HEARD, INSIDE, MANAGER, THREAD, TRIGGERED
from lockstep_autogen.layout import LOAD, RESTORE, STOP
from lockstep_autogen.saving import Channels
from lockstep_autogen.states import FED

# They answer by what they are told at the moment, and keep nothing.
_FORGETFUL = frozenset({"UserProxyAgent"})
_ALONE = "an agent without a team makes its steps within one run of it, which nothing can begin in the middle"
_COUNTS_TIME = frozenset({"TimeoutTermination"})


def refusal(team: Any, channels: Channels, *, consistent: bool = True, finished: bool = False) -> str:
    """Why this team cannot go on exactly from that state, "" where it can.

    consistent  as the step says it
    finished    whether it may have come to its end there: it is to get a new task
    """
    if not states.is_team(team):
        return next(_of_agent(team, str(team.name)) if finished else iter([_ALONE]), "")
    found = _reasons(team, channels, consistent=consistent)
    return next(found if finished else chain(found, _finished(team, channels)), "")


def _reasons(team: Any, channels: Channels, *, consistent: bool, at: str = "") -> Iterator[str]:
    if not consistent or f"{at}{THREAD}" not in channels:
        yield "its state was not whole there: somebody had not heard yet what another had said"
        return
    orchestrator = team._base_group_chat_manager_class.__name__
    if orchestrator == "MagenticOneOrchestrator":
        yield f"{orchestrator} plans anew whenever it is run, whatever state it has"
    for condition in _conditions(team._termination_condition):
        if type(condition).__name__ in _COUNTS_TIME:
            yield f"{type(condition).__name__} counts from when the team was made"
    for participant in team._participants:
        name = f"{at}{quote(participant.name)}"
        if states.is_team(participant):
            yield from _reasons(participant, channels, consistent=consistent, at=f"{name}{INSIDE}")
            continue
        if f"{name}{BUFFER}" not in channels:
            yield f"the recorded team had no {name}"
        yield from _of_agent(participant, name)
        yield from _unanswered(name, channels.get(f"{name}{CONTEXT}"))


def _of_agent(agent: Any, name: str) -> Iterator[str]:
    for workbench in _as_list(getattr(agent, "_workbench", None)):
        for tool in _as_list(getattr(workbench, "_tools", None)):
            if hasattr(tool, "_task_runner"):
                yield f"what {tool.name} of {name} remembers is no part of the state: it is a team or an agent itself"
    if states.inside(agent) is not None:
        yield f"{name} saves only the state of the team inside it, and not what it has been told itself"
    elif type(agent).save_state is BaseChatAgent.save_state and not _is_forgetful(agent):
        yield f"{name}, a {type(agent).__name__}, does not save what it remembers"


def _unanswered(name: str, context: Value) -> Iterator[str]:
    """Whether a model would be told of a tool call without its result, which providers refuse."""
    called: dict[str, None] = {}
    for message in context if isinstance(context, list) else ():
        content = message.get("content") if isinstance(message, dict) else None
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and "arguments" in part:
                called[str(part.get("id"))] = None
            elif isinstance(part, dict) and "call_id" in part:
                called.pop(str(part["call_id"]), None)
    if called:
        yield f"{name} was told of the tool call {next(iter(called))} and not of its result, which a model would refuse"


def _is_forgetful(agent: Any) -> bool:
    kind = type(agent).__name__
    return kind in _FORGETFUL or (kind == "CodeExecutorAgent" and agent._model_client is None)


def _finished(team: Any, channels: Channels) -> Iterator[str]:
    """Whether nothing is left to be done."""
    if isinstance(stop := channels.get(STOP), str):
        yield (
            f"the team stopped there ({stop}): nothing is left of its run. To give it another task:"
            f" lockstep_autogen.load. {waits(team, channels)}".rstrip()
        )
    manager = channels.get(MANAGER)
    if isinstance(manager, Mapping) and "ready" in manager and not manager["ready"]:
        yield "AutoGen's state of the graph says that it is done, and it was not"


def waits(team: Any, channels: Channels) -> str:
    """Whom a swarm waits for that has handed over to somebody outside, "" for nobody: it takes no other task than an
    answer of theirs (microsoft/autogen #5912)."""
    thread = channels.get(THREAD)
    last = thread[-1] if isinstance(thread, list) and thread else None
    target = last.get("target") if isinstance(last, dict) and last.get("type") == "HandoffMessage" else None
    names = [str(each.name) for each in getattr(team, "_participants", ())]
    if not isinstance(target, str) or not target or target in names:
        return ""
    return (
        f"It waits for {target}: its next task is a HandoffMessage(source={target!r}, target=…, content=…) to one of"
        f" {', '.join(names)}"
    )


def _conditions(condition: Any) -> Iterator[Any]:
    """A condition, with all that it is made of."""
    if condition is None:
        return
    yield condition
    inner = getattr(condition, "inner", None)
    for one in (*_as_list(getattr(condition, "_conditions", None)), *([inner] if inner is not None else [])):
        yield from _conditions(one)


def _as_list(value: Any) -> Sequence[Any]:
    return list(value) if isinstance(value, list | tuple) else [] if value is None else [value]


async def restore(team: Any, channels: Channels) -> None:
    """Loads the state into a team or agent. Raises TargetError LS402 where it is another one's."""
    if not saving.is_whole(channels):
        return  # of a team that had not run yet
    try:
        await team.load_state(saving.saved(channels))
    except ValueError as error:
        raise TargetError(Code.BAD_TARGET, f"the recorded state does not fit this team: {error}") from error
    if not states.is_team(team):
        return
    manager = await states.actor(team, team._group_chat_manager_topic_type)
    told = channels.get(MANAGER)
    if isinstance(told, dict) and isinstance(triggered := told.get(TRIGGERED), dict):
        manager._triggered_activation_groups = {name: set(_as_list(groups)) for name, groups in triggered.items()}
    await _tell_again(manager, channels.get(HEARD))


async def as_turn(team: Any, channels: Channels) -> None:
    """The same, recorded as a turn of its own where the team is attached. Raises as `restore`."""
    root = attached(team)
    if root is None or root.on:
        await restore(team, channels)
        return
    async with turns.Turn(root, RESTORE, (), {"channels": channels}, LOAD):
        await restore(team, channels)


async def _tell_again(manager: Any, heard: Value) -> None:
    """Brings the condition to where it was: by what it heard since it was last reset, in as many calls."""
    condition, thread = manager._termination_condition, manager._message_thread
    if condition is None or not isinstance(heard, list):
        return
    fed: list[Any] = getattr(manager, FED, [])
    fed.clear()
    await condition.reset()
    for part in heard:
        if isinstance(part, list) and len(part) == 2:
            first, stop = part
            fed.append(thread[first:stop])
            await condition(thread[first:stop])
