"""What a store is: the protocol that readers and writers of runs rely on, and how one is found.

    store = open_store(create=True)
    run = store.create_run("refund", meta)             # "refund-2" where the name is taken
    appender = store.stream(run, "main")                # one stream for each writing process
    appender.append(events)                             # durable against kill -9 when it returns
    appender.close(RunState.COMPLETE)

    reader = store.run("refund")
    for seq, event in reader.heads(stream_id): ...      # without bodies
    reader.body(stream_id, seq)

SQLite is the one implementation so far (`lockstep.log.sqlite`), imported only when a store is opened.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, Self

import msgspec

from lockstep.errors import Code, StoreError
from lockstep.log import place
from lockstep.log.model import BranchInfo, Event, RunInfo, RunState, StreamInfo, Value
from lockstep.log.seal import Seal

ROOT = "main"  # the first process of a run

# The one key of a body that stands in for a value which could not be stored: {UNSTORABLE: why}.
UNSTORABLE = "lockstep.unstorable"

# Told of what went wrong inside the log and where; must not raise.
type Fault = Callable[[str, BaseException], None]


class Row(msgspec.Struct, frozen=True):
    """A stretch of a stream as it is stored: what `verify` checks.

    first    number (seq) of its first event
    stored   bytes of this row
    steps    steps closed in the stream up to its end, as stored; likewise `size` in bytes
    late     events up to its end that are stored after one of a later position
    blob     number of its first blob
    head     chain head after its last event, as stored
    """

    first: int
    count: int
    steps: int
    size: int
    late: int
    blob: int
    head: bytes
    stored: int
    events: tuple[Event, ...]
    bodies: tuple[bytes, ...]
    blobs: tuple[bytes, ...]


class Unreadable(msgspec.Struct, frozen=True):
    """A stretch of a stream that cannot be read: number of its first event and of events, as far as known."""

    first: int
    count: int
    error: StoreError


class StreamEnd(msgspec.Struct, frozen=True):
    """What a stream's own record says. `state` GROWING: not closed, and events, steps, size and head mean nothing.
    `number`: the state as it is stored and sealed."""

    base: bytes
    state: RunState
    number: int
    events: int
    steps: int
    size: int
    faults: int
    head: bytes
    seal: Seal | None


class Appender(Protocol):
    """Writes one stream. Used by one thread at a time; after a fork only in the process that opened it."""

    @property
    def stream(self) -> int: ...

    def append(self, events: Sequence[Event]) -> int:
        """Commits events in one transaction, with all that earlier calls could not commit. Returns how many
        events of the stream are durable. Raises StoreError: after LS203 nothing is lost and `append([])` tries
        again; after LS201 (the file was removed) and LS202 there is no use in that."""
        ...

    def close(self, state: RunState | None, faults: int = 0) -> None:
        """Ends the stream: COMPLETE or FAILED; None leaves it without an end (interrupted). `faults`: errors of
        ours that left something unrecorded. The appender is of no use afterwards, whatever is raised."""
        ...

    def abandon(self) -> None:
        """In a forked child: lets go of what belongs to the parent without closing it."""
        ...


class TurnLock(Protocol):
    """Held while a turn is open. The system frees it when the process dies."""

    def release(self) -> None: ...


class Shared(Protocol):
    """Writes the main stream of one branch of a native run, which other processes and threads may have open too.

    stream   its number: `store.run(run, branch)` reads it, by the number `reader.main` of the branch
    branch   its name; `run`: the run's
    started  nanoseconds since the epoch, when the run began: what `Event.at` counts from
    events   how many events the stream itself had when this process last wrote to it

    Positions are consecutive, and go on behind its parent's in a branch: the event at position `p` has the number (seq)
    `p - 1` for a reader of the branch, so `reader.body(reader.main, p - 1)` is its body. Usable from any thread, one at
    a time; in a forked child it goes on by itself, without the turns that the parent has open.
    """

    @property
    def stream(self) -> int: ...

    @property
    def run(self) -> str: ...

    @property
    def branch(self) -> str: ...

    @property
    def started(self) -> int: ...

    @property
    def events(self) -> int: ...

    def append(self, events: Sequence[Event], faults: int = 0) -> tuple[Event, ...]:
        """Stores events in one transaction, all or none, durable against kill -9 when it returns.

        Their positions are provisional: each another negative number, which `of` of a later event of the same call may
        name; a positive `of` stays as it is. Returned are the events as stored, at the next positions of the stream,
        whoever wrote last. A BEGIN of kind `turn` makes the run growing, its END says how it rests (`failed` after
        `error`, else `complete`): give that END to the `Shared` that the BEGIN was given to. `faults`: how many things
        could not be recorded since the last time, so that the run is incomplete.

        A STEP, WRITES or FORK whose body cannot be stored raises StoreError LS207; of other events such a body is
        replaced, and counts as a fault. Raises StoreError: LS203 (locked too long, disk full: the caller still has the
        events and may try again), LS205 after the run was deleted or replaced (`open_shared` again), LS201 after the
        file was removed.
        """
        ...

    def changed(self) -> bool:
        """Whether anything was written to the store since this was last asked, by another process or through another
        `Store` of this one; True when first asked. Costs a few microseconds, reads nothing."""
        ...

    def hold_turn(self) -> TurnLock | None:
        """The lock of the branch's open turn; None where another turn has it, in this process or another. Raises
        StoreError LS203."""
        ...

    def is_turn_held(self) -> bool:
        """Whether a turn of a living process holds it, this one included."""
        ...

    def rest_memory(self) -> None:
        """Lets go of what is kept in memory to write little: the next `append` reads the end of the stream again. For a
        process that has many open at once."""
        ...

    def set_state(self, state: RunState) -> None:
        """How the run rests, where the last turn's END does not say it: REFUSED."""
        ...

    def close(self) -> None:
        """Lets go of it. Everything was stored by `append`."""
        ...


