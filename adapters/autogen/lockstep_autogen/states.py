"""What a team remembers, by channel, taken in the time and space of what is new.

`team.save_state()` dumps all messages again at each call: of a run of 200 turns, nineteen megabytes, and half of its
time. So the lists are looked at where they lie, and only what has been added to them is dumped.

    watch = Watch()
    channels = await watch.channels(team)      # at a cut; lists share the items that an earlier call has given

See `lockstep_autogen.channels`. A manager or agent that is none of AutoGen's own, or that keeps something that is not
known here, is asked to save its state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from autogen_core import AgentId

from lockstep.log.address import quote
from lockstep.log.model import Value
from lockstep_autogen import canonical
from lockstep_autogen.channels import (
    BUFFER,
    CONTEXT,
    HEARD,
    INSIDE,
    MANAGER,
    NAME,
    STATE,
    THREAD,
    TRIGGERED,
    WHOLE,
)
from lockstep_autogen.layout import MESSAGES, SELECTED, STOP, Moment, Spoken

# What managers save beside their thread and `current_turn`, each in an attribute of that name behind an underscore.
_MANAGERS: Mapping[str, tuple[str, ...]] = {
    "RoundRobinGroupChatManager": ("next_speaker_index",),
    "SelectorGroupChatManager": ("previous_speaker",),
    "SwarmGroupChatManager": ("current_speaker",),
    "GraphFlowManager": ("remaining", "enqueued_any", "ready"),
    "MagenticOneOrchestrator": ("task", "facts", "plan", "n_rounds", "n_stalls"),
}
_NAMED = frozenset({"type", "version"})  # of every state of AutoGen's: what it is of
_SPARE = 1024  # dumped messages that are remembered beyond those that stand in a list

FED = "_lockstep_fed"  # of a manager: what its condition has heard since it was last reset, call by call

_ABSENT: Any = object()
_watches: WeakKeyDictionary[Any, Watch] = WeakKeyDictionary()


class Watch:
    """What has been asked of one team or agent before."""

    def __init__(self) -> None:
        self._dumped: dict[int, tuple[Any, Value]] = {}  # by identity, with the message, which keeps that its own
        self._named: dict[int, dict[str, Value] | None] = {}  # managers and agents: None of those that save themselves
        self._standing = 0

    async def channels(self, team: Any) -> dict[str, Value]:
        """All of it. What is in lists must not be changed by whoever gets them."""
        found: dict[str, Value] = {}
        self._standing = 0
        if is_team(team):
            await self._of_team(team, "", found)
        else:
            await self._of_agent(team, "", found)
        if len(self._dumped) > 2 * self._standing + _SPARE:
            self._dumped.clear()
        return found

    async def _of_team(self, team: Any, at: str, found: dict[str, Value]) -> None:
        manager = await actor(team, team._group_chat_manager_topic_type)
        if manager is None and getattr(team, "_initialized", False):  # it is in another process
            found[f"{at}{WHOLE}"] = canonical.state(canonical.inert(await team.save_state()), (team._team_id,))
            return
        found[f"{at}{THREAD}"] = self._list(getattr(manager, "_message_thread", ()))
        if manager is not None:
            found[f"{at}{MANAGER}"] = {NAME: team._group_chat_manager_name, **await self._of_manager(manager)}
        found[f"{at}{HEARD}"] = _heard(manager, getattr(manager, "_message_thread", ()))
        for participant, topic in zip(team._participants, team._participant_topic_types, strict=True):
            name = f"{at}{quote(participant.name)}"
            if is_team(participant):
                await self._of_team(participant, f"{name}{INSIDE}", found)
            else:
                await self._of_agent(participant, name, found)
            container = await actor(team, topic)
            found[f"{name}{BUFFER}"] = self._list(getattr(container, "_message_buffer", ()))

    async def _of_manager(self, manager: Any) -> dict[str, Value]:
        fields = ("current_turn", *_MANAGERS.get(type(manager).__name__, ()))
        named = await self._probed(manager, "message_thread", fields)
        if named is None:
            saved = dict(await manager.save_state())
            saved.pop("message_thread", None)
            return {name: canonical.inert(value) for name, value in saved.items()}
        made = {**named, **{name: canonical.inert(getattr(manager, f"_{name}")) for name in fields}}
        if (triggered := getattr(manager, f"_{TRIGGERED}", None)) is not None:
            made[TRIGGERED] = {target: sorted(groups) for target, groups in sorted(triggered.items()) if groups}
        return made

    async def _of_agent(self, agent: Any, name: str, found: dict[str, Value]) -> None:
        inner, context = inside(agent), _context(agent)
        if inner is not None:
            await self._of_team(inner, f"{name}{INSIDE}{quote(inner.name)}{INSIDE}", found)
        if context is not None and (inner is not None or await self._probed(agent, "llm_context", ()) is not None):
            found[f"{name}{CONTEXT}".lstrip(".")] = self._list(context._messages)
        elif inner is None and (own := await _saved(agent)) is not None:
            found[f"{name}{STATE}".lstrip(".")] = own

    async def _probed(self, owner: Any, lists: str, fields: Sequence[str]) -> dict[str, Value] | None:
        """What names the state of a manager or agent, where that has these fields and no others; else None."""
        if id(owner) not in self._named:
            self._named[id(owner)] = None
            if type(owner).__module__.startswith("autogen_agentchat.") or lists == "llm_context":
                saved = await owner.save_state()
                known = {lists, *fields}
                there = all(getattr(owner, f"_{name}", _ABSENT) is not _ABSENT for name in fields)
                if there and known <= saved.keys() <= known | _NAMED:
                    self._named[id(owner)] = {name: saved[name] for name in sorted(_NAMED & saved.keys())}
        return self._named[id(owner)]

    def _list(self, messages: Sequence[Any]) -> list[Value]:
        self._standing += len(messages)
        dumped = self._dumped
        made: list[Value] = []
        for message in messages:
            known = dumped.get(id(message))
            if known is None:
                known = dumped[id(message)] = message, _dump(message)
            made.append(known[1])
        return made


async def channels(team: Any) -> dict[str, Value]:
    """What a team or agent remembers."""
    if team not in _watches:
        _watches[team] = Watch()
    return await _watches[team].channels(team)


async def of(moment: Moment) -> tuple[dict[str, Value], list[Value]]:
    """All channels of a moment, and how its messages really were (`was`)."""
    return {**said(moment), **await channels(moment.team)}, was(moment.spoken)


def said(moment: Moment) -> dict[str, Value]:
    """The channels of a moment that are no state."""
    return {
        MESSAGES: [canonical.spoken(each.source, each.message, each.inner) for each in moment.spoken],
        SELECTED: [*moment.selected],
        STOP: moment.stop or None,
    }


def was(spoken: tuple[Spoken, ...]) -> list[Value]:
    """The ids and times of messages, and of what is in them."""
    return [canonical.was(each) for said in spoken for each in (said.message, *said.inner)]


async def _saved(agent: Any) -> Value:
    """What an agent saves of itself, None where it saves nothing."""
    saved = canonical.state(canonical.inert(await agent.save_state()))
    return saved if isinstance(saved, dict) and saved.keys() - _NAMED else None


def is_team(participant: Any) -> bool:
    return hasattr(participant, "_participants") and hasattr(participant, "_group_chat_manager_topic_type")


def inside(agent: Any) -> Any:
    """The team that an agent is made of; None where it is of none."""
    inner = getattr(agent, "_team", None)
    return inner if inner is not None and is_team(inner) else None


async def actor(team: Any, topic: str) -> Any:
    """Who in the team's runtime has this topic; None before the team's first run, and where that is another process."""
    if not getattr(team, "_initialized", False):
        return None
    try:
        return await team._runtime.try_get_underlying_agent_instance(AgentId(topic, team._team_id), object)
    except (LookupError, NotImplementedError, TypeError):
        return None


def _heard(manager: Any, thread: Sequence[Any]) -> Value:
    """By what `lockstep_autogen.cut` has seen go to the condition. What was said before a reset is in the thread no
    more, and counts no more."""
    fed = getattr(manager, FED, None)
    if not fed:
        return []
    at = {id(message): index for index, message in enumerate(thread)}
    firsts = [(at.get(id(delta[0]), -1), len(delta)) for delta in fed if delta]
    return [[first, first + count] for first, count in firsts if first >= 0]


def _context(agent: Any) -> Any:
    """What holds what an agent's model was told, where the agent saves that and nothing else."""
    context = getattr(agent, "_model_context", None)
    if context is None or not isinstance(getattr(context, "_messages", None), list):
        return None
    from autogen_core.model_context import ChatCompletionContext

    return context if type(context).save_state is ChatCompletionContext.save_state else None


def _dump(message: Any) -> Value:
    return canonical.message(message) if hasattr(message, "created_at") else canonical.inert(message)
