"""Putting the seams into a team: its agents', its manager's, those of teams and agents inside of it.

    root = Root(team, seams)
    attach(root)
    root.seams = others        # between turns: who is asked and told from now on

Nothing of the user's is replaced but what an agent itself holds: its model's client, its workbenches, tools, code
executor and the function that asks a human, for stand-ins. The team's methods that begin a turn are wrapped.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from autogen_agentchat.agents import AssistantAgent, UserProxyAgent
from autogen_agentchat.base import ChatAgent, Team, TerminationCondition
from autogen_core import AgentId
from autogen_core.code_executor import CodeExecutor
from autogen_core.memory import ListMemory, Memory
from autogen_core.model_context import ChatCompletionContext
from autogen_core.models import ChatCompletionClient
from autogen_core.tools import BaseTool, Workbench

from lockstep.errors import Code, TargetError
from lockstep_autogen import fitting, humans, speaking, stopping, turns
from lockstep_autogen.cut import Ear
from lockstep_autogen.executors import Executor
from lockstep_autogen.models import Model
from lockstep_autogen.naming import MANAGER, Names
from lockstep_autogen.places import Place
from lockstep_autogen.proxies import plain, stands_in
from lockstep_autogen.seams import Asked, Seams, Told
from lockstep_autogen.tools import Bench, Tool, is_runner

__all__ = ["Asked", "Root", "Seams", "Told", "attach"]

_STAND_INS = ((ChatCompletionClient, Model), (Workbench, Bench), (CodeExecutor, Executor), (BaseTool, Tool))

# What an agent of AutoGen's has beside its workbench, and never calls: tools, as it was given them, and handoffs, which
# only say what the model said.
_UNCALLED = frozenset({"_tools", "_handoff_tools"})


class Root:
    """A team or agent that is attached.

    target  it
    lane    of it
    seams   who is asked and told
    ears    of its managers, by lane
    unseen  what of it is not recorded, in words
    on      whether a turn of it is on
    broken  what a model failed with last in this turn
    stops   where it is stopped
    """

    def __init__(self, target: Any, seams: Seams) -> None:
        """Raises TargetError LS402 for what is no team or agent, AdapterError LS410 for a version of AutoGen that lacks
        what is needed."""
        fitting.probe()
        if not isinstance(target, (Team, ChatAgent)):
            raise TargetError(
                Code.BAD_TARGET, f"attach takes a team or an agent of autogen_agentchat, not a {type(target).__name__}"
            )
        self.target = target
        self.seams = seams
        self.names = Names()
        self.lane = self.names.lane("", str(target.name))
        self.ears: dict[str, Ear] = {}
        self.unseen: list[str] = []
        self.on = False
        self.stops = stopping.NOWHERE
        self.broken: BaseException | None = None
        self._seen: set[int] = set()

    @property
    def is_team(self) -> bool:
        return isinstance(self.target, Team)

    def first(self, obj: Any) -> bool:
        """Whether this object is met for the first time."""
        new = id(obj) not in self._seen
        self._seen.add(id(obj))
        return new


_roots: weakref.WeakValueDictionary[int, Root] = weakref.WeakValueDictionary()


def attached(target: Any) -> Root | None:
    """What a team or agent is attached by, None where it is not."""
    found: Root | None = getattr(target, "_lockstep_root", None)
    return found


def running() -> tuple[Root, ...]:
    """The attached teams whose turns are on."""
    return tuple(root for root in _roots.values() if root.on)


def attach(root: Root) -> None:
    """Puts the seams into it. Raises TargetError LS402 for what is attached already."""
    target = root.target
    if attached(target) is not None:
        raise TargetError(Code.BAD_TARGET, f"{target.name} is attached already: once, before its first run")
    if isinstance(target, Team):
        _team(root, target, root.lane)
    else:
        _agent(root, target, root.lane)
    turns.wrap(root)
    target._lockstep_root = root
    _roots[id(root)] = root


def _team(root: Root, team: Any, lane: str) -> None:
    if not root.first(team):
        return
    if not hasattr(team, "_create_group_chat_manager_factory"):
        root.unseen.append(f"team {team.name} ({type(team).__name__}): what is in it, since it is no group chat")
        return
    ear = root.ears[lane] = Ear(root, team, lane)
    manager_lane = root.names.lane(lane, MANAGER)

    def hook(manager: Any) -> Any:
        try:
            _fields(root, manager, manager_lane)
            condition = getattr(manager, "_termination_condition", None)
            if condition is not None:
                _condition(root, condition, manager_lane)
            ear.listen(manager)
        except Exception as error:
            root.seams.told.fault(f"the manager of {team.name}", error)
        return manager

    for each in team._participants:
        inner = root.names.lane(lane, str(each.name))
        if isinstance(each, Team):
            _team(root, each, inner)
        else:
            _agent(root, each, inner)
    speaking.hold(root, team, lane)
    _managed(team, hook)


def _managed(team: Any, hook: Any) -> None:
    """Hooks the team's manager: as it is made, or where it is."""
    runtime = team._runtime
    kind, key = team._group_chat_manager_topic_type, team._team_id
    known = getattr(runtime, "_instantiated_agents", {}).get(AgentId(type=kind, key=key))
    if known is not None:
        hook(known)
        return
    made = getattr(runtime, "_agent_factories", {}).get(kind)
    if made is not None:  # registered, and not made yet

        async def _factory() -> Any:
            found = made()
            return hook(await found if hasattr(found, "__await__") else found)

        runtime._agent_factories[kind] = _factory
        return
    making = team._create_group_chat_manager_factory

    def _create_group_chat_manager_factory(*args: Any, **options: Any) -> Any:
        factory = making(*args, **options)
        return lambda: hook(factory())

    team._create_group_chat_manager_factory = _create_group_chat_manager_factory