class RunReader(Protocol):
    """Reads one branch of a run, lazily: each question is one short transaction. Usable from any thread.

    What a branch shares with its parent reads as if it were its own: its main stream has the parent's events, then
    its own, and the numbers (seq) of some may be missing. How it is stored is for `rows`, `end`, `head`, `blob`, `big`
    and `leaves` to say, with numbers of its own from 0.
    """

    @property
    def info(self) -> RunInfo: ...

    @property
    def meta(self) -> Value:
        """The run's, and what of it is another for the branch."""
        ...

    @property
    def streams(self) -> tuple[StreamInfo, ...]: ...

    @property
    def branch(self) -> str: ...

    @property
    def branches(self) -> tuple[BranchInfo, ...]:
        """All of the run, main first."""
        ...

    @property
    def main(self) -> int:
        """The number of the stream of the run's first process, 0 where there is none: the last, where that became
        another program."""
        ...

    def on(self, branch: str) -> RunReader:
        """Reads another branch of the run. Raises as `Store.run`."""
        ...

    @property
    def own(self) -> tuple[StreamInfo, ...]:
        """The streams that the branch itself wrote, with the number of their own events."""
        ...

    @property
    def fork(self) -> Event | None:
        """The FORK event that a branch begins with, with its body; None for main, and for a branch without events."""
        ...

    @property
    def stored(self) -> RunReader:
        """Reads the streams of all branches by their numbers, as they are stored."""
        ...

    def heads(self, stream: int, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, Event]]:
        """Events [start, stop) in storage order with their numbers (seq), and with `body` None, which
        `body(stream, seq)` gives. Reads no bodies."""
        ...

    def events(self, stream: int, start: int = 0, stop: int | None = None) -> Iterator[Event]:
        """Events [start, stop) with their bodies."""
        ...

    def body(self, stream: int, seq: int) -> Value:
        """The body of one event: a fresh value. Raises AddressError LS206 beyond the end."""
        ...

    def field(self, stream: int, seq: int, name: str) -> Value:
        """One field of a body that is a map, None where it has none of that name: makes nothing of the others."""
        ...

    def rows(self, stream: int) -> Iterator[Row | Unreadable]:
        """The stream as it is stored."""
        ...

    def end(self, stream: int) -> StreamEnd: ...

    def blob(self, stream: int, number: int) -> bytes: ...

    def big(self, stream: int, number: int) -> bytes: ...

    def leaves(self, stream: int) -> int:
        """Bytes of the stream's long texts, as stored."""
        ...

    def head(self, stream: int, count: int) -> bytes:
        """The head of the stream's chain after that many of its events."""
        ...

    def find_step(self, stream: int, step: int) -> tuple[int, int] | None:
        """By index: the number of an event, and the steps closed before it, from which on step `step` will be
        closed soon. None where the stream is not stored in the order of positions and must be read whole."""
        ...

    def header(self) -> tuple[int, bytes]:
        """The run's start (ns since the epoch) and meta as stored: what a stream's base is made of."""
        ...

    def check_file(self) -> list[str]:
        """What the storage's own integrity check has to say; empty when it is sound."""
        ...


