"""The journal of a native run: what its framework's calls and checkpoints become, and where they are written.

    journal = Journal.open(".lockstep/store.db", "langgraph/t-91", meta)
    turn = journal.begin_turn("invoke", {"input": …, "config": …}, seed)
    call = journal.call("main/plan", "model")              # as every `Call`; runs for real
    pos = journal.step("main", "plan", "loop", record, digest, parent)     # durable when it returns
    place = journal.keep_place(); …; journal.step(…, place=place)          # closes where it was kept
    journal.writes("main/plan", "plan", task, pos, {"writes": […]})        # likewise
    turn.end("ok", values)
    journal.close()

Calls are stored within 5 ms, and at the latest with the next step, writes or end of a turn: in the order in which they
came. A fault of ours in a call never reaches the program; it is in `faults`. `step` and `writes` raise StoreError where
the store cannot be written: a framework relies on its state.

Any number of processes, threads and loops may have the same run open.
"""

from __future__ import annotations

import itertools
import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from msgspec.structs import replace

from lockstep.errors import Code, StoreError
from lockstep.log import untapped
from lockstep.log.model import Event, Kind, RunState, Value
from lockstep.log.native import LOOP
from lockstep.log.steps import TURN
from lockstep.log.vault import Vault, is_id, new_id
from lockstep.session import exceptions, rules
from lockstep.session.call import Call
from lockstep.session.effects import LiveCall
from lockstep.session.native.calls import UNCOUNTED, Strand, Uncounted
from lockstep.session.native.faults import add, worded
from lockstep.session.native.group import group
from lockstep.session.native.kept import Kept
from lockstep.session.native.moment import moment
from lockstep.session.native.told import Place, Told
from lockstep.session.native.turn import Turn
from lockstep.session.policy import EffectRules
from lockstep.session.writer import BOUND, Finish, weight

if TYPE_CHECKING:
    from lockstep.log.store import RunReader, Shared, Store
    from lockstep.session.native.unstored import Unstored

ROOT = "main"
_REMEMBERED = 4096  # calls that are over, of which a late child may still speak


