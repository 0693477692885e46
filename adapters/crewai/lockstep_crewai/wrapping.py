"""What is wrapped: a crew, an agent or a flow, and who is asked and told of it.

    root = Root(crew, Seams(calls, told))
    put(root)
    root.seams = others        # between turns: who is asked and told from now on

Nothing of the user's object changes. The seams are put into CrewAI's own classes, once in a process, and do nothing
where `current.place()` knows of nobody: outside of a kickoff of what is wrapped.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from crewai import Agent, Crew
from crewai.agents.agent_builder.base_agent import BaseAgent
from crewai.flow.runtime import Flow
from crewai.lite_agent import LiteAgent

from lockstep.errors import Code, TargetError
from lockstep.log import untapped
from lockstep.log.address import quote
from lockstep.log.model import Value
from lockstep_crewai import fitting, naming
from lockstep_crewai.current import Scope
from lockstep_crewai.executors import is_internal
from lockstep_crewai.naming import Names
from lockstep_crewai.seams import Seams

if TYPE_CHECKING:
    from lockstep_crewai.turns import Turn

CREW, AGENT, FLOW = "crew", "agent", "flow"
_LOOK = 0.01  # seconds between two looks at whether something is running

# Modules of this package whose `install()` puts seams into classes of CrewAI's, in this order. Each may be called
# again, for classes that there were not before.
_SEAMS = ("turns", "hooks", "counting", "leaves", "console")


class Strands:
    """The steps of one turn that are running, by the lane of their crew or flow. Usable from any thread."""

    def __init__(self) -> None:
        self._done: dict[str, int] = {}
        self._running: dict[str, int] = {}
        self._lock: Any = untapped.RLock()

    def begins(self, lane: str) -> int:
        """One more is running. Gives how many have been done before it began."""
        with self._lock:
            self._running[lane] = self._running.get(lane, 0) + 1
            return self._done.get(lane, 0)

    def done(self, lane: str) -> bool:
        """It is done. Gives whether another one is running beside it."""
        with self._lock:
            self._done[lane] = self._done.get(lane, 0) + 1
            return self._running.get(lane, 0) > 1

    def ends(self, lane: str) -> None:
        """It runs no more."""
        with self._lock:
            self._running[lane] = self._running.get(lane, 0) - 1

    def wait(self, seconds: float, enough: Callable[[], bool] = lambda: False) -> None:
        """Returns once nothing is running, that is enough, or after so long: a crew that failed waits for no thread of
        its tasks."""
        until = untapped.monotonic() + seconds
        while any(self._running.values()) and not enough() and untapped.monotonic() < until:
            untapped.sleep(_LOOK)


class Root:
    """A crew, agent or flow that is wrapped.

    kind     CREW, AGENT or FLOW
    name     what it is called
    lane     of it
    seams    who is asked and told
    names    the lanes of the turn that is on, `strands`: what is running in them
    on       whether a turn of it is on
    turns    how many have begun
    pending  a turn whose inputs' answers are streamed, and have not all been read
    """

    def __init__(self, target: Any, seams: Seams, *, lane: str = "") -> None:
        """`lane`: its name, quoted, if not told. Raises TargetError LS402 for what is none, AdapterError LS410 for a
        version of CrewAI that lacks what is needed."""
        fitting.probe()
        self.kind = kind_of(target)
        self.name = name_of(target)
        self.lane = lane or quote(self.name)
        self.seams = seams
        self.names, self.strands = Names(), Strands()
        self.on = False
        self.turns = 0
        self.pending: Turn | None = None
        self._target = weakref.ref(target)
        self._lock: Any = untapped.RLock()

    @property
    def target(self) -> Any:
        """What is wrapped; None where nobody has it any more."""
        return self._target()

    def begin(self) -> bool:
        """A turn of it is on from now on. False: another one is."""
        with self._lock:
            if self.on:
                return False
            self.on, self.names, self.strands = True, Names(), Strands()
        install(type(self.target))  # of classes, too, that there were not when it was wrapped
        return True

    def end(self) -> None:
        self.on = False

    def about(self) -> dict[str, Value]:
        """What a run says of it, so that only the same one does it again."""
        target = self.target
        return {"class": type(target).__name__, "kind": self.kind, "lane": self.lane, "members": [*members(target)]}


def kind_of(target: Any) -> str:
    """What it is. Raises TargetError LS402 for what is none of them."""
    if isinstance(target, Crew):
        return CREW
    if isinstance(target, (Agent, LiteAgent)):
        return AGENT
    if isinstance(target, Flow) and not is_internal(type(target)):
        return FLOW
    making = next((name for name in ("crew",) if callable(getattr(target, name, None))), "")
    hint = ": give it what its crew() returns" if making else ""
    if isinstance(target, BaseAgent):
        hint = ": an agent of another framework has no kickoff of its own, wrap the crew that it is in"
    raise TargetError(
        Code.BAD_TARGET, f"wrap takes a crew, an agent or a flow of crewai, not a {type(target).__name__}{hint}"
    )


def name_of(target: Any) -> str:
    """What a crew, agent or flow is called."""
    if isinstance(target, Crew):
        return naming.of_crew(target)
    return naming.of_flow(target) if isinstance(target, Flow) else naming.of_agent(target)


def members(target: Any) -> list[Value]:
    """What is in it, as [name, who does it, what it is to do], by which another one is told from the recorded one: a
    crew's tasks in their order, a flow's methods, an agent by itself."""
    if isinstance(target, Crew):
        return [[naming.of_task(task), naming.of_agent(task.agent) if task.agent else "", task.key]
                for task in target.tasks]  # fmt: skip
    if isinstance(target, Flow):
        return [[str(name), "", ""] for name in sorted(target._methods)]
    goal = getattr(target, "_original_goal", None) or target.goal
    return [[naming.of_agent(target), "", str(goal)]]


# By id: objects of pydantic's compare by what is in them, and may have no hash.
_roots: dict[int, tuple[weakref.ref[Any], Root]] = {}
_copies: dict[int, tuple[weakref.ref[Any], Scope]] = {}
_streams: dict[int, tuple[weakref.ref[Any], bool]] = {}


def root_of(target: Any) -> Root | None:
    """What it is wrapped by, None where it is not."""
    return _found(_roots, target)  # type: ignore[no-any-return]


def copied(target: Any) -> Scope | None:
    """Where a copy of a wrapped crew belongs that a `kickoff_for_each` has made for one of its inputs."""
    return _found(_copies, target)  # type: ignore[no-any-return]


def keep_copy(target: Any, scope: Scope) -> None:
    _keep(_copies, target, scope)


def mark_stream(target: Any) -> None:
    """Its kickoff gives a stream, whose reader has it run."""
    _keep(_streams, target, True)


def is_stream(target: Any) -> bool:
    return bool(_found(_streams, target))


def put(root: Root) -> None:
    """Wraps it. Raises TargetError LS402 for what is wrapped already."""
    target = root.target
    if root_of(target) is not None:
        raise TargetError(Code.BAD_TARGET, f"{root.kind} {root.name} is wrapped already")
    install(type(target))
    _keep(_roots, target, root)


def install(*classes: type) -> None:
    """Puts the seams into CrewAI, and into these classes of the user's, once."""
    for name in _SEAMS:
        import_module(f"lockstep_crewai.{name}").install()
    from lockstep_crewai import turns

    for cls in classes:
        turns.wrap(cls)


def _keep(kept: dict[int, Any], target: Any, value: Any) -> None:
    key = id(target)

    def forget(gone: Any) -> None:
        if kept.get(key, (None,))[0] is gone:
            del kept[key]

    kept[key] = (weakref.ref(target, forget), value)


def _found(kept: Mapping[int, Any], target: Any) -> Any:
    found = kept.get(id(target))
    return found[1] if found is not None and found[0]() is target else None
