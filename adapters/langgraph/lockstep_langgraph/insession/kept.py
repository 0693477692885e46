"""What a session knows of the threads that its program uses, saver by saver.

While recording, a saver does what it does, and beside it is noted what the session itself has put into it. What it then
gives that is anything else was there before the session, or comes from another process, and is recorded as it is read.
In a replay or fork nothing reaches the saver: threads are kept in memory, and what was there before comes from the
record.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from lockstep.errors import LockstepError
from lockstep.log import threads as native_threads
from lockstep.log.model import Kind, Value
from lockstep.session import current as sessions
from lockstep.session.tape import Recorded
from lockstep_langgraph import calls
from lockstep_langgraph.adapter import adapter
from lockstep_langgraph.entries import Entry
from lockstep_langgraph.held import Threads
from lockstep_langgraph.insession.books import SessionShelf, told_after
from lockstep_langgraph.losses import Loss, Reports
from lockstep_langgraph.threads import Put, Thread
from lockstep_langgraph.values import Codec

STATE = "state"  # kind of the effects: what a thread held before


class Lenient(Codec):
    """Values of a saver that is not ours, as data: what is no data counts by its class. They come back as that saver
    has them, so what would be lost of them here is nobody's business."""

    def __init__(self) -> None:
        super().__init__()
        self.reports = _Silent()

    def dump(self, obj: Any, path: str = "", lost: list[Loss] | None = None) -> Value:
        try:
            return super().dump(obj, path, lost)
        except LockstepError:
            return calls.inert(obj)


class _Silent(Reports):
    def tell(self, losses: Iterable[Loss]) -> None:
        pass


class Kept:
    """What is known of one saver's threads.

    saver    it, or one of several that share their threads
    threads  what the session put into it, and what it was told of from before
    other    replays and forks: a saver in memory that stands in for one that is not ours
    """

    def __init__(self, session: Any, saver: Any, stepped: dict[tuple[str, Value], int]) -> None:
        self.saver = saver
        self._core = getattr(saver, "_core", None)
        self._lenient = Lenient()
        self.threads = Threads(SessionShelf(session, stepped))
        self.other: Any = None
        self._ahead: set[tuple[str, str]] = set()

    @property
    def codec(self) -> Codec:
        found: Codec = self._core.codec if self._core is not None else self._lenient
        return found

    def put(self, thread: str, put: Put, *, ahead: bool = False) -> None:
        """Notes a checkpoint: a step of the run. `ahead`: the saver gets it later."""
        id = str(put.checkpoint["id"])
        with told_after(), self.threads.using(thread, create=True) as found:
            assert found is not None
            if ahead or (put.ns, id) not in self._ahead:
                found.put(put, self._branch(found, put), self.codec)
            if ahead:
                self._ahead.add((put.ns, id))

    def has(self, ns: str, id: str) -> bool:
        """Whether a checkpoint was noted ahead."""
        return (ns, id) in self._ahead

    def write(
        self, thread: str, ns: str, id: str, writes: Any, places: Mapping[str, int], task: str, path: str
    ) -> None:
        """Notes what a task wrote."""
        with self.threads.using(thread, create=True) as found:
            assert found is not None
            found.write(ns, id, writes, places, task, path, None, self.codec)

    def learn(self, thread: str, put: Put, writes: list[tuple[str, str, Any]], places: Mapping[str, int]) -> None:
        """Notes what was there before."""
        with self.threads.using(thread, create=True) as found:
            assert found is not None
            book: Any = found.book
            newest = found.newest(put.ns)
            earlier = newest is not None and newest.id > str(put.checkpoint["id"])
            with book.from_before():
                # Not in front of what the session goes on from.
                branch = found.fork("earlier", "main", 0) if earlier else self._branch(found, put)
                found.put(put, branch, self.codec)
                for task, named in _by_task(writes):
                    found.write(put.ns, put.checkpoint["id"], named, places, task, "", None, self.codec)

    def expected(self, thread: str, ns: str, id: str | None, branch: str | None) -> tuple[str, int] | None:
        """The checkpoint that a saver would give, with the number of its tasks' writes, by what is known."""
        with self.threads.using(thread) as found:
            if found is None:
                return None
            entry = found.find(ns, id) if id else found.newest(ns, branch)
            return (entry.id, len(found.writes(entry, branch))) if entry is not None else None

    def ids(
        self, where: Any, everywhere: bool, filter: Any, before: str | None, limit: int | None
    ) -> list[tuple[str, str, str]]:
        """Thread, namespace and id of what a listing would give, by what is known."""
        found: list[tuple[str, str, str]] = []
        for id in self.threads.ids() if everywhere else [where.thread]:
            with self.threads.using(id) as thread:
                if thread is None:
                    continue
                for ns in thread.spaces() if where.any_ns else [where.ns]:
                    for each in thread.ordered(ns, None, before):
                        if self._fits(each, where, filter):
                            found.append((id, ns, each.id))
        return found if limit is None else found[:limit]

    def _fits(self, entry: Entry, where: Any, filter: Any) -> bool:
        if where.id is not None and entry.id != where.id:
            return False
        metadata = entry.metadata.make(self.codec) if filter else {}
        return not filter or all(metadata.get(name) == wanted for name, wanted in filter.items())

    def _branch(self, thread: Thread, put: Put) -> str:
        parent = thread.kept(put.ns, put.parent)
        if parent is None or thread.is_head(parent):
            return parent.branch if parent is not None else "main"
        known = thread.kept(put.ns, str(put.checkpoint["id"]))
        return known.branch if known is not None else thread.fork("branch", parent.branch, parent.pos)


