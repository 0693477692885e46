"""The branches of a run as they are stored, how each comes from main, and making and deleting them.

A branch is one row and the streams that it writes itself; what it shares is read where it is. What a file says of its
branches is looked at before it is followed: it may have been made to lead in a circle, or nowhere.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec

from lockstep.errors import AddressError, Code, StoreError
from lockstep.log import chain, cut
from lockstep.log.address import LONGEST, MAIN, called, is_branch
from lockstep.log.cut import Cut, Flying, cuts, pack, unpack
from lockstep.log.forked import ForkedRun, Part
from lockstep.log.model import BranchInfo, Kind, RunInfo, RunState, StreamInfo
from lockstep.log.roll import LAUNCH
from lockstep.log.sqlite import schema
from lockstep.log.sqlite.read import STATES, Ask, SqliteRun
from lockstep.log.store import ROOT, RunReader

MOST = 1000  # branches of a run

# (events, steps, bytes, whether its writer lives) of a stream that has no end.
type Open = Callable[[int], tuple[int, int, int, bool]]


class Stream(msgspec.Struct, frozen=True):
    """One stream of a branch, as far as it has come."""

    info: StreamInfo
    state: RunState
    steps: int
    size: int
    faults: int


class Line(msgspec.Struct):
    """One row of `branch`, with its streams."""

    id: int
    name: str
    parent: int
    pos: int
    seq: int
    steps: int
    head: bytes = b""
    flying: bytes = b""
    streams: list[Stream] = msgspec.field(default_factory=list)

    @property
    def main(self) -> Stream | None:
        """The stream of its first process: the last, where that became another program."""
        return next((one for one in reversed(self.streams) if one.info.process == ROOT), None)

    @property
    def state(self) -> RunState:
        if any(one.state is RunState.GROWING for one in self.streams):
            return RunState.GROWING
        first = next((one for one in self.streams if self.parent == 0 or one.info.process == ROOT), None)
        return first.state if first is not None else RunState.INTERRUPTED


def lines(ask: Ask, run: int, opened: Open) -> list[Line]:
    """All branches of a run, main first. Raises StoreError."""
    # One question for a run without other branches; of the others what is long is asked once for each.
    found: dict[int, Line] = {}
    for branch, name, parent, pos, seq, steps, stream, process, *told in ask(
        "SELECT b.id, b.name, parent, pos, seq, b.steps, coalesce(stream.id, 0), coalesce(process, ''),"
        " coalesce(state, 0), coalesce(events, 0), coalesce(stream.steps, 0), coalesce(size, 0), coalesce(faults, 0)"
        " FROM (SELECT * FROM branch WHERE run=? ORDER BY id LIMIT ?) AS b LEFT JOIN stream ON stream.branch=b.id"
        " ORDER BY stream.id",
        (run, MOST + 1),
        "itiiiiitiiiii",
    ):
        line = found.setdefault(branch, Line(branch, name, parent, pos, seq, steps))
        if stream:
            line.streams.append(_stream(opened, stream, process, *told))
    if len(found) > MOST:
        raise StoreError(Code.DAMAGED, f"a run has more than {MOST} branches")
    if len({line.name for line in found.values()}) < len(found):
        raise StoreError(Code.DAMAGED, "two branches of a run have one name")
    if len(found) > 1:
        for branch, head, flying in ask("SELECT id, head, flying FROM branch WHERE run=? LIMIT ?", (run, MOST), "ibb"):
            if branch in found:
                found[branch].head, found[branch].flying = head, flying
    return sorted(found.values(), key=lambda line: (line.name != MAIN, line.id))


def _stream(
    opened: Open, number: int, process: str, state: int, events: int, steps: int, size: int, faults: int
) -> Stream:
    told = STATES.get(state, RunState.INTERRUPTED)
    if state == 0:
        events, steps, size, live = opened(number)
        told = RunState.GROWING if live else RunState.INTERRUPTED
    return Stream(StreamInfo(number, process, events), told, steps, size, faults)


def lineage(found: Sequence[Line], line: Line) -> list[Line]:
    """The branches that a branch comes from, main first and itself last. Raises StoreError LS202."""
    by_id = {one.id: one for one in found}
    path = [line]
    while path[-1].parent:
        if len(path) > len(found):
            raise StoreError(Code.DAMAGED, f"branch {line.name} comes from itself")
        path.append(_parent(by_id, path[-1]))
    path.reverse()
    _begins(path[0])
    for above, below in pairwise(path):
        _leaves(above, below)
    return path


def _parent(by_id: Mapping[int, Line], line: Line) -> Line:
    above = by_id.get(line.parent)
    if above is None:
        raise StoreError(Code.DAMAGED, f"branch {line.name} comes from one that is not there")
    return above


def _begins(line: Line) -> None:
    if line.name != MAIN:
        raise StoreError(Code.DAMAGED, f"branch {line.name} comes from nowhere")
    if line.pos or line.seq or line.steps:
        raise StoreError(Code.DAMAGED, f"branch {MAIN} leaves another one")


def _leaves(above: Line, below: Line) -> None:
    main = above.main
    events = main.info.events if main is not None else 0
    if (
        not above.seq < below.seq <= above.seq + events
        or not above.pos < below.pos
        or not above.steps <= below.steps <= below.seq
    ):
        raise StoreError(Code.DAMAGED, f"branch {below.name} leaves {above.name} where that has no event")


def _problems(found: Sequence[Line]) -> dict[int, str]:
    """By branch, what is wrong with where it comes from. As `lineage`, but each is looked at once."""
    by_id = {line.id: line for line in found}
    wrong: dict[int, str] = {}
    for line in found:
        path: list[Line] = []
        problem = ""
        entered: set[int] = set()
        while line.id not in wrong:
            path.append(line)
            entered.add(line.id)
            try:
                if not line.parent:
                    _begins(line)
                    break
                above = _parent(by_id, line)
                _leaves(above, line)
            except StoreError as error:
                problem = error.message
                break
            if above.id in entered:
                problem = f"branch {line.name} comes from itself"
                break
            line = above
        problem = problem or wrong.get(line.id, "")
        wrong.update((one.id, problem) for one in path)
    return wrong


def infos(found: Sequence[Line]) -> tuple[BranchInfo, ...]:
    """What is told of each branch."""
    names = {line.id: line.name for line in found}
    problems = _problems(found)
    told = [
        BranchInfo(
            id=line.id, name=line.name, parent=names.get(line.parent, ""), pos=line.pos, base=line.seq,
            state=line.state, steps=line.steps + sum(one.steps for one in line.streams),
            size=sum(one.size for one in line.streams), incomplete=sum(one.faults for one in line.streams),
            streams=tuple(one.info for one in line.streams), before=line.steps, head=line.head,
            flying=line.flying, problem=problems[line.id],
        )
        for line in found
    ]  # fmt: skip
    return tuple(told)


def pick(found: Sequence[Line], run: str, name: str) -> Line:
    """The branch of that name. Raises AddressError LS206."""
    for line in found:
        if line.name == name:
            return line
    known = ", ".join(line.name for line in found[:20]) + (", …" if len(found) > 20 else "")
    raise AddressError(Code.NO_ADDRESS, f"run {run} has no branch {name}. It has: {known}")


def reader(stored: SqliteRun, found: Sequence[Line], name: str) -> ForkedRun:
    """Reads a branch that is not main; `stored` reads main. Raises AddressError LS206, StoreError LS202."""
    line = pick(found, stored.info.name, name)
    path = lineage(found, line)
    parts: list[Part] = []
    for above, below in zip(path, [*path[1:], None], strict=True):
        main = above.main
        part = Part(main.info.id if main is not None else 0, above.seq, above.steps)
        if below is not None:
            part = msgspec.structs.replace(part, stop=below.seq, cut=below.pos, flying=below.flying)
        parts.append(part)
    own = line.main
    main_id = own.info.id if own is not None else parts[-2].stream
    whole = StreamInfo(main_id, ROOT, line.seq + (own.info.events if own is not None else 0))
    bare = msgspec.structs.replace(stored.info, branch=name, streams=(whole,))
    # Which processes are shared is asked of what is shared by itself.
    shared = _processes(ForkedRun(stored, bare, main_id, parts), main_id, path)
    others = [one for one in line.streams if one is not own]
    info = RunInfo(
        id=stored.info.id, name=stored.info.name, state=line.state, started=stored.info.started,
        steps=line.steps + sum(one.steps for one in [*shared, *line.streams]),
        size=sum(one.size for one in line.streams),
        incomplete=sum(one.faults for above in path for one in above.streams),
        streams=(whole, *(one.info for one in [*shared, *others])), origin=stored.info.origin, branch=name,
        branches=stored.info.branches,
    )  # fmt: skip
    return ForkedRun(stored, info, main_id, parts)


def _processes(read: ForkedRun, main: int, path: Sequence[Line]) -> list[Stream]:
    """The streams of other processes that are shared: those of processes that began before the cut."""
    shared: list[Stream] = []
    lanes: dict[str, int] | None = None
    for above, below in pairwise(path):
        others = [one for one in above.streams if one.info.process not in (ROOT, LAUNCH)]
        if others and lanes is None:
            lanes = {event.name: event.pos for _, event in read.heads(main) if event.kind is Kind.LANE}
        names = sorted({one.info.process for one in others}, key=len)
        for one in others:
            process = one.info.process
            # A child's child goes with the child.
            first = next(name for name in names if process == name or process.startswith(f"{name}/"))
            began = (lanes or {}).get(first)
            if began is not None and began <= below.pos:
                shared.append(one)
    return shared


def check_name(name: str) -> None:
    """Raises AddressError LS206 for what cannot be a branch's name."""
    if not is_branch(name):
        raise AddressError(
            Code.NO_ADDRESS,
            f"not a name for a branch: {name[:LONGEST]!r}. It may be up to {LONGEST} printable characters without "
            "@, : and /",
        )


