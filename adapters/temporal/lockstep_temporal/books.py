"""The runs that a process writes of workflows: one `Books` for each store, whoever has opened it.

    books = Books.of(store)
    recorder = books.open(workflow)                 goes on with what the log has, or makes the run
    found = books.place(run_id, activity_id)        where an activity stands that is under way

A run belongs to a chain of executions: a workflow id and the first run id. Workflow ids are used again, so an earlier
chain may have the name already, and then the run gets a number: `temporal/order-7-2`.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
from collections import OrderedDict
from typing import Any, ClassVar, Protocol

import msgspec

from lockstep.errors import StoreError
from lockstep.log import untapped
from lockstep.log.store import Store, locate, open_store
from lockstep.session import lanes
from lockstep.session.native.journal import ROOT, Journal
from lockstep.session.writer import start_thread
from lockstep_temporal import layout, naming, wording
from lockstep_temporal.recording import Recorder
from lockstep_temporal.wording import Clear, Coded, Namer, Wording

log = logging.getLogger("lockstep")

# Temporal takes a workflow that does not come back within two seconds for deadlocked. In seconds:
PATIENCE = 0.3  # that others who write to the store are waited for
TURN = 0.5  # that workflows of this process are waited for, which are recorded one at a time
AGAIN = 0.2  # until a store that could not be written is tried again: by a thread, no workflow waits for it meanwhile
AT_EXIT = 3.0
_REMEMBERED = 200  # executions: that of one that is on has its worker anyway
_MOST_WARM = 64  # of which much is in memory: some 0.5 MB each
_MOST_HELD = 64  # runs that are locked as growing at a time: each lock is an open file
_MOST_FAULTS = 100  # that are told; a worker runs for months


class Workflow(msgspec.Struct, frozen=True):
    """An execution, and how what it does is written.

    converter   the worker's DataConverter, None for the default one
    namer       how its commands are named as effects
    """

    namespace: str
    workflow_id: str
    run_id: str
    first_run_id: str
    workflow_type: str
    converter: Any = None
    namer: Namer = naming.effect_of
    origin: str = layout.WORKER
    task_queue: str = ""


class Work(Protocol):
    """What is recorded of one workflow."""

    def work(self) -> None:
        """Does all that is there to do. Raises StoreError where the store cannot be written."""
        ...


class Books:
    """See above. Usable from any thread.

    faults   what could not be recorded, in words
    """

    _all: ClassVar[dict[str, Books]] = {}
    _making: ClassVar[Any] = threading.Lock()

    def __init__(self, path: str) -> None:
        self.path = path
        self.faults: list[str] = []
        self._store: Store | None = None
        self._lock = threading.RLock()
        self._recorders: OrderedDict[str, Recorder] = OrderedDict()  # by run id
        self._held: OrderedDict[str, Recorder] = OrderedDict()  # likewise
        self._warm: OrderedDict[str, Recorder] = OrderedDict()  # likewise
        self._names: dict[tuple[str, str], str] = {}  # by workflow id and first run id
        self._told: set[str] = set()
        self._turn: Any = untapped.RLock()  # of who records
        self._late: dict[Work, None] = {}  # in their order
        self._trying = False  # whether a thread is at it

    @classmethod
    def of(cls, store: str | None = None) -> Books:
        """Those of a store, found as `lockstep.log.store.locate` does. Raises StoreError."""
        path = os.path.realpath(locate(store, create=True))
        with cls._making:
            found = cls._all.get(path)
            if found is None:
                found = cls._all[path] = Books(path)
            return found

    @classmethod
    def all(cls) -> list[Books]:
        """Those of this process."""
        return list(cls._all.values())

    @classmethod
    def forked(cls) -> None:
        """In a forked child: what is open, and who waits for it, is the parent's."""
        cls._all = {}
        cls._making = threading.Lock()

    @property
    def store(self) -> Store:
        """Opened when something is first written. Raises StoreError."""
        with self._lock:
            if self._store is None:
                self._store = open_store(self.path, create=True)
                self._store.hurry(PATIENCE)
            return self._store

    def warm(self) -> None:
        """Has the store open before the first workflow comes: its thread may take no longer than two seconds. Never
        raises."""
        try:
            import lockstep.debugger.newest  # noqa: F401
            import lockstep_temporal.recorded  # noqa: F401

            self.store.has_run("")
        except Exception as error:
            self.fault("workflows", error)

    def run(self, work: Work) -> None:
        """Has work of a workflow done now, or soon where the store cannot be written. Never raises."""
        if self._late or not self._turn.acquire(timeout=TURN):
            self._put_off(work)
            return
        try:
            work.work()
        except StoreError as error:
            self.fault("workflows for now, and tries again", error)
            self._put_off(work)
        finally:
            self._turn.release()

    def _put_off(self, work: Work) -> None:
        with self._lock:
            self._late[work] = None
            if self._trying:
                return
            self._trying = True
        atexit.register(self.settle, AT_EXIT)
        if not start_thread(self._try_again):
            self._trying = False

    def _try_again(self) -> None:
        lanes.INSIDE.set(True)
        while not self.settle(AGAIN):
            untapped.sleep(AGAIN)

    def settle(self, seconds: float) -> bool:
        """Does what was put off, as far as it can within this time. False: something is left."""
        deadline = untapped.monotonic() + seconds
        while True:
            with self._turn, self._lock:
                work = next(iter(self._late), None)
                if work is None:
                    self._trying = False
                    return True
                try:
                    work.work()
                    del self._late[work]
                except StoreError:
                    if untapped.monotonic() > deadline:
                        return False

    def open(self, workflow: Workflow) -> Recorder:
        """The recorder of an execution's run: in its newest branch, with all that is written there. Raises
        StoreError."""
        with self._lock:
            known = self._recorders.get(workflow.run_id)
            if known is None or known.is_open or known.journal.changed():
                known = self._opened(workflow)
        self.keep(workflow.run_id, known)
        return known

    def lengths(self, workflow: Workflow) -> frozenset[int]:
        """Of the history, at each of an execution's tasks in the log. Makes no run. Raises StoreError."""
        with self._lock:
            name = self._name(workflow)
            if not self.store.has_run(name):
                return frozenset()
        recorder = self.open(workflow)
        return frozenset(recorder.lengths) if recorder.run_id == workflow.run_id else frozenset()

    def keep(self, run_id: str, recorder: Recorder) -> None:
        """An execution is on in this process, and written by this recorder from now on: its run is growing."""
        with self._lock:
            self._recorders[run_id] = recorder
            self._recorders.move_to_end(run_id)
            held = self._held
            if not recorder.over and run_id not in held and recorder.journal.reserve_turn():
                held[run_id] = recorder
            while len(held) > _MOST_HELD:
                held.popitem(last=False)[1].close()
            while len(self._recorders) > _REMEMBERED:
                self._rests(next(iter(self._recorders)))

    def wrote(self, run_id: str, recorder: Recorder) -> None:
        """An execution was written just now. What journals keep in memory to write little is kept of the last ones."""
        with self._lock:
            warm = self._warm
            warm[run_id] = recorder
            warm.move_to_end(run_id)
            while len(warm) > _MOST_WARM:
                warm.popitem(last=False)[1].journal.rest_memory()

    def rests(self, run_id: str) -> None:
        """An execution is not on in this process any more."""
        with self._lock:
            recorder = self._recorders.get(run_id)
            held = self._held.pop(run_id, None)
            if held is not None:
                held.close()
            if recorder is not None and recorder.over:
                self._rests(run_id)

    def _rests(self, run_id: str) -> None:
        self._held.pop(run_id, None)
        self._warm.pop(run_id, None)
        recorder = self._recorders.pop(run_id)
        recorder.close()

    def recorder(self, run_id: str) -> Recorder | None:
        """That of an execution which is on in this process, or was lately."""
        with self._lock:
            return self._recorders.get(run_id)

    def place(self, run_id: str, activity_id: str) -> tuple[Journal, int] | None:
        """The branch that an activity stands in which a workflow of this process waits for, and the position of its
        BEGIN, that of a Journal. Waits for nobody: an event loop asks."""
        known = self._recorders.get(run_id)
        found = known.activity(activity_id) if known is not None else None
        return (known.journal, found.pos) if known is not None and found is not None and found.pos else None

    def fault(self, where: str, error: BaseException) -> None:
        """Something could not be recorded: the program goes on."""
        told = f"{where}: {type(error).__name__}: {error}"
        if told not in self.faults and len(self.faults) < _MOST_FAULTS:
            self.faults.append(told)
            log.warning("lockstep could not record %s", told, exc_info=not isinstance(error, StoreError))

    def close(self) -> None:
        """Lets go of the store; it may be used again."""
        self.settle(AT_EXIT)
        with self._lock:
            for recorder in self._recorders.values():
                recorder.close()
                recorder.journal.close()
            self._recorders.clear()
            self._held.clear()
            self._warm.clear()
            store, self._store = self._store, None
            if store is not None:
                store.close()

    def _opened(self, workflow: Workflow) -> Recorder:
        name = self._name(workflow)
        branch = newest(self.store, name) if self.store.has_run(name) else ROOT
        meta = layout.meta(
            workflow.workflow_id, workflow.first_run_id, workflow.namespace, workflow.workflow_type, workflow.origin,
            coded=_is_coded(workflow.converter),
        )  # fmt: skip
        journal = Journal.open(self.store, name, meta, branch=branch)
        if layout.native(journal.meta).get("first_run_id") != workflow.first_run_id:
            # Another process has made the run of that name just now, of another chain.
            journal.close()
            self._names.pop((workflow.workflow_id, workflow.first_run_id), None)
            return self._opened(workflow)
        said = wording_of(workflow, journal)
        return Recorder(journal, said) if journal.is_new else Recorder.resume(journal, said)

    def _name(self, workflow: Workflow) -> str:
        chain = workflow.workflow_id, workflow.first_run_id
        known = self._names.get(chain)
        number = 1
        while known is None:
            name = layout.run_name(workflow.workflow_id, number)
            if not self.store.has_run(name) or _is_of(self.store.run(name).meta, workflow):
                known = self._names[chain] = name
            number += 1
        if number > 2 and workflow.workflow_id not in self._told:
            self._told.add(workflow.workflow_id)
            log.warning(
                "workflow id %r has been used before, and %s is the run of that: this one is %s",
                workflow.workflow_id, layout.run_name(workflow.workflow_id), known,
            )  # fmt: skip
        return known


def newest(store: Store, run: str) -> str:
    """The branch of a run that its executions go on in. Raises StoreError."""
    from lockstep.debugger import newest as newest_

    return newest_.branch(store.run(run)) or ROOT


def wording_of(workflow: Workflow, journal: Journal) -> Wording:
    """How what an execution does is written."""
    codec = wording.codec_of(workflow.converter, workflow.namespace, workflow.workflow_id)
    if codec is None:
        return Clear(workflow.namer)
    return Coded(codec, wording.run_key(journal.secrets.vault), workflow.namer)


def _is_coded(converter: Any) -> bool:
    return converter is not None and converter.payload_codec is not None


def _is_of(meta: Any, workflow: Workflow) -> bool:
    """Whether a run is that of an execution's chain, and written in a way that can be gone on with."""
    told: dict[str, Any] = meta if isinstance(meta, dict) else {}
    same = layout.native(told).get("first_run_id") == workflow.first_run_id
    return same and (told.get("origin") == layout.INTERCEPTOR) == (workflow.origin == layout.INTERCEPTOR)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=Books.forked)
