"""The event log's data model: immutable structs, no behaviour.

A run is one or more *streams*: each process that writes has one, a sequence of `Event`s in the
order in which they were stored. Everything else (effects, steps, lanes, turns) is read out of
the events by `lockstep.log.timeline`.
"""

from __future__ import annotations

import enum

import msgspec

# What a body may hold: inert data only. Bytes are first-class; tuples come back as lists.
type Value = bool | int | float | str | bytes | list[Value] | dict[str, Value] | None


class Kind(enum.IntEnum):
    """What an event says. The comment gives the fields used beside `kind`, `pos`, `at` and `lane`."""

    START = 1  # comes after the root's LANE. body: {"facts": what the taps need to know, "pid", "argv"}
    LANE = 2  # a lane began. name: the lane; lane: its parent; what: the strand (lane of its thread)
    BEGIN = 3  # an effect was asked for. what: its kind (model, tool, http, …), name, key: match key, of: enclosing
    #            effect's pos or 0; body: {"request": …, "site": "file:line in function", "reads": {source: count},
    #            "thread": the native lane it was asked for in}
    PART = 4  # a piece of an outcome reached the program (response head, chunk). of: its BEGIN; body: the piece;
    #           what: which of a process's pipes brought it
    END = (
        5  # an effect ended. of: its BEGIN; what: a `Status`; key: digest of its outcome; body: value or encoded error
    )
    CAUSE = 6  # something outside moved the program. what: timer, sleep, wake, or a wait or poll that gave up (wait,
    #            acquire, join, alive, unset), close, or what became of an operation on a process (ready, unread,
    #            unwritten, running, overdue, …); name: its number in the lane
    READS = 7  # clock reads, batched. what: source; body: {"first": index, "values": packed deltas}. Variables and host
    #            facts, at their first read. what: environ or host; body: {name: value}. Looks at files. what: file,
    #            listing, stat, …; name: the place; of: number of the look there; body: what was found
    LOCK = 8  # a lock went to another strand. name: the lock; lane: that strand; what: the strand before it,
    #           of: how often that one had taken it in a row
    OUTPUT = 9  # what the program printed. what: stdout; body: text or bytes
    STEP = 10  # a native checkpoint or a named step. name: label; what: where; key: match key; body: state or None.
    #            Of a native run: of: the parent's pos or 0; what: its source; name: the nodes that led to it; key:
    #            digest of the state; body: a record (lockstep.log.checkpoints). Of a native thread in a session: what:
    #            its native lane (lockstep.log.threads); of and name as there
    FINISH = 11  # the stream's last event. what: complete | failed, of a branch also refused | diverged; body: {"end",
    #              "digest", "reads", "open", …}
    FORK = 12  # a branch's first event, in the place after the one it left from. name: the address forked from, as in
    #            ":7"; body: {"edits", "live", "tail", "step", "upto"}, and "meta" where it differs from the run's
    WRITES = 13  # what a task of a native run wrote. lane: the task's; name: its node; what: its id; of: pos of the
    #              STEP that it ran on; body: {"path", "writes": [[index, channel, value], …]}


class Status(enum.StrEnum):
    """How an effect ended, as its caller saw it."""

    OK = "ok"  # complete: body is the value (None when the parts were all of it)
    ERROR = "error"  # raised: body is an encoded exception
    CLOSED = "closed"  # the program stopped reading a stream before its end
    CANCELLED = "cancelled"  # the program's own cancellation ended it: body is a message that the client gave it


class Event(msgspec.Struct, frozen=True):
    """One immutable entry of a stream.

    pos   position in the process's total order, from 1, unique in the stream (storage order may
          differ slightly from it where several threads wrote at once)
    at    nanoseconds since the stream began, monotonic
    of    the BEGIN event's pos that this one belongs to, else 0
    tick  asyncio only: how many of the program's own loop callbacks this thread had run when the
          program was resumed; -1 where the program was not suspended (sync code included). Of a
          native run: a number of that turn of the loop, see `lockstep.session.native.moment`
    """

    kind: Kind
    pos: int
    at: int
    lane: str
    what: str = ""
    name: str = ""
    of: int = 0
    tick: int = -1
    key: bytes = b""
    body: Value = None


class RunState(enum.StrEnum):
    """`growing`: a living process writes it. `interrupted`: its writer died without an end. `refused`: of a branch, it
    made a call that nobody allowed."""

    GROWING = "growing"
    COMPLETE = "complete"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    REFUSED = "refused"

    @classmethod
    def _missing_(cls, value: object) -> RunState | None:
        return cls.FAILED if value == DIVERGED else None


DIVERGED = "diverged"  # what the FINISH of a branch says whose served part was not the recorded one: it has failed


class StreamInfo(msgspec.Struct, frozen=True):
    """One writing process of a run: `process` is the lane it runs as ("main" for the first)."""

    id: int
    process: str
    events: int


class BranchInfo(msgspec.Struct, frozen=True):
    """One line of events of a run.

    parent    the branch that it left, "" for main
    pos       the position up to which (inclusive) it has its parent's events; 0 for main
    base      the number that its first own event has, 0 for main: 1 + that of the parent's last one up to `pos`
    before    steps closed before that
    head      of the parent's chain there, b"" for main
    flying    the calls in flight there, packed (`lockstep.log.cut`)
    steps     closed in it, those that it shares included
    size      bytes of its own
    streams   those that its own processes wrote
    problem   why it cannot be read, "" if it can
    """

    id: int
    name: str
    parent: str
    pos: int
    base: int
    state: RunState
    steps: int
    size: int
    incomplete: int
    streams: tuple[StreamInfo, ...]
    before: int = 0
    head: bytes = b""
    flying: bytes = b""
    problem: str = ""


class RunInfo(msgspec.Struct, frozen=True):
    """One row of `lockstep runs`, or another branch of a run. `size` in bytes as stored, `started` in ns since the
    epoch. `origin`: the tape that it came from, whose maker is unknown; empty for what was recorded here.

    streams   that a reader of the branch sees: of one that left another, also those that it shares with that
    branches  all of the run, main first
    """

    id: int
    name: str
    state: RunState
    started: int
    steps: int
    size: int
    incomplete: int  # faults of ours while recording; 0 when none
    streams: tuple[StreamInfo, ...]
    origin: str = ""
    branch: str = "main"
    branches: tuple[BranchInfo, ...] = ()