def place(found: Sequence[Line], read: Callable[[str], RunReader], run: str, parent: str, pos: int) -> tuple[Line, Cut]:
    """Where a branch would leave: the branch that has the position itself, and the cut through its main stream.

    `read` makes a reader of a branch. Raises AddressError LS206, StoreError LS203 of a branch that grows.
    """
    line = pick(found, run, parent)
    if line.state is RunState.GROWING:
        raise StoreError(Code.UNWRITABLE, f"{called(run, parent)} is still being written: fork it when it has ended")
    path = lineage(found, line)
    # What it shares with its own parent, it has no part in: a branch of that is one of the parent.
    while len(path) > 1 and pos <= path[-1].pos:
        path.pop()
    line = path[-1]
    reader = read(line.name)
    if line.main is None:
        raise AddressError(Code.NO_ADDRESS, f"{called(run, line.name)} holds nothing: it was cut before it began")
    [made] = cuts(reader.heads(reader.main), [pos])
    if len(made.flying) > cut.MOST:
        raise StoreError(Code.UNWRITABLE, f"{len(made.flying)} calls are in flight there, and {cut.MOST} may be")
    if not 0 < pos <= made.last:
        raise AddressError(
            Code.NO_ADDRESS, f"{called(run, parent)} has no position {pos}: its events are at 1 to {made.last}"
        )
    return line, made


