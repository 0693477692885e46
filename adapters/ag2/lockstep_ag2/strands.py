"""Whose code is running: the turn that it is part of, and which strand of it.

`running()` is the strand, None outside of every turn. It is set while a turn of an agent is driven, and reaches the
tasks and threads that are begun there. An agent that runs inside of another one's turn, as a tool of it or not, is a
strand of its own: `main/researcher`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, Protocol
from uuid import UUID

import msgspec

from lockstep.log.address import quote
from lockstep.session.call import Call
from lockstep.session.native import Calls
from lockstep_ag2.events import Names

ROOT = "main"


class Turn(Protocol):
    """A turn while it is on: recorded, replayed or forked.

    calls   who answers what it asks; None: the session that is on
    names   the ids that AG2 has drawn in its conversation
    over    whether it has ended: what is left running is part of none
    """

    calls: Calls | None
    names: Names
    over: bool

    async def cut(self, name: str, events: list[Any], context: Any) -> None:
        """The history is at a place from which the agent could go on: it holds these events."""
        ...

    async def follows(self, event: Any) -> None:
        """Its model or its tools have answered with this event, and what the agent goes on with follows it."""
        ...

    def fault(self, where: str, error: BaseException) -> None: ...

    def stopped(self) -> BaseException | None:
        """What has stopped it, of a replay or fork; None where nothing has."""
        ...


class Strand:
    """lane     its name
    agent    whose turn it is
    batch    the tool calls that its model has asked for last, in their order: id and name
    tasks    what agents that begin in it at once are told, in their order
    """

    __slots__ = ("_children", "_entered", "agent", "batch", "lane", "tasks", "turn")

    def __init__(self, turn: Turn, lane: str = ROOT, agent: Any = None, tasks: Sequence[str] = ()) -> None:
        self.turn = turn
        self.lane = lane
        self.agent = agent
        self.batch: list[tuple[str, str]] = []
        self.tasks = tasks
        self._entered: set[int] = set()  # numbers of turns that were begun in it
        self._children: dict[str, int] = {}

    def number(self, event: Any) -> int:
        """Which call of its tool in the batch this is, from 1, whichever task comes to it first."""
        ids = [id_ for id_, _ in self.batch]
        before = self.batch[: ids.index(event.id)] if event.id in ids else []
        return [name for _, name in before].count(event.name) + 1

    def lane_of(self, event: Any) -> str:
        """The lane of a tool call: of several that run at once each has its own, and nobody says which is first."""
        return self._lane(event.name, self.number(event)) if len(self.batch) > 1 else self.lane

    def of_tool(self, name: str, number: int, tasks: Sequence[str] = ()) -> Strand:
        """That of an agent which is run as a tool: the `number`-th such call of its batch. `tasks`: see above."""
        return Strand(self.turn, self._lane(name, number), tasks=tasks)

    def of_agent(self, agent: Any, name: str, told: str = "") -> Strand:
        """That of an agent whose turn begins in this one, with what it is told."""
        if self.agent is None:  # a tool has made it for its agent
            number = self._enter(told)
            return Strand(self.turn, self.lane if number == 1 else f"{self.lane}~{number}", agent)
        number = self._children[name] = self._children.get(name, 0) + 1
        return Strand(self.turn, self._lane(name, number), agent)

    def _enter(self, told: str) -> int:
        """Of turns that begin at once, whose comes first is a race of threads: so each has the number of its task."""
        free = (number for number in itertools.count(1) if number not in self._entered)
        of_tasks = (n for n, task in enumerate(self.tasks, 1) if n not in self._entered and task and task in told)
        number = next(of_tasks, 0) or next(free)
        self._entered.add(number)
        return number

    def _lane(self, name: str, number: int) -> str:
        return f"{self.lane}/{quote(name)}" + (f"~{number}" if number > 1 else "")


_strand: ContextVar[Strand | None] = ContextVar("lockstep_ag2_strand", default=None)

# The call whose own code is running: what that calls in turn is its child.
within: ContextVar[Call | None] = ContextVar("lockstep_ag2_call", default=None)

# The call that is told of what is sent on a stream, with that stream's id.
telling: ContextVar[tuple[Call, UUID] | None] = ContextVar("lockstep_ag2_telling", default=None)


class Used(msgspec.Struct, frozen=True):
    """A tool call: its id, the strand whose model has asked for it, and the lane of what it asks."""

    id: str
    strand: Strand | None
    lane: str


# The tool call that the running code is part of.
using: ContextVar[Used | None] = ContextVar("lockstep_ag2_tool", default=None)

# The turn that begins next is this one: replays and forks.
prepared: ContextVar[Turn | None] = ContextVar("lockstep_ag2_prepared", default=None)


def use(event: Any) -> None:
    """The running task is that of a tool call."""
    strand = running()
    using.set(Used(event.id, strand, strand.lane_of(event) if strand is not None else ROOT))


def lane() -> str:
    """The lane of the running code."""
    strand, used = running(), using.get()
    if used is not None and used.strand is strand:
        return used.lane
    return strand.lane if strand is not None else ROOT


def running() -> Strand | None:
    """The strand of the running code."""
    found = _strand.get()
    return None if found is None or found.turn.over else found


@contextmanager
def on(strand: Strand) -> Iterator[None]:
    """What runs in this block is this strand."""
    token = _strand.set(strand)
    try:
        yield
    finally:
        with suppress(ValueError):  # a coroutine that was dropped half way is closed in another context
            _strand.reset(token)