class Store(Protocol):
    """A set of runs. Several threads and processes may use one store at the same time."""

    @property
    def path(self) -> str: ...

    def create_run(self, name: str, meta: Value) -> RunInfo:
        """A new run; `name` gets a number where it is taken. Raises StoreError LS203, LS207."""
        ...

    def create_branch(self, run: str, name: str, parent: str, pos: int) -> BranchInfo:
        """A new branch that has its parent's events up to a position; `name` gets a number where it is taken. One row,
        whatever it shares. Its first event is a FORK at the place after `pos`.

        A branch of what the parent itself shares becomes one of the branch that it shares it with. Raises StoreError
        LS205, LS203 while the parent is written, and AddressError LS206 for an unknown parent, a position that it does
        not have, and what cannot be a name.
        """
        ...

    def stream(self, run: RunInfo | str, process: str, fault: Fault | None = None, branch: str = "main") -> Appender:
        """A new stream of a branch, for this process to write. Raises StoreError LS203, LS205, AddressError LS206."""
        ...

    def open_shared(
        self, run: str, meta: Mapping[str, Value], branch: str = "main", *, fault: Fault | None = None
    ) -> Shared:
        """Opens the native run of exactly that name, for this process and others to write: made with `meta` where there
        is none, by one of them. `meta` gets `"steps": "checkpoints"`; its `run` is the name unless it says another. A
        new run begins with LANE main and START, at positions 1 and 2.

        Raises StoreError LS203 where a run of that name is a recorded one, LS205 for what cannot be a name; and for
        another branch than main LS205 where there is no such run, AddressError LS206 where it has no such branch.
        """
        ...

    def fork_shared(
        self, run: str, name: str, parent: str, pos: int, fork: Event, *, fault: Fault | None = None
    ) -> Shared:
        """A new branch of a native run, opened: one transaction makes it, its stream and its first event, and the run
        may be growing. It has its parent's events up to `pos`; `name` gets a number where it is taken: see `.branch`.
        Calls and turns in flight at the cut are not part of it.

        fork  the FORK event; its position is found here

        Raises as `create_branch`.
        """
        ...

    def hurry(self, seconds: float) -> None:
        """Whoever writes native runs through this store waits no longer than that for others who write: then StoreError
        LS203, also from `open_shared` and `fork_shared`. For a program that waits for it."""
        ...

    def replace_run(self, old: str, new: str) -> None:
        """Deletes a run, and gives its name to another, in one transaction. Who has the old one open is told by LS205
        at the next append. Raises StoreError LS205, and LS203 while the old one is growing."""
        ...

    def names(self) -> list[str]:
        """The names of all runs, newest first."""
        ...

    def runs(self) -> list[RunInfo]:
        """All runs, newest first. Reads no payloads."""
        ...

    def run(self, name: str, branch: str = "main") -> RunReader:
        """Raises StoreError LS205 where there is no such run, AddressError LS206 where it has no such branch."""
        ...

    def has_run(self, name: str) -> bool: ...

    def steady(self) -> AbstractContextManager[None]:
        """While it lasts, all that is read through this store is as it was at the first question, whoever writes: for
        what must be seen as a whole. Not for long: meanwhile the write-ahead log cannot be emptied."""
        ...

    def delete_run(self, name: str) -> None:
        """Frees a run's rows, those of its branches too. Raises StoreError LS205, and LS203 while it is written."""
        ...

    def delete_branch(self, run: str, name: str, *, below: bool = False) -> None:
        """Frees the rows of a branch other than main, with `below` also those of the branches that come from it.
        Raises StoreError LS205, AddressError LS206, and StoreError LS203 while it is written, or has others that come
        from it."""
        ...

    def close(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


def locate(path: str | os.PathLike[str] | None = None, *, create: bool = False) -> str:
    """The store that is meant (`lockstep.log.place`). Raises StoreError LS201 where there is none, unless
    it may be created."""
    given = os.fspath(path) if path is not None else None
    found = place.locate(given)
    if "://" in found:
        raise StoreError(Code.NOT_A_STORE, f"only files can be stores so far: {found}")
    if create or os.path.exists(found):
        return found
    if given or os.environ.get("LOCKSTEP_STORE"):
        raise StoreError(Code.NOT_A_STORE, f"no such store: {found}")
    raise StoreError(
        Code.NOT_A_STORE,
        f"no store found: no {place.DIRECTORY}/{place.FILE} in {os.getcwd()} or above it. "
        "Record a run first, or name a store with --store or LOCKSTEP_STORE",
    )


def open_store(path: str | os.PathLike[str] | None = None, *, create: bool = False) -> Store:
    """Opens a store, found as in `locate`. With `create` it may be new.

    Raises StoreError: LS201 not a store, LS202 damaged, LS203 cannot be read or written, LS204 of a newer
    format.
    """
    # Here and not above: importing sqlite3 costs 5 ms, which a program that records nothing should not pay.
    from lockstep.log.sqlite.store import SqliteStore

    found = locate(path, create=create)
    if create:
        _prepare(found)
    return SqliteStore.open(found, create=create)


def _prepare(path: str) -> None:
    directory = os.path.dirname(path)
    try:
        os.makedirs(directory, exist_ok=True)
        ignore = os.path.join(directory, ".gitignore")
        if os.path.basename(directory) == place.DIRECTORY and not os.path.exists(ignore):
            with open(ignore, "w", encoding="utf-8") as file:
                file.write("*\n")
    except OSError as error:
        raise StoreError(Code.UNWRITABLE, f"cannot make a store at {path}: {error}") from error
