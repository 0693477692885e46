"""What all clones of one checkpointer share: its threads, its codec, and which branch each turn writes.

LangGraph clones a saver when it compiles a graph (`with_allowlist`), so nothing that changes may be in the saver.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import msgspec

from lockstep.errors import Code, LockstepError, StoreError
from lockstep_langgraph import conflicts, interrupts, turns
from lockstep_langgraph.entries import Entry
from lockstep_langgraph.held import Threads
from lockstep_langgraph.shelves import MAIN, Shelf
from lockstep_langgraph.threads import Put, Thread, node_of

log = logging.getLogger("lockstep")

MOST_BRANCHES = 900  # that turns make in a thread: a run has 1,000 at most, and those of Lockstep's forks need room

_MOST_FAULTS = 100  # that are told; a process may run for months


class On(msgspec.Struct):
    """What a turn that is on has read and where it writes.

    base     id of the checkpoint that it went on from, None in a thread that was empty
    latest   whether that was what the thread had last, and not one that was asked for by its id
    branch   that it writes, "" until it has written
    named    that it was told to go on with
    begun    whether its beginning is in the log, or in line for it: before all that it puts
    """

    base: str | None
    latest: bool
    branch: str = ""
    named: str | None = None
    begun: bool = False


class Core:
    """The state of a checkpointer.

    elsewhere   gives the threads to use instead of its own, None to use those: what a session replays or forks goes
                to threads in memory, and never to the real ones
    """

    def __init__(
        self, shelf: Shelf, codec: Any, on_conflict: Literal["warn", "raise"] = "warn", *, paranoid: bool = False
    ) -> None:
        self.codec = codec
        self.on_conflict = on_conflict
        self.paranoid = paranoid
        # The core would hold itself, and what is installed for it, until the next collection.
        turn_on = weakref.WeakMethod(self._turn_on)
        self.own = Threads(shelf, lambda thread: bool((asked := turn_on()) and asked(thread)))
        self.elsewhere: Callable[[], Threads | None] | None = None
        self.faults: list[str] = []
        self._on: weakref.WeakKeyDictionary[turns.Turn, On] = weakref.WeakKeyDictionary()

    @property
    def threads(self) -> Threads:
        found = self.elsewhere() if self.elsewhere is not None else None
        return found if found is not None else self.own

    # What a turn asks

    def branch_for(self, turn: turns.Turn) -> Any:
        """The journal of the branch that a turn writes, where something of it is recorded before its first put."""
        with self.threads.using(turn.thread, create=True) as thread:
            assert thread is not None
            branch = self._decide(thread, turn, None, None, _name("loop", turn))
            return thread.book.journal(branch)

    def fault(self, where: str, error: BaseException) -> None:
        """Something of ours went wrong that the program is not to notice."""
        fault = f"{where}: {error}"
        if fault not in self.faults and len(self.faults) < _MOST_FAULTS:
            self.faults.append(fault)
            log.warning("lockstep could not record: %s", fault)

    # Reading

    def read(self, thread: Thread, ns: str, id: str | None, branch: str | None) -> Entry | None:
        """The checkpoint that is meant. Notes for the running turn where it goes on from."""
        thread.failed = None
        entry = thread.find(ns, id) if id else thread.newest(ns, branch)
        if id and entry is not None:
            thread.addressed.add((ns, id))
        elif id:
            log.warning(
                "thread %r has no checkpoint %s%s: what runs from there starts with an empty state",
                thread.id,
                id,
                f" in {ns!r}" if ns else "",
            )
        self._note(thread, ns, entry, branch, latest=not id)
        return entry

    def read_nothing(self, thread: str, ns: str) -> None:
        """A thread was read that does not exist."""
        turn = self._turn_to_note(thread, ns)
        if turn is not None:
            self._on[turn] = On(None, True)

    def _note(self, thread: Thread, ns: str, entry: Entry | None, named: str | None, *, latest: bool) -> None:
        """The first that a turn reads of its thread is what it goes on from."""
        turn = self._turn_to_note(thread.id, ns)
        if turn is None:
            return
        turn.base = entry.id if entry is not None else None
        on = self._on[turn] = On(turn.base, latest, named=named)
        end = self._end(thread, on, entry)
        if self.on_conflict == "raise" and end and (self._on_here(thread, turn, end) or thread.book.busy(end)):
            conflicts.met("raise", thread.id, turn.base)  # before anything of it has run

    def _turn_to_note(self, thread: str, ns: str) -> turns.Turn | None:
        turn = turns.running()
        known = turn is None or ns or turn.keeper is not self or turn.thread != thread or turn in self._on
        return None if known else turn

    # Writing

    def put(self, thread: str, put: Put) -> Entry:
        self._enter(thread, put.ns, put.parent, put.branch, str(put.metadata.get("source", "loop")))
        with self.threads.using(thread, create=True) as found:
            assert found is not None
            with self._kept(found):
                return found.put(put, self._branch(found, put), self.codec, paranoid=self.paranoid)

    def write(
        self,
        thread: str,
        ns: str,
        id: str,
        named: str | None,
        writes: Sequence[tuple[str, Any]],
        places: Mapping[str, int],
        task: str,
        path: str,
    ) -> None:
        turn = self._enter(thread, ns, id, named, "loop")
        with self.threads.using(thread, create=True) as found:
            assert found is not None
            with self._kept(found, known=found.kept(ns, id) is not None):
                branch = self._on[turn].branch if turn is not None else named
                if turn is not None and (entry := found.kept(ns, id)) is not None:
                    interrupts.look(turn, found.writes(entry, branch), writes, task, node_of(task, path))
                found.write(ns, id, writes, places, task, path, branch, self.codec)

    def _enter(self, thread: str, ns: str, parent: str | None, named: str | None, source: str) -> turns.Turn | None:
        """Has the running turn begin in the log, if it is this thread's and has not yet.

        Not under the thread's lock: who makes a turn's first call has the turn's, and asks for the thread's.
        """
        turn = turns.running()
        if turn is None or turn.keeper is not self or turn.thread != thread:
            return None
        on = self._on.get(turn)
        if on is None or not on.begun:
            with self.threads.using(thread, create=True) as found:
                assert found is not None
                with self._kept(found):
                    branch = self._decide(found, turn, None if ns else parent, named, _name(source, turn))
                    journal = found.book.journal(branch)
            if journal is not None:
                turn.enter(journal)
            self._on[turn].begun = True
        return turn

    def _branch(self, thread: Thread, put: Put) -> str:
        turn = turns.running()
        if turn is not None and turn in self._on and turn.thread == thread.id:
            return self._on[turn].branch
        parent = thread.kept(put.ns, put.parent)
        if put.ns:
            root = thread.kept("", (put.metadata.get("parents") or {}).get(""))
            return root.branch if root is not None else parent.branch if parent is not None else MAIN
        if parent is None:
            return put.branch if put.branch in thread.branches else MAIN
        if (end := thread.end_of(parent, put.branch)) is not None:
            return end
        name = _name(str(put.metadata.get("source", "loop")), None)
        if name == "branch" and (put.ns, parent.id) not in thread.addressed:
            conflicts.met(self.on_conflict, thread.id, parent.id)
            return self._leave(thread, name, parent)
        return self._fork(thread, name, parent)

    def _decide(self, thread: Thread, turn: turns.Turn, parent: str | None, named: str | None, name: str) -> str:
        """The branch that a turn writes: decided once, when it first has something to write."""
        on = self._on.get(turn)
        if on is None:
            on = self._on[turn] = On(parent, True, named=named)
        if on.branch:
            return on.branch
        base = thread.kept("", on.base)
        end = self._end(thread, on, base)
        if end is not None and not self._reserve(thread, turn, on, base, end):
            on.latest, end = True, None
        if end is None and on.latest:
            conflicts.met(self.on_conflict, thread.id, on.base)
            end = self._leave(thread, "branch", base)
        elif end is None:
            end = self._fork(thread, name, base) if base is not None else MAIN
        on.branch = end
        return end

    def _reserve(self, thread: Thread, turn: turns.Turn, on: On, base: Entry | None, branch: str) -> bool:
        """Keeps a branch for a turn. False where another one is on in it, or was when this one had read the thread."""
        if self._on_here(thread, turn, branch) or not thread.book.reserve(branch):
            return False
        thread.refresh()
        if self._end(thread, on, base) == branch:
            return True
        thread.book.give_up(branch)
        return False

    def _end(self, thread: Thread, on: On, base: Entry | None) -> str | None:
        """The branch that a turn goes on with, None where it leaves one."""
        if base is not None:
            return thread.end_of(base, on.named)
        if on.named in thread.branches:
            return on.named
        return MAIN if thread.newest("") is None else None

    def _leave(self, thread: Thread, name: str, base: Entry | None) -> str:
        """A new branch; the one that it would leave, where a thread has as many as it may."""
        if len(thread.branches) >= MOST_BRANCHES:
            return base.branch if base is not None else MAIN
        if base is None:
            return thread.fork(name, MAIN, thread.book.start)
        return thread.fork(name, base.branch, base.pos)

    def _fork(self, thread: Thread, name: str, parent: Entry) -> str:
        """A branch for what goes on from an earlier checkpoint because it was told to."""
        branch = self._leave(thread, name, parent)
        log.warning(
            "thread %r goes on from checkpoint %s in branch %r, where its latest checkpoint is from now on",
            thread.id,
            parent.id,
            branch,
        )
        return branch

    def _on_here(self, thread: Thread, turn: turns.Turn, branch: str) -> bool:
        """Whether another turn of this process is on in this branch."""
        return any(
            other is not turn and not other.over and other.thread == thread.id and on.branch == branch
            for other, on in list(self._on.items())
        )

    def _turn_on(self, thread: Thread) -> bool:
        return any(not turn.over and turn.thread == thread.id for turn in list(self._on))

    @contextmanager
    def _kept(self, thread: Thread, *, known: bool = False) -> Iterator[None]:
        """A fault of state, which a framework relies on, is raised: once as what it is, and short.

        known  what is written goes to a checkpoint that is kept, and counts whatever failed since
        """
        turn = turns.running()
        if turn is not None and (turn.keeper is not self or turn.thread != thread.id):
            turn = None
        failed = turn.failed if turn is not None else thread.failed
        if failed is not None and not known:
            code = failed.code if isinstance(failed, LockstepError) else Code.UNSTORABLE
            raise StoreError(
                code, f"nothing more of this turn is kept in thread {thread.id!r}, since something before was not"
            )
        try:
            yield
        except Exception as error:
            told = _told(thread.id, error)
            if told.code in (Code.NO_RUN, Code.NOT_A_STORE):
                self.threads.forget(thread)  # deleted meanwhile: what comes next begins anew
            if turn is not None:
                turn.failed = told
            else:
                thread.failed = told
            raise told from None


def _told(thread: str, error: Exception) -> LockstepError:
    if isinstance(error, conflicts.ConflictError):
        return error
    if isinstance(error, LockstepError):
        return type(error)(error.code, f"thread {thread!r}: {error.message}")
    return StoreError(Code.UNSTORABLE, f"thread {thread!r}: {type(error).__name__}: {error}")


def _name(source: str, turn: turns.Turn | None) -> str:
    """What a branch is called after."""
    if source in ("fork", "update"):
        return source
    request = turn.request if turn is not None else None
    return "fork" if isinstance(request, dict) and request.get("input", ...) is None else "branch"
