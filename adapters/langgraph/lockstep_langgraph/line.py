"""One branch of a thread as a thread of its own: what a fork's saver sees, and where it writes.

The saver finds what the branch shares with its parents, up to where it left them and nothing after, together with
what it was given; all of it looks like one line of events. So a checkpoint that is in two branches has in each only the
writes that belong there, and a task that is to run again has none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from lockstep.errors import AddressError, Code
from lockstep.log.model import Event, Value
from lockstep_langgraph.shelves import MAIN, Book, Branch, MemoryShelf


class LineBook:
    """A branch. Is a `Book` in which it is called main.

    branch  its name in the thread's own book
    parent  that of the branch that it left
    kept    positions there of writes from beyond the place where it left: they are stored in it, too
    calls   who answers the calls of its turns; None: its journal
    upto    shows it up to this position only, with what is `kept`: to be read, and not to be written
    """

    def __init__(
        self, inner: Book, branch: str, parent: str = "", kept: Collection[int] = (), calls: Any = None,
        upto: int | None = None,
    ) -> None:  # fmt: skip
        self.branch = branch
        self._inner = inner
        self._parent = parent
        self._kept = kept
        self._upto = upto
        self._calls = calls
        self._names = {MAIN: branch}
        self._line: dict[str, int] | None = None
        self._beyond: dict[str, int] = {}
        self._journals: dict[str, Any] = {}

    @property
    def faults(self) -> Sequence[str]:
        return self._inner.faults

    @property
    def start(self) -> int:
        return self._inner.start

    def step(
        self, branch: str, lane: str, name: str, source: str, body: dict[str, Value], key: bytes, of: int
    ) -> int:  # fmt: skip
        return self._inner.step(self._names[branch], lane, name, source, body, key, of)

    def writes(self, branch: str, lane: str, node: str, task: str, of: int, body: Value) -> int:
        return self._inner.writes(self._names[branch], lane, node, task, of, body)

    def fork(self, name: str, parent: str, pos: int, *, latest: bool = True) -> Branch:
        """A branch that a turn of the fork makes. It is no more the thread's latest than the fork itself."""
        made = self._inner.fork(name, self._names[parent], pos, latest=False)
        self._names[made.name] = made.name
        return Branch(made.name, parent, pos, latest)

    def news(self) -> tuple[list[Branch], Iterator[tuple[str, Event]]] | None:
        found = self._inner.news()
        if found is None:
            return None
        branches, events = found
        if self._line is None:
            known = {branch.name: branch for branch in branches}
            if self.branch not in known:
                names = ", ".join(known)
                raise AddressError(Code.NO_ADDRESS, f"the thread has no branch {self.branch}: it has {names}")
            self._line = _line(known, self.branch, self._upto)
            self._beyond = _line(known, self._parent)
        return [Branch(MAIN)], self._seen(events, self._line, self._beyond)

    def busy(self, branch: str) -> bool:
        return self._inner.busy(self._names[branch])

    def reserve(self, branch: str) -> bool:
        return self._inner.reserve(self._names[branch])

    def give_up(self, branch: str) -> None:
        self._inner.give_up(self._names[branch])

    def journal(self, branch: str) -> Any:
        journal = self._inner.journal(self._names[branch])
        if journal is None or self._calls is None:
            return journal
        if branch not in self._journals:
            self._journals[branch] = Answered(journal, self._calls)
        return self._journals[branch]

    def close(self) -> None:
        self._line = None
        self._inner.close()

    def _seen(
        self, events: Iterator[tuple[str, Event]], own: Mapping[str, int], parents: Mapping[str, int]
    ) -> Iterator[tuple[str, Event]]:
        given: list[Event] = []
        for name, event in events:
            if event.pos <= own.get(name, 0):
                yield MAIN, event
            elif event.pos in self._kept and event.pos <= parents.get(name, 0):
                given.append(event)
        self._kept = ()
        for event in given:
            if self._upto is None:
                pos = self._inner.writes(self.branch, event.lane, event.name, event.what, event.of, event.body)
                event = msgspec.structs.replace(event, pos=pos)
            yield MAIN, event


class Answered:
    """The journal of a branch, whose calls somebody else answers: `lockstep.session.native.forking.Forking`."""

    def __init__(self, journal: Any, calls: Any) -> None:
        self._journal = journal
        self._calls = calls

    def call(self, lane: str, kind: str, within: Any = None) -> Any:
        return self._calls.call(lane, kind, within)

    def begin_turn(self, entry: str, request: Value, seed: bytes | None = None) -> Any:
        return _Turn(self._journal.begin_turn(entry, request, seed), self._calls)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._journal, name)


class _Turn:
    """A turn of a fork: the branch rests as the fork ended, and not as what stopped it looked to the framework."""

    def __init__(self, turn: Any, calls: Any) -> None:
        self._turn = turn
        self._calls = calls

    def end(self, status: str, value: Any = None) -> None:
        self._turn.end(status, value, self._calls.resting())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._turn, name)


class LineShelf(MemoryShelf):
    """The thread of one book, and empty ones in memory for all others: what a node does with another thread's state is
    no part of this one's."""

    def __init__(self, thread: str, book: LineBook) -> None:
        super().__init__()
        self._thread = thread
        self._book = book

    def open(self, thread: str, *, create: bool) -> Any:
        return self._book if thread == self._thread else super().open(thread, create=create)


def _line(branches: Mapping[str, Branch], name: str, last: int | None = None) -> dict[str, int]:
    """The branches that one consists of, with the position up to which it has each. `last`: of the first."""
    line: dict[str, int] = {}
    upto = last if last is not None else 1 << 62
    found = branches.get(name)
    while found is not None:
        line[found.name] = upto
        upto = min(upto, found.pos)
        found = branches.get(found.parent) if found.parent else None
    return line