def _by_task(writes: list[tuple[str, str, Any]]) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    found: dict[str, list[tuple[str, Any]]] = {}
    for task, channel, value in writes:
        found.setdefault(task, []).append((channel, value))
    yield from found.items()


class Session:
    """One core session, as the savers of its program see it.

    scratch  nothing may reach a saver: a replay or a fork
    """

    def __init__(self, session: Any) -> None:
        self.core = session
        self.scratch: bool = session.resumes or not session.recording
        self._kept: dict[tuple[str, Any], Kept] = {}
        self._identities: dict[int, tuple[weakref.ref[Any], tuple[str, Any]]] = {}  # of each saver, by its `id`
        self._stepped: dict[tuple[str, Value], int] = {}
        self._beyond: dict[bytes, list[Recorded]] | None = None
        self._touched: set[str] = set()

    def of(self, saver: Any) -> Kept:
        """What is known of a saver's threads."""
        saver = getattr(saver, "wrapped", saver)
        key = self._identity(saver)
        found = self._kept.get(key)
        if found is None:
            found = self._kept.setdefault(key, Kept(self.core, saver, self._stepped))
            if self.scratch:
                from lockstep_langgraph.insession import databases

                databases.served(self.core, saver)
        return found

    def _identity(self, saver: Any) -> tuple[str, Any]:
        """As `_identity`, asked once: a connection that another thread is just using does not tell its file."""
        found = self._identities.get(id(saver))
        if found is None or found[0]() is not saver:
            found = self._identities[id(saver)] = weakref.ref(saver), _identity(saver)
        return found[1]

    def left(self, key: bytes) -> Recorded | None:
        """Of a fork past its cut: the recorded answer to a question for a thread's state, each once."""
        found = self._later().get(key)
        return found.pop(0) if found else None

    def touched(self, native: str) -> bool:
        """Of a fork: whether the recorded run worked on a thread, so that the real one may hold what it did."""
        self._later()
        return native in self._touched

    def _later(self) -> dict[bytes, list[Recorded]]:
        if self._beyond is None:
            beyond: dict[bytes, list[Recorded]] = {}
            for tape in (self.core.tape, self.core.later):
                for lane in tape.lanes.values():
                    for effect in lane.effects:
                        begin = effect.begin
                        if begin.kind is Kind.STEP and (native := native_threads.native(begin)):
                            self._touched.add("/".join(native.split("/")[:2]))
                        elif begin.kind is Kind.BEGIN and begin.what == STATE and tape is not self.core.tape:
                            beyond.setdefault(begin.key, []).append(effect)
            self._beyond = beyond
        return self._beyond


def session() -> Session | None:
    """The core session that is on, None where none is."""
    core = sessions.session
    if core is None:
        return None
    found: Session | None = core.adapters.get(adapter.name)
    if found is None:
        found = core.adapters.setdefault(adapter.name, Session(core))
    return found


def _identity(saver: Any) -> tuple[str, Any]:
    """What tells whether two savers keep their threads in the same place."""
    core = getattr(saver, "_core", None)
    if core is not None:
        shelf = core.own.shelf
        return "lockstep", getattr(shelf, "path", None) or id(core)
    storage = getattr(saver, "storage", None)
    if storage is not None:
        return "memory", id(storage)
    connection = getattr(saver, "conn", None)
    if connection is not None:
        from lockstep_langgraph.insession import databases

        path = databases.path_of(connection)
        return ("database", os.path.realpath(path)) if path else ("connection", id(connection))
    kind = type(saver)
    return "class", f"{kind.__module__}.{kind.__qualname__}"