def _agent(root: Root, agent: Any, lane: str) -> None:
    if not root.first(agent):
        return
    if isinstance(agent, UserProxyAgent) and not hasattr(agent.input_func, "lockstep_plain"):
        agent.input_func = humans.asking(agent.input_func, Place(root, lane))
        agent._is_async = True
        return
    approval = getattr(agent, "_approval_func", None)
    if approval is not None and hasattr(agent, "_approval_func_is_async"):
        agent._approval_func, agent._approval_func_is_async = humans.approving(approval, Place(root, lane)), True
    found = _fields(root, agent, lane)
    home, what = type(agent).__module__, f"agent {agent.name} ({type(agent).__name__})"
    if not found and not home.startswith("autogen_agentchat."):
        root.unseen.append(f"{what}: no model client, workbench or tool was found in it")
    elif home.startswith("autogen_ext.") and not isinstance(agent, AssistantAgent):  # a browser's or file's surfer
        root.unseen.append(f"{what}: what it does beside asking its model")


def _fields(root: Root, holder: Any, lane: str) -> int:
    """Puts stand-ins into what an object holds. Returns how much was found."""
    count = 0
    benches = _has_bench(holder)
    for name, value in list(getattr(holder, "__dict__", {}).items()):
        if name.startswith("_lockstep") or (benches and name in _UNCALLED):
            continue
        new, found = _stood_in(root, value, lane)
        count += found
        if new is not value:
            try:
                setattr(holder, name, new)
            except Exception as error:  # one that lets nobody change it
                root.unseen.append(f"{lane}: {name} ({type(value).__name__}), which cannot be replaced: {error}")
    return count


def _has_bench(holder: Any) -> bool:
    found = getattr(holder, "_workbench", None)
    return bool(found) and isinstance(found, (Workbench, list, tuple))


def _stood_in(root: Root, value: Any, lane: str) -> tuple[Any, int]:
    """What stands in for a value, and how much of ours there is in it."""
    if stands_in(value):
        other = getattr(value._lockstep_place, "root", root)
        if other is not root:
            root.unseen.append(f"{lane}: its {type(plain(value)).__name__}, which is recorded with {other.lane}")
        return value, 1
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        pairs = [_stood_in(root, item, lane) for item in value]
        if all(new is old for (new, _), old in zip(pairs, value, strict=True)):
            return value, sum(found for _, found in pairs)
        return type(value)(new for new, _ in pairs), sum(found for _, found in pairs)
    if type(value) is dict:
        held = {name: _stood_in(root, item, lane) for name, item in value.items()}
        if all(new is value[name] for name, (new, _) in held.items()):
            return value, sum(found for _, found in held.values())
        return {name: new for name, (new, _) in held.items()}, sum(found for _, found in held.values())
    if isinstance(value, Team):
        _team(root, value, root.names.lane(lane, str(value.name)))
        return value, 1
    if isinstance(value, ChatAgent):
        _agent(root, value, root.names.lane(lane, str(value.name)))
        return value, 1
    for kind, stand_in in _STAND_INS:
        if isinstance(value, kind):
            for runner in _runners(value):
                _stood_in(root, runner, lane)
            return stand_in(value, Place(root, lane)), 1
    if isinstance(value, ChatCompletionContext):
        return value, _fields(root, value, lane)
    if isinstance(value, Memory) and not isinstance(value, ListMemory):
        root.unseen.append(f"{lane}: what it looks up in its memory ({type(value).__name__})")
    return value, 0


def _runners(value: Any) -> Iterator[Any]:
    """The agents and teams that are used as tools in a workbench, or by a tool."""
    if is_runner(value):
        yield value._task_runner
    if isinstance(value, Workbench):
        for tool in getattr(value, "_tools", None) or ():
            if is_runner(tool):
                yield tool._task_runner


def _condition(root: Root, condition: Any, lane: str) -> None:
    """A condition may ask a model too."""
    for value in list(getattr(condition, "__dict__", {}).values()):
        inner = value if isinstance(value, (list, tuple)) else (value,)
        for each in inner:
            if isinstance(each, TerminationCondition) and root.first(each):
                _condition(root, each, lane)
    _fields(root, condition, lane)
