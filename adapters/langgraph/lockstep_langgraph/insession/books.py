"""The threads of a session: checkpoints in memory, each of which is a step of the session's run too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

from lockstep.log.address import quote
from lockstep.log.model import Value
from lockstep_langgraph.adapter import adapter
from lockstep_langgraph.lanes import ROOT
from lockstep_langgraph.shelves import Book, MemoryBook, MemoryShelf

# Steps of checkpoints that are in memory and not told yet; None where each is told at once.
_untold: ContextVar[list[Callable[[], None]] | None] = ContextVar("lockstep_langgraph_untold", default=None)


@contextmanager
def told_after() -> Iterator[None]:
    """Steps of the checkpoints that this block puts are told after it. A replay waits there until it is their turn, and
    whoever's turn is first may need the lock of the thread that they are put under."""
    untold: list[Callable[[], None]] = []
    token = _untold.set(untold)
    try:
        yield
    finally:
        _untold.reset(token)
    for tell in untold:
        tell()


def native(thread: str, lane: str = ROOT) -> str:
    """The native lane of a thread, or of what a lane of its graph stands for."""
    return f"{adapter.name}/{quote(thread)}{lane.removeprefix(ROOT)}"


def told(value: Value) -> Value:
    """A state as a step has it. Which of a message's fields were set, to what they would be anyway, depends on who made
    the message: the client of a provider, or a record of what that said."""
    if isinstance(value, list):
        return [told(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("$") == "message":
        return {
            name: told(item) for name, item in value.items()
            if name != "$set" and not (item is None or item is False or item in ([], {}, "success"))
        }  # fmt: skip
    return {name: told(item) for name, item in value.items()}


class SessionBook(MemoryBook):
    """One thread. What was in it before the session is no step of this run, and neither is a checkpoint again that was
    one already (one that is only saved when its turn ends)."""

    def __init__(self, shelf: SessionShelf, thread: str) -> None:
        super().__init__()
        self._shelf = shelf
        self._thread = thread
        self._places: dict[tuple[str, int], int] = {}  # branch and position here -> position in the run
        self._quiet = False

    @contextmanager
    def from_before(self) -> Iterator[None]:
        """What is stored in this block was there before."""
        self._quiet = True
        try:
            yield
        finally:
            self._quiet = False

    def step(self, branch: str, lane: str, name: str, source: str, body: Value, key: bytes, of: int) -> int:
        assert isinstance(body, dict)
        lane = native(self._thread, lane)
        at, stepped = (lane, body["id"]), self._shelf.stepped
        pos = super().step(branch, lane, name, source, body, key, of)
        self._places[branch, pos] = stepped.get(at, 0)
        if not self._quiet and at not in stepped:
            stepped[at] = 0
            tell = partial(self._tell, at, name, {**body, "source": source}, (branch, pos), of)
            untold = _untold.get()
            if untold is None:
                tell()
            else:
                untold.append(tell)
        return pos

    def _tell(self, at: tuple[str, Value], name: str, state: Value, here: tuple[str, int], of: int) -> None:
        above = self._place(here[0], of)
        pos = self._shelf.session.checkpoint(at[0], name, told(state), above, wait=False)
        self._shelf.stepped[at] = self._places[here] = pos

    def _place(self, branch: str, pos: int) -> int:
        found = self._branches[branch]
        while found.parent and pos <= found.pos:
            found = self._branches[found.parent]
        return self._places.get((found.name, pos), 0)


class SessionShelf(MemoryShelf):
    """All threads of one saver in a session."""

    def __init__(self, session: Any, stepped: dict[tuple[str, Value], int]) -> None:
        super().__init__()
        self.session = session
        self.stepped = stepped  # native lane and id of each checkpoint that is a step -> its position in the run

    def open(self, thread: str, *, create: bool) -> MemoryBook | None:
        if create and thread not in self._books:
            self._books[thread] = SessionBook(self, thread)
        return super().open(thread, create=create)

    def rewrite(self, thread: str, write: Callable[[Book], None]) -> None:
        book = SessionBook(self, thread)
        with book.from_before():
            write(book)
        self._books[thread] = book