class Journal:
    """One branch of a native run, being written. Is `Calls`: all of them run for real, and are recorded.

    run, branch         where it stands; `meta`: the run's, as stored
    base                the position that the branch left its parent at, where it was made here
    is_new              whether the run was made here, just now
    looped              lanes of checkpoints in which tasks have made one here
    faults              what went wrong in recording calls, in words
    """

    recording = True
    asked = False

    def __init__(
        self, shared: Shared | Unstored, secrets: Kept, *, run: str, meta: Mapping[str, Any], store: Store | None = None
    ) -> None:  # fmt: skip
        """For `open`, `fork` and `Memory`."""
        self.run = run
        self.branch = shared.branch
        self.base = 0
        self.is_new = False
        self.looped: frozenset[str] = frozenset()
        self.meta = dict(meta)
        self.secrets = secrets
        self.effect_rules: EffectRules = rules.recorded(self.meta.get("rules"))
        self.counts: dict[str, int] = {}
        self.faults: list[str] = []
        self._store = store
        self._shared = shared
        self._ahead = untapped.time_ns() - untapped.monotonic_ns() - shared.started
        self._numbers: Callable[[], int] = itertools.count(-1, -1).__next__
        self._strands: dict[str, Strand] = {}
        self._lock: Any = untapped.RLock()  # of all below, and of the stream
        self._told = Told()
        self._ready: list[Event] = []  # finished, and not stored yet: the store could not be written
        self._due = False
        self._real: dict[int, int] = {}  # provisional position -> position
        self._begun: dict[int, int] = {}  # the reverse, of what has not ended
        self._over: deque[int] = deque()  # provisional positions of what has
        self._lost: set[int] = set()  # those of calls whose beginning could not be stored
        self._reserved: Any = None  # the lock of a turn that is about to begin
        self._owns = False  # the store
        group.join(self)

    @classmethod
    def open(
        cls,
        store: str | Store | None,
        run: str,
        meta: Mapping[str, Value],
        *,
        branch: str = ROOT,
        secrets: Kept | None = None,
    ) -> Self:
        """Opens a branch of a native run for writing, and makes the run (exactly of that name) where there is none.

        store    an open one, which many journals can share: what one of them writes is then no news to the others. Or
                 its path, found as `lockstep.log.store.locate` does, and made where there is none
        meta     of a new run: "adapter", "native", "versions"
        secrets  those of another journal of the same run: a process needs them once a run

        Raises StoreError, AddressError.
        """
        from lockstep.log.store import open_store

        opened = open_store(store, create=True) if store is None or isinstance(store, str) else store
        told = {**meta, "vault": new_id(), "rules": rules.told(rules.here())}
        shared = opened.open_shared(run, told, branch)
        # Another process may have made the run, long ago or just now: what it says holds.
        known: Any = opened.run(run, branch).meta
        if secrets is None:
            vault = known.get("vault")
            kept = Vault(opened.path, str(vault)) if is_id(vault) else None
            secrets = Kept(rules.names(known.get("rules")), kept, os.environ)
        made = cls(shared, secrets, run=run, meta=known, store=opened)
        made._owns = opened is not store
        made.is_new = shared.events > 0
        return made

    # Calls.

    def call(self, lane: str, kind: str, within: Call | None = None) -> Call:
        """See `Calls`."""
        return LiveCall(self, self.strand(lane), kind, within)

    def strand(self, lane: str) -> Strand:
        """The lane of this name."""
        found = self._strands.get(lane)
        return found if found is not None else self._strands.setdefault(lane, Strand(lane))

    # What a `LiveCall` asks of its session.

    def position(self) -> int:
        """A provisional position: what is stored gets the next one of the stream in its place."""
        return self._numbers()

    def emit(
        self, kind: Kind, lane: str, pos: int, what: str = "", name: str = "", of: int = 0, tick: int = -1,
        body: Value = None, hidden: bool = False, finish: Finish | None = None, when: int = 0,
    ) -> None:  # fmt: skip
        """Takes an event, which is stored within 5 ms. The body must be a snapshot that nobody changes any more.
        `finish` makes of it what is stored, in the order emitted. `when` it was, on the system's monotonic clock in ns,
        where that was before now. Never raises."""
        try:
            at = moment() if kind is Kind.END or kind is Kind.PART else -1
            time = when + self._ahead if when else self.now()
            event = Event(kind, pos, time, lane, what, name, of, at, b"", body)
            self._told.add(event, finish or (None if hidden or body is None else self._hidden))
            if not self._due:
                self._due = True
                group.nudge(self)
        except Exception as error:
            self.fault(f"event {kind.name}", error)

    def log_of(self, lane: Any) -> Uncounted:
        return UNCOUNTED

    def count(self, kind: str) -> None:
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def fault(self, where: str, error: BaseException) -> None:
        """An error of our own in recording a call: the program goes on."""
        add(self.faults, worded(where, error))

    def now(self) -> int:
        """Nanoseconds since the run began."""
        return untapped.monotonic_ns() + self._ahead

    # Turns, steps and writes.

    def begin_turn(self, entry: str, request: Value, seed: bytes | None = None) -> Turn:
        """A native invocation begins: `entry` is the method, `request` its inert arguments. Stored with what comes
        next. `Turn.held` says whether it is the only one that is on in this branch."""
        seed = untapped.urandom(16) if seed is None else seed
        pos = self.position()
        lock, self._reserved = self._reserved, None
        if lock is None:
            lock = self._shared.hold_turn()
        body: Value = {"request": request, "seed": seed}
        self.emit(Kind.BEGIN, ROOT, pos, TURN, entry, body=body)
        return Turn(self, pos, seed, lock)

    def reserve_turn(self) -> bool:
        """Keeps the branch for the turn that begins next. False: another one is on, in some process."""
        if self._reserved is None:
            self._reserved = self._shared.hold_turn()
        return self._reserved is not None

    def give_up_turn(self) -> None:
        """It does not begin after all."""
        lock, self._reserved = self._reserved, None
        if lock is not None:
            lock.release()

    def keep_place(self) -> Place:
        """A step closes here, with a record that `step` is told later, or never: what is told from now on waits until
        then, or until its turn ends."""
        return self._told.keep()

    def step(
        self, lane: str, name: str, source: str, body: Value, key: bytes, of: int = 0, place: Place | None = None
    ) -> int:  # fmt: skip
        """A checkpoint: closes a step. Durable when it returns, with all that was told before; of one whose place was
        kept, once the places before it have been filled.

        lane    of its namespace
        name    names of the nodes that made it, joined by ", "
        source  what the framework calls its kind: input, loop, update, fork
        body    its record, inert; secrets in it are hidden already (`hide`)
        key     digest of its state
        of      position of its parent's step, 0 for none
        place   where it closes; here if not told

        Returns its position, which may be a provisional one where its place was kept. Raises StoreError.
        """
        event = Event(Kind.STEP, self.position(), self.now(), lane, source, name, of, -1, key, body)
        pos = self._write(event) if place is None else self._fill(place, event)
        if source == LOOP and lane not in self.looped:
            self.looped = self.looped | {lane}
        return pos

    def writes(self, lane: str, node: str, task: str, of: int, body: Value) -> int:
        """What a task of a step has written, of which `of` is the position. Otherwise as `step`."""
        return self._write(Event(Kind.WRITES, self.position(), self.now(), lane, task, node, of, -1, b"", body))

    def append(self, events: Sequence[Event], faults: int = 0) -> tuple[Event, ...]:
        """Events that belong together, in one transaction with all that was told before. Durable when it returns.

        events   positions are provisional (`position`), `of` may name one of them, or that of any call that was begun
                 here; secrets in them are hidden already (`hide`)
        faults   of ours, since the last time: what was recorded is incomplete

        Returns them as stored. Raises StoreError.
        """
        with self._lock:
            return self._append(events, faults)[-len(events) :]

    def rest(self, state: RunState) -> None:
        """How the branch rests, where the END of a turn cannot say it since another process began that. Raises
        StoreError."""
        self._shared.set_state(state)

    def rest_memory(self) -> None:
        """For a journal that will not be written to for a while: keeps as little of it in memory as can be."""
        self._shared.rest_memory()

    def end_turn(self, pos: int, status: str, value: Any, state: RunState | None) -> None:
        """See `Turn.end`."""
        body: Value = None
        self._give_up_places()
        try:
            body = self.hide(exceptions.encode(value) if isinstance(value, BaseException) else value)
        except Exception as error:
            self.fault("what a turn returned", error)
        try:
            self.store_told()
            if pos in self._lost:
                return
            self._write(Event(Kind.END, self.position(), self.now(), ROOT, status, "", pos, -1, b"", body))
            if state is not None:
                self._shared.set_state(state)
        except Exception as error:
            self.fault("end of a turn", error)

    def hide(self, value: Value) -> Value:
        """The value with its secrets hidden: as it is stored. The same object where it has none. All of it is
        searched, so give it what is new."""
        return self.secrets.hide(value)

    def reveal(self, value: Value) -> Value:
        """The reverse, exactly; the same object where nothing is hidden."""
        return self.secrets.reveal(value)

    def place(self, pos: int) -> int:
        """The position under which the event of a provisional one was stored; that itself before."""
        return self._real.get(pos, pos)

    # Branches and readers.

    def fork(
        self, name: str, at: int, *, latest: bool, origin: str = "", told: Mapping[str, Value] | None = None
    ) -> Journal:  # fmt: skip
        """A new branch that has this one's events up to position `at`, called `name`, or `name-2` … where that is
        taken.

        latest  whether it may be the thread's newest: the user made it, and no fork or bisect of ours
        origin  the address that it leaves from, without the run, as ":7"
        told    what its FORK event says beside: "edits", "live", "tail", "until"

        Raises StoreError, AddressError.
        """
        self.flush()
        body: dict[str, Value] = {"edits": {}, "live": [], "tail": "", "upto": at, "until": at, "latest": latest}
        more: Any = self.hide(dict(told or {}))
        event = Event(Kind.FORK, self.position(), self.now(), ROOT, "", origin, 0, -1, b"", {**body, **more})
        branch = self._branch(name, at, event)
        branch.base = at
        return branch

    def _branch(self, name: str, at: int, fork: Event) -> Journal:
        assert self._store is not None
        shared = self._store.fork_shared(self.run, name, self.branch, at, fork)
        return type(self)(shared, self.secrets, run=self.run, meta=self.meta, store=self._store)

    def reader(self) -> RunReader:
        """Reads what is stored of the branch. Raises StoreError."""
        assert self._store is not None
        return self._store.run(self.run, self.branch)

    @property
    def store(self) -> str:
        """The store's path, "" where there is none."""
        return self._store.path if self._store is not None else ""

    @property
    def is_turn_held(self) -> bool:
        """Whether a turn of this branch is on, in any process."""
        return self._shared.is_turn_held()

    def changed(self) -> bool:
        """Whether somebody else has written to the store since this was asked last. Takes microseconds."""
        return self._shared.changed()

    # Storing.

    def flush(self) -> bool:
        """Stores all that was told. False: the store cannot be written now."""
        self.store_told()
        return not self._ready

    def close(self) -> None:
        """Stores all that was told, and lets go of the stream; and of the store, with all that it forked into, if it
        has opened that itself. What a call that is still open tells later is stored all the same. Faults are in
        `faults`."""
        self._give_up_places()
        self.store_told()
        with self._lock:
            self.give_up_turn()
            try:
                self._shared.close()
                if self._owns and self._store is not None:
                    self._store.close()
            except Exception as error:
                self.fault("closing the run", error)

    def store_told(self) -> bool:
        """Stores what calls have told. Never raises: what goes wrong is a fault. False: it is worth trying again."""
        try:
            with self._lock:
                self._append(())
        except Exception as error:
            self.fault("storing calls", error)
            if isinstance(error, StoreError) and error.code is Code.UNWRITABLE:
                return not self._ready
            self._drop()
        return True

    def _write(self, event: Event) -> int:
        with self._lock:
            return self._append((event,))[-1].pos

    def _fill(self, place: Place, event: Event) -> int:
        with self._lock:
            place.fill(event)
            self._append(())
            return self.place(event.pos)

    def _give_up_places(self) -> None:
        with self._lock:
            self._told.give_up()

    def _append(self, own: Sequence[Event], faults: int = 0) -> tuple[Event, ...]:
        self._due = False
        ready = [*self._ready, *self._told.take(self._finished)]
        events = [*ready, *own]
        if not events:
            return ()
        self._ready = []
        try:
            if self._real:
                events = [self._placed(event) for event in events]
            stored = self._shared.append(events, faults) if faults else self._shared.append(events)
        except BaseException:
            self._keep(ready)
            raise
        self._note(events, stored)
        return stored

    def _finished(self, event: Event, finish: Finish | None) -> Event | None:
        if self._lost and event.of in self._lost:
            return None
        try:
            return event if finish is None else finish(event)
        except Exception as error:
            self.fault(f"{event.kind.name.lower()} of {event.what} {event.name}".rstrip(), error)
            if event.kind is Kind.BEGIN:
                self._lost.add(event.pos)
            return None

    def _placed(self, event: Event) -> Event:
        real = self._real.get(event.of) if event.of < 0 else None
        return event if real is None else replace(event, of=real)

    def _note(self, events: Iterable[Event], stored: Iterable[Event]) -> None:
        """Keeps where calls began and steps closed, as long as something of them may follow."""
        real = self._real
        for event, placed in zip(events, stored, strict=True):
            if event.kind is Kind.BEGIN:
                real[event.pos] = placed.pos
                self._begun[placed.pos] = event.pos
            elif event.kind is Kind.STEP:
                real[event.pos] = placed.pos
                self._over.append(event.pos)
            elif event.kind is Kind.END and (begun := self._begun.pop(placed.of, 0)):
                self._over.append(begun)
        while len(self._over) > _REMEMBERED:
            real.pop(self._over.popleft(), None)

    def _keep(self, ready: list[Event]) -> None:
        """Of a store that cannot be written: what waits for it, unless that has become too much."""
        self._ready = ready
        if sum(weight(event.body) for event in ready) > BOUND:
            megabytes = BOUND >> 20
            self.fault("storing calls", StoreError(Code.UNWRITABLE, f"more than {megabytes} MB wait for the store"))
            self._drop()

    def _drop(self) -> None:
        with self._lock:
            self._lost.update(event.pos for event in self._ready if event.kind is Kind.BEGIN)
            self._ready = []

    def _hidden(self, event: Event) -> Event:
        return replace(event, body=self.hide(event.body))

    # Forked processes.

    def before_fork(self) -> None:
        self._lock.acquire()

    def after_in_parent(self) -> None:
        self._lock.release()

    def after_in_child(self) -> None:
        """What the parent had not stored yet, it will."""
        self._lock = untapped.RLock()
        self._told.clear()
        self._ready.clear()
        self._due = False
        self.secrets.forked_child()
