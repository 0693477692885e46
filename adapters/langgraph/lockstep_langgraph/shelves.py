"""Where threads are kept: the narrow seam between the checkpointer and what stores its events.

A `Shelf` holds all threads of a saver, a `Book` the branches of one. `MemoryShelf` keeps events as they are, and is
what replays, forks in a session and tests use; `lockstep_langgraph.stored` keeps them as native runs of a store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import msgspec

from lockstep.log.model import Event, Kind, Value

MAIN = "main"


class Branch(msgspec.Struct, frozen=True):
    """A line of a thread's events. It has those of `parent` up to position `pos`. `latest`: whether what is newest in
    it can be the latest of its thread; not so of a branch that Lockstep's fork or bisect made."""

    name: str
    parent: str = ""
    pos: int = 0
    latest: bool = True


class Replaced(Exception):
    """Another process has deleted the thread, or put another in its place: the book is of no use any more."""


class Book(Protocol):
    """The log of one thread. Used under its thread's lock."""

    def step(self, branch: str, lane: str, name: str, source: str, body: dict[str, Value], key: bytes, of: int) -> int:
        """Stores a checkpoint; its position. Durable on return."""
        ...

    def writes(self, branch: str, lane: str, node: str, task: str, of: int, body: Value) -> int:
        """Stores writes of a task; their position. Durable on return."""
        ...

    def fork(self, name: str, parent: str, pos: int, *, latest: bool = True) -> Branch:
        """A new branch; `name` gets a number where it is taken."""
        ...

    def news(self) -> tuple[list[Branch], Iterator[tuple[str, Event]]] | None:
        """What was stored since it was last asked and not by this book, None (cheap) where that is nothing: branches
        that are new, and STEP and WRITES events with the branch that each stands in, parents' first. Raises
        Replaced."""
        ...

    @property
    def faults(self) -> Sequence[str]:
        """What could not be recorded of it, in words."""
        ...

    @property
    def start(self) -> int:
        """The position that a branch leaves at which has nothing of any checkpoint."""
        ...

    def busy(self, branch: str) -> bool:
        """Whether a turn is on in a branch, as far as the log knows."""
        ...

    def reserve(self, branch: str) -> bool:
        """Keeps a branch for the turn that is written to it next. False where another one is on in it."""
        ...

    def give_up(self, branch: str) -> None:
        """No turn is written to it after all."""
        ...

    def journal(self, branch: str) -> Any:
        """What a turn on that branch is written to (`lockstep.session.native.Journal`), None where there is none."""
        ...

    def close(self) -> None: ...


class Shelf(Protocol):
    """All threads of a saver."""

    def open(self, thread: str, *, create: bool) -> Book | None:
        """The thread's book from its beginning: `news` gives all that is in it. None where there is no such thread
        and none is to be made."""
        ...

    def threads(self) -> list[str]: ...

    def drop(self, thread: str) -> None:
        """Removes a thread, if there is one."""
        ...

    def rewrite(self, thread: str, write: Callable[[Book], None]) -> None:
        """Puts what `write` stores in an empty book in the place of the thread, at once; makes it where it is new."""
        ...

    def close(self) -> None:
        """Lets go of what it has open; it may be used again."""
        ...

    def forked(self) -> object:
        """In a forked child: what it had open, which is the parent's and neither to be used nor closed here."""
        ...


class MemoryBook:
    """A thread's events in memory."""

    faults: Sequence[str] = ()

    def __init__(self) -> None:
        self._branches: dict[str, Branch] = {MAIN: Branch(MAIN)}
        self._events: dict[str, list[Event]] = {MAIN: []}
        self._next = {MAIN: 1}
        self._unread = True

    def step(self, branch: str, lane: str, name: str, source: str, body: dict[str, Value], key: bytes, of: int) -> int:
        return self._add(branch, Event(Kind.STEP, 0, 0, lane, source, name, of, -1, key, body))

    def writes(self, branch: str, lane: str, node: str, task: str, of: int, body: Value) -> int:
        return self._add(branch, Event(_WRITES, 0, 0, lane, task, node, of, -1, b"", body))

    def fork(self, name: str, parent: str, pos: int, *, latest: bool = True) -> Branch:
        free = free_name(name, self._branches)
        branch = self._branches[free] = Branch(free, parent, pos, latest)
        self._events[free] = []
        self._next[free] = pos + 1
        return branch

    def news(self) -> tuple[list[Branch], Iterator[tuple[str, Event]]] | None:
        if not self._unread:
            return None
        self._unread = False
        found = [(name, event) for name, events in self._events.items() for event in events]
        return list(self._branches.values()), iter(found)

    @property
    def start(self) -> int:
        return 0

    def busy(self, branch: str) -> bool:
        return False

    def reserve(self, branch: str) -> bool:
        return True

    def give_up(self, branch: str) -> None:
        """Nothing was kept."""

    def journal(self, branch: str) -> Any:
        return None

    def close(self) -> None:
        self._unread = True

    def _add(self, branch: str, event: Event) -> int:
        pos = self._next[branch]
        self._next[branch] = pos + 1
        self._events[branch].append(msgspec.structs.replace(event, pos=pos))
        return pos


class MemoryShelf:
    """Threads that are gone with the process."""

    def __init__(self) -> None:
        self._books: dict[str, MemoryBook] = {}

    def open(self, thread: str, *, create: bool) -> MemoryBook | None:
        if create and thread not in self._books:
            self._books[thread] = MemoryBook()
        book = self._books.get(thread)
        if book is not None:
            book.close()
        return book

    def threads(self) -> list[str]:
        return list(self._books)

    def drop(self, thread: str) -> None:
        self._books.pop(thread, None)

    def rewrite(self, thread: str, write: Callable[[Book], None]) -> None:
        book = MemoryBook()
        write(book)
        self._books[thread] = book

    def close(self) -> None:
        """What is in memory stays."""

    def forked(self) -> object:
        return None


def free_name(name: str, taken: Any) -> str:
    """The name, with a number where it is taken."""
    free, number = name, 1
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free


_WRITES: Any = getattr(Kind, "WRITES", 13)
