"""Native runs: one thread of a framework, to which any process adds. Making one, its branches, and opening a stream.

All in the transaction of the caller, so that processes that come to a thread at once find or make the same one. The
stream of a branch has no gaps: its events are at consecutive positions, in the order in which they are stored.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

import msgspec

from lockstep.errors import AddressError, Code, StoreError
from lockstep.log.address import MAIN, called
from lockstep.log.cut import Cut
from lockstep.log.model import Event, Kind, Value
from lockstep.log.pack import encode_plain
from lockstep.log.sqlite import branches
from lockstep.log.sqlite.branches import Line
from lockstep.log.sqlite.read import Nothing, SqliteRun
from lockstep.log.steps import CHECKPOINTS, STEPS, is_native
from lockstep.log.store import ROOT
from lockstep.log.unpack import Expander


class Opened(msgspec.Struct, frozen=True):
    """A stream to write to. `after`: the position that its events come after. `is_new`: made just now."""

    stream: int
    base: bytes
    run: str
    branch: str
    started: int
    after: int
    is_new: bool


def find(connection: sqlite3.Connection, run: str) -> int | None:
    """The number of a native run. Raises StoreError LS203 where a run of that name is another sort of run."""
    found = connection.execute("SELECT id, meta FROM run WHERE name=?", (run,)).fetchone()
    if found is None:
        return None
    number, meta = found
    if not is_native(Expander(Nothing()).expand(meta)):
        raise StoreError(
            Code.UNWRITABLE, f"{run} is a recorded run, and no thread of a framework: lockstep rm {run} makes room"
        )
    return int(number)


def create(connection: sqlite3.Connection, run: str, meta: Mapping[str, Value], started: int) -> int:
    """Makes a native run with its branch main, and returns its number."""
    packed = encode_plain({"run": run, **meta, STEPS: CHECKPOINTS})
    number: int = connection.execute(
        "INSERT INTO run (name, started, origin, meta) VALUES (?,?,'',?) RETURNING id", (run, started, packed)
    ).fetchone()[0]
    connection.execute("INSERT INTO branch VALUES (NULL,?,?,0,0,0,0,x'',x'')", (number, MAIN))
    return number


def open_stream(connection: sqlite3.Connection, number: int, run: str, branch: str) -> Opened:
    """The main stream of a branch, made where there is none. Raises AddressError LS206."""
    line, started, meta = branches.to_write(connection, run, branch)
    found = connection.execute(
        "SELECT id, base FROM stream WHERE branch=? AND process=? ORDER BY id DESC LIMIT 1", (line.id, ROOT)
    ).fetchone()
    if found is not None:
        stream, base = found
        return Opened(stream, base, run, branch, started, line.pos, False)
    base = branches.base(line, started, meta, ROOT)
    stream = connection.execute(
        "INSERT INTO stream (branch, process, base, state, events, steps, size, faults, head)"
        " VALUES (?,?,?,1,0,0,0,0,?) RETURNING id",
        (line.id, ROOT, base, base),
    ).fetchone()[0]
    return Opened(stream, base, run, branch, started, line.pos, True)


def opening(opened: Opened, pid: int) -> Sequence[Event]:
    """What the stream of a thread begins with."""
    return (
        Event(Kind.LANE, -1, 0, "", ROOT, ROOT),
        Event(Kind.START, -2, 0, ROOT, body={"wall": opened.started, "pid": pid}),
    )


def place(stored: SqliteRun, found: Sequence[Line], parent: str, pos: int) -> tuple[Line, Cut, bytes]:
    """Where a branch would leave, while nobody can write: the branch that has the position itself, the cut, and the
    head of its chain there. Calls in flight at a cut are none of the branch's: its tasks run anew.

    Raises AddressError LS206."""
    run = stored.info.name
    path = branches.lineage(found, branches.pick(found, run, parent))
    while len(path) > 1 and pos <= path[-1].pos:
        path.pop()
    line = path[-1]
    main = line.main
    if main is None:
        raise AddressError(Code.NO_ADDRESS, f"{called(run, line.name)} holds nothing: it was cut before it began")
    last = line.pos + main.info.events
    if not line.pos < pos <= last:
        raise AddressError(
            Code.NO_ADDRESS, f"{called(run, parent)} has no position {pos}: its events are at 1 to {last}"
        )
    count = pos - line.pos
    steps = line.steps + stored.steps_before(main.info.id, count)
    cut = Cut(pos, line.seq + count, steps, last, ())
    return line, cut, stored.head(main.info.id, count)


def branches_of(connection: sqlite3.Connection, run: int) -> list[int]:
    """The numbers of a run's branches."""
    return [number for (number,) in connection.execute("SELECT id FROM branch WHERE run=?", (run,))]