def insert(
    connection: sqlite3.Connection, run: int, name: str, parent: Line, made: Cut, head: bytes
) -> tuple[int, str]:
    """Adds the row, under a name that is free, and returns number and name."""
    must_have_room(connection, run)
    name = free_name(connection, run, name)
    added = connection.execute(
        "INSERT INTO branch (run, name, parent, pos, seq, steps, head, flying)"
        " SELECT run, ?, id, ?, ?, ?, ?, ? FROM branch WHERE id=? AND run=? RETURNING id",
        (name, made.pos, made.seq, made.steps, head, pack(made.flying), parent.id, run),
    ).fetchone()
    if added is None:
        raise AddressError(Code.NO_ADDRESS, f"branch {parent.name} was deleted meanwhile")
    return added[0], name


def must_have_room(connection: sqlite3.Connection, run: int) -> None:
    """Raises StoreError LS203 where a run has as many branches as it may have."""
    if connection.execute("SELECT count(*) FROM branch WHERE run=?", (run,)).fetchone()[0] >= MOST:
        raise StoreError(Code.UNWRITABLE, f"the run has {MOST} branches, which is the most that it may have")


def free_name(connection: sqlite3.Connection, run: int, name: str) -> str:
    """The name, with a number where it is taken."""
    taken = {row[0] for row in connection.execute("SELECT name FROM branch WHERE run=?", (run,))}
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    return free


def below(found: Sequence[Line], line: Line) -> list[Line]:
    """The branches that come from one, directly or not, in the order in which they were made."""
    gone = {line.id}
    while more := [one for one in found if one.parent in gone and one.id not in gone]:
        gone |= {one.id for one in more}
    return [one for one in found if one.id in gone and one.id != line.id]


def delete(connection: sqlite3.Connection, gone: Iterable[int]) -> None:
    """Frees the rows of branches."""
    for branch in gone:
        for (stream,) in connection.execute("SELECT id FROM stream WHERE branch=?", (branch,)).fetchall():
            keys = schema.first_key(stream), schema.last_key(stream)
            connection.execute("DELETE FROM segment WHERE id BETWEEN ? AND ?", keys)
            connection.execute("DELETE FROM big WHERE id BETWEEN ? AND ?", keys)
            connection.execute("DELETE FROM seal WHERE stream=?", (stream,))
            connection.execute("DELETE FROM stream WHERE id=?", (stream,))
        connection.execute("DELETE FROM branch WHERE id=?", (branch,))


def to_write(connection: sqlite3.Connection, run: str, name: str) -> tuple[Line, int, bytes]:
    """A branch to write to, with the run's start and meta. Raises StoreError LS205, AddressError LS206."""
    found = connection.execute("SELECT id, started, meta FROM run WHERE name=?", (run,)).fetchone()
    if found is None:
        raise StoreError(Code.NO_RUN, f"no run named {run}. See: lockstep runs")
    number, started, meta = found
    row = connection.execute(
        "SELECT id, name, parent, pos, seq, steps, head, flying FROM branch WHERE run=? AND name=?", (number, name)
    ).fetchone()
    if row is None:
        raise AddressError(Code.NO_ADDRESS, f"run {run} has no branch {name}")
    return Line(*row), started, meta


def base(line: Line, started: int, meta: bytes, process: str) -> bytes:
    """The head that a stream of the branch begins with."""
    if not line.parent:
        return chain.base(started, meta, process)
    return chain.branch_base(started, meta, process, line.name, line.pos, line.seq, line.head)


def flying_at(line: Line) -> list[int]:
    """Positions of the calls that were in flight where a branch begins and close a step when they end."""
    calls: Sequence[Flying] = unpack(line.flying)
    return [one.pos for one in calls if one.closing]
