"""The threads that a saver has in memory: as many as are in use, and not many more."""

from __future__ import annotations

import os
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lockstep.errors import Code, StoreError
from lockstep.log import untapped
from lockstep_langgraph.shelves import Book, Replaced, Shelf
from lockstep_langgraph.threads import Thread

MOST_THREADS = 256
MOST_WEIGHT = 150_000  # checkpoints (4 each) and writes: some 200 MB of chats


class Threads:
    """Threads of one shelf. What was not used for the longest is let go, and read again when it is asked for."""

    def __init__(self, shelf: Shelf, busy: Callable[[Thread], bool] = lambda _: False) -> None:
        self.shelf = shelf
        self._busy = busy
        self._lock = untapped.allocate_lock()
        self._held: OrderedDict[str, Thread] = OrderedDict()
        _all.add(self)

    @contextmanager
    def using(self, id: str, *, create: bool = False) -> Iterator[Thread | None]:
        """The thread, locked and as it is now. None where there is none and none is to be made."""
        while True:
            thread = self._find(id, create=create)
            if thread is None:
                yield None
                return
            with thread.lock:
                if thread.closed:
                    continue
                try:
                    thread.refresh()
                except Replaced:
                    self.forget(thread)
                    continue
                yield thread
                return

    def ids(self) -> list[str]:
        return self.shelf.threads()

    def faults(self) -> list[str]:
        """What could not be recorded of the threads that are in memory, in words."""
        return [fault for thread in list(self._held.values()) for fault in thread.book.faults]

    def drop(self, id: str) -> None:
        self._let_go(id)
        self.shelf.drop(id)

    def rewrite(self, id: str, write: Callable[[Book], None]) -> None:
        """Puts other events in a thread's place; whoever has its lock may do so."""
        self._let_go(id)
        self.shelf.rewrite(id, write)

    def forget(self, thread: Thread) -> None:
        """The thread is read again when it is asked for."""
        self._close(thread.id)

    def _let_go(self, id: str) -> None:
        """Raises StoreError LS203 while a turn is on in it: what that still puts would have no place."""
        with self._lock:
            thread = self._held.get(id)
        if thread is not None and self._busy(thread):
            raise StoreError(
                Code.UNWRITABLE, f"a turn is on in thread {id!r}, which can be replaced or deleted after that"
            )
        self._close(id)

    def close(self) -> None:
        for id in list(self._held):
            self._close(id)
        self.shelf.close()

    def forked(self) -> None:
        """In a forked child: another thread may have held a lock, and what was not stored yet the parent will store."""
        _parents.append((dict(self._held), self.shelf.forked()))
        self._lock = untapped.allocate_lock()
        self._held = OrderedDict()

    def _close(self, id: str) -> None:
        with self._lock:
            thread = self._held.pop(id, None)
        if thread is not None:
            with thread.lock:
                thread.closed = True
                thread.book.close()

    def _find(self, id: str, *, create: bool) -> Thread | None:
        with self._lock:
            thread = self._held.get(id)
            if thread is not None:
                self._held.move_to_end(id)
                return thread
            book = self.shelf.open(id, create=create)
            if book is None:
                return None
            thread = self._held[id] = Thread(id, book)
            self._trim(thread)
            return thread

    def _trim(self, kept: Thread) -> None:
        weight = sum(thread.weight for thread in self._held.values())
        for id, thread in list(self._held.items()):
            if len(self._held) <= MOST_THREADS and weight <= MOST_WEIGHT:
                return
            if thread is kept or self._busy(thread) or not thread.lock.acquire(blocking=False):
                continue
            try:
                if not thread.waiting:
                    thread.closed = True
                    thread.book.close()
                    del self._held[id]
                    weight -= thread.weight
            finally:
                thread.lock.release()


_all: weakref.WeakSet[Threads] = weakref.WeakSet()
_parents: list[object] = []  # what belongs to a parent is neither used in its child nor closed there


def _forked() -> None:
    for threads in list(_all):
        threads.forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
