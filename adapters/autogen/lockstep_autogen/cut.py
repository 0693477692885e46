"""The cut: where a team's state is whole.

A team's manager hears each message, adds it to the thread, and when the last of those who were asked to speak is done,
it asks its termination condition. After that, and before it chooses who speaks next, everybody has heard everything and
nobody has begun: that is the only moment at which `save_state` says all, and it is where a step ends. It is found at
the manager itself, so the team's own condition, handlers and component stay what they are.

Orchestrators that do not use what the base class has for this (MagenticOne) are told of by their condition, or by one
of ours that never ends anything where they have none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from autogen_agentchat.base import TerminationCondition
from autogen_core import AgentId

from lockstep.log.address import quote
from lockstep_autogen.layout import ANSWER, Moment, Spoken
from lockstep_autogen.states import FED

if TYPE_CHECKING:
    from lockstep_autogen.attaching import Root

_ANSWERS = ("GroupChatAgentResponse", "GroupChatTeamResponse")
_MOST_TURNS = 1000  # of the loop, for everybody to hear what was said


def name_in(message: Any) -> str:
    """Who says something with a message to a team, as `layout.ORDER` has it; "" of any other message."""
    # Classes of AutoGen's that are no public ones: by their names.
    kind = type(message).__name__
    if kind in _ANSWERS:
        return f"{ANSWER}{message.name}"
    return str(message.message.source) if kind == "GroupChatMessage" else ""


class Ear:
    """What one team says, as its manager has it: after all handlers of the user's.

    lane  of the team
    """

    def __init__(self, root: Root, team: Any, lane: str) -> None:
        self._root = root
        self._team = team
        self.lane = lane
        self._topics: dict[str, str] = {}  # of each participant -> its name
        self._spoken: list[Spoken] = []
        self._selected: list[str] = []
        self._order: list[str] = []
        self._stop = ""
        self._applying = False

    def listen(self, manager: Any) -> None:
        """Has a manager tell."""
        names = getattr(manager, "_participant_name_to_topic_type", {})
        self._topics = {topic: name for name, topic in names.items()}
        hear, publish = manager.on_message_impl, manager.publish_message

        async def on_message_impl(message: Any, ctx: Any) -> Any:
            self._noted(self._heard, message)
            self._noted(self._ordered, message)
            return await hear(message, ctx)

        async def publish_message(message: Any, topic_id: Any, *args: Any, **options: Any) -> Any:
            self._noted(self._said, message, topic_id)
            return await publish(message, topic_id, *args, **options)

        manager.on_message_impl, manager.publish_message = on_message_impl, publish_message
        if _has_own_way(manager):
            manager._termination_condition = Condition(self, manager._termination_condition)
        else:
            manager._apply_termination_condition = self._applying_to(manager)

    def named(self, topic: str) -> str:
        """The participant that has this topic, "" for none."""
        found = self._topics.get(topic, "")
        return quote(found) if found else ""

    def last(self) -> Moment | None:
        """What was said after the last cut."""
        if not self._spoken and not self._selected:
            return None
        return self._moment(consistent=False)

    def begins(self) -> None:
        """A turn begins: what an earlier one left is no part of it."""
        self._moment()

    async def cut(self, stop: str) -> Any:
        """The team is at a cut. `stop`: why it stops here."""
        try:
            await self._settled()
        except Exception as error:
            self._root.seams.told.fault("a cut", error)
        return await self._root.seams.told.cut(self._moment(stop=stop))

    async def _settled(self) -> None:
        """Returns when everybody has heard what the last of those said who spoke at once: they hear one thing after the
        other, and whoever spoke hears nothing meanwhile."""
        known = getattr(self._team._runtime, "_instantiated_agents", {})
        topics, key = self._team._participant_topic_types, self._team._team_id
        boxes = [known.get(AgentId(type=topic, key=key)) for topic in topics]
        locks = [lock for box in boxes if (lock := getattr(box, "_fifo_lock", None)) is not None]
        for _ in range(_MOST_TURNS):
            if not any(lock._locked for lock in locks):
                return
            await asyncio.sleep(0)

    def _moment(self, *, consistent: bool = True, stop: str = "") -> Moment:
        spoken, self._spoken = tuple(self._spoken), []
        selected, self._selected = tuple(self._selected), []
        order, self._order = tuple(self._order), []
        stop, self._stop = stop or self._stop, ""
        return Moment(
            lane=self.lane, team=self._team, spoken=spoken, selected=selected, stop=stop, consistent=consistent,
            order=order if sum(name.startswith(ANSWER) for name in order) > 1 else (),
        )  # fmt: skip

    def _noted(self, note: Any, *told: Any) -> None:
        try:
            note(*told)
        except Exception as error:
            self._root.seams.told.fault("a message", error)

    def _heard(self, message: Any) -> None:
        # Classes of AutoGen's that are no public ones: by their names.
        kind = type(message).__name__
        if kind == _ANSWERS[0]:
            said = message.response
            self._spoken.append(Spoken(message.name, said.chat_message, tuple(said.inner_messages or ())))
        elif kind == _ANSWERS[1]:
            self._spoken += [Spoken(message.name, each) for each in message.result.messages]

    def _ordered(self, message: Any) -> None:
        name = name_in(message)
        if name:
            self._order.append(name)

    def _said(self, message: Any, topic: Any) -> None:
        kind = type(message).__name__
        if kind == _ANSWERS[0]:
            self._heard(message)  # of an orchestrator, which does not hear itself
        elif kind == "GroupChatRequestPublish":
            self._selected.append(self._topics.get(topic.type, topic.type))
        elif kind == "GroupChatTermination":
            self._stop = str(message.message.content)

    def _applying_to(self, manager: Any) -> Any:
        plain = manager._apply_termination_condition
        fed: list[Sequence[Any]] = []
        setattr(manager, FED, fed)

        async def _apply_termination_condition(
            delta: Sequence[Any], increment_turn_count: bool = False
        ) -> bool:  # fmt: skip
            if manager._termination_condition is not None:
                fed.append(delta)
            stops: bool = await plain(delta, increment_turn_count)
            if stops:
                fed.clear()  # the condition has been reset
            # That of the task comes before anybody has heard it.
            if not increment_turn_count:
                return stops
            halt = await self.cut("")
            if halt is None or stops:
                return stops
            await manager._signal_termination(halt)
            return True

        return _apply_termination_condition


class Condition(TerminationCondition):  # type: ignore[misc]
    """In the place of the condition of a manager with a way of its own."""

    component_config_schema = None
    component_provider_override = None

    def __init__(self, ear: Ear, inner: Any) -> None:
        self._ear = ear
        self._inner = inner
        self._halted = False

    @property
    def terminated(self) -> bool:
        return bool(self._inner is not None and self._inner.terminated)

    async def __call__(self, messages: Sequence[Any]) -> Any:
        stop = await self._inner(messages) if self._inner is not None else None
        halt = await self._ear.cut(str(stop.content) if stop is not None else "")
        if stop is None and halt is not None:
            self._halted = True
            return halt
        return stop

    async def reset(self) -> None:
        # What stopped was not the user's condition: that goes on counting.
        halted, self._halted = self._halted, False
        if self._inner is not None and not halted:
            await self._inner.reset()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _has_own_way(manager: Any) -> bool:
    from autogen_agentchat.teams._group_chat._base_group_chat_manager import BaseGroupChatManager

    return type(manager).handle_agent_response is not BaseGroupChatManager.handle_agent_response
