"""Where a fork of a thread leaves, what it keeps, and which turns it runs: worked out before anything does. Pure.

A fork restores. Its branch shares everything up to a checkpoint, the *base*, under the checkpoint's own id, so that the
ids of its tasks are the recorded ones: what a task wrote can be given to the branch, and then LangGraph does not run
that task again.

    RUN:7                     base 7, all of its tasks run again
    RUN:7, tasks=["q"]        base 7, of its tasks only q runs again
    RUN:7, an edit of 5.2     base: the checkpoint on which the task that made call 5.2 ran. Only that task runs again,
                              its calls are served, 5.2 with the edited answer; up to step 7 so are calls after it
    RUN:7.2                   base likewise, without an edit: calls are served up to 7.2
    RUN:12, which is the end  all that was recorded is kept, what did not end is run again
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import msgspec

from lockstep.errors import AddressError, Code, TargetError
from lockstep.log.model import Event, Kind, Status
from lockstep.session.native.record import Record, RecordedTurn
from lockstep_langgraph import lanes

NULL_TASK = "00000000-0000-0000-0000-000000000000"  # of what a turn's own input writes
# What a task writes that has not come to an end.
_ERROR = "__error__"
_UNFINISHED = frozenset({_ERROR, "__interrupt__", "__resume__", "__error_source_node__", "__scheduled__"})
UPDATE = "update"  # the source of a checkpoint that the program has put by itself
_CALLED = ">"  # joins the lane of a `@task` to that of the task which called it
_NAMES = re.compile("[>/~]")  # what joins the parts of a lane


class Made(msgspec.Struct, frozen=True):
    """A recorded checkpoint: its STEP. `number`: the step's."""

    number: int
    seq: int
    event: Event

    @property
    def pos(self) -> int:
        return self.event.pos

    @property
    def lane(self) -> str:
        return self.event.lane


class Wrote(msgspec.Struct, frozen=True):
    """What a task wrote at once: a WRITES event."""

    seq: int
    event: Event


class History:
    """A branch as planning needs it: its checkpoints, the writes of their tasks, and its turns."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.turns = record.turns
        self.steps = [Made(number, seq, event) for number, (seq, event) in enumerate(record.steps)]
        self.writes = [Wrote(seq, event) for seq, event in record.heads if event.kind is Kind.WRITES]
        self.last = max((event.pos for _, event in record.heads), default=0)


class Call(msgspec.Struct, frozen=True):
    """A recorded call, as far as planning needs it. `end`: the position of its end, 0 while in flight."""

    pos: int
    end: int
    lane: str


class Plan(msgspec.Struct, frozen=True):
    """A fork of a thread.

    base    the checkpoint that it goes on from, whose namespace may be that of a subgraph
    cut     the position of the last event that it shares
    until   calls are served up to there, as long as each lane makes the recorded ones
    kept    writes from beyond the cut that it is given
    goes_on the recorded turn whose rest is run, None where that has no rest
    later   the turns that follow, with their recorded inputs
    ends    why the turns after those are not run, "" where there are none
    """

    base: Made
    cut: int
    until: int
    kept: tuple[Wrote, ...]
    goes_on: RecordedTurn | None
    later: tuple[RecordedTurn, ...]
    ends: str = ""


def plan(
    history: History,
    step: int,
    call: Call | None,
    edited: Sequence[Call],
    states: Collection[int],
    tasks: Sequence[str],
    address: str,
    within: int | None = None,
) -> Plan:  # fmt: skip
    """The plan of a fork at `step` (one more than the last checkpoint's is the end), or at a call of it.

    edited  the calls whose answers are edited
    states  the steps whose states are
    tasks   of those that ran on the step's checkpoint, those that run again; empty: all
    within  goes on from the checkpoint before the step: what was answered and written by then is kept

    Raises AddressError LS206 and TargetError LS402.
    """
    steps = history.steps
    at_end = step >= len(steps)
    last = history.last
    limit = call.end or last if call is not None else last if at_end else steps[step].pos
    for one in edited:
        if not one.pos < limit:
            raise AddressError(Code.NO_ADDRESS, f"a call that was made only after {address} cannot be edited in it")
    if any(number > step for number in states):
        raise AddressError(Code.NO_ADDRESS, f"a state that came only after {address} cannot be edited in it")
    if any(number >= len(steps) for number in states):
        raise AddressError(
            Code.NO_ADDRESS, f"{address} is the end, which has no state of its own: edit step {len(steps) - 1}"
        )
    if within is not None:
        return _within(history, steps[step], within)
    if not steps:
        raise AddressError(Code.NO_ADDRESS, f"{address} has no checkpoint before it to go on from")
    ran = [_ran(history, one) for one in (*edited, *([call] if call is not None else []))]
    bases = [*(task.base for task in ran), *(steps[number] for number in states)]
    if not bases and at_end and not tasks:
        return _at_end(history, limit)
    base = min(bases, key=lambda made: made.pos) if bases else steps[min(step, len(steps) - 1)]
    if any(steps[number].pos != base.pos for number in states):
        raise TargetError(
            Code.BAD_TARGET, "only the state that a fork goes on from can be edited: those after it are made anew"
        )
    here = [task for task in ran if task.base.pos == base.pos]
    again = {task.lane for task in here}
    if tasks:
        if bases and base.pos != steps[min(step, len(steps) - 1)].pos:
            raise TargetError(
                Code.BAD_TARGET,
                f"tasks= says which tasks of {address} run again, and an edit before that has all of them run",
            )
        again |= _lanes_of(history, base, tasks, address)
    running = _turn_of(history, base, here)
    cut = base.pos
    goes_on: RecordedTurn | None = running
    if running is not None and running.pos > base.pos:
        # The task ran in a later turn than the one that made its checkpoint: as when a human was asked in between.
        cut, goes_on = running.pos - 1, None
    elif running is not None and running.end is not None and running.end.pos <= cut:
        goes_on = None
    kept = _kept(history, base, cut, limit if not tasks else last, again) if again else ()
    begun = goes_on.pos if goes_on is not None else cut
    later, ends = _following(history, max(begun, cut), cut)
    return Plan(base, cut, max(limit, cut), kept, goes_on, later, ends)


def _within(history: History, made: Made, within: int) -> Plan:
    base = next(each for each in history.steps if each.pos == made.event.of)
    done = {wrote.event.lane for wrote in _of(history, base) if wrote.event.pos <= within}
    again = {wrote.event.lane for wrote in _of(history, base)} - done
    running = _turn_of(history, base, ())
    goes_on = running if running is not None and (running.end is None or running.end.pos > base.pos) else None
    kept = _kept(history, base, base.pos, within, again)
    later, ends = _following(history, base.pos, base.pos)
    return Plan(base, base.pos, within, kept, goes_on, later, ends)


def _at_end(history: History, limit: int) -> Plan:
    """All that was recorded is kept; of a last turn that did not come to a good end, what did not end runs again."""
    last = history.steps[-1]
    turn = history.turns[-1] if history.turns else None
    if turn is None or (turn.end is not None and turn.end.what == Status.OK):
        return Plan(last, limit, limit, (), None, ())
    if any(made.lane == lanes.ROOT and made.pos > turn.pos for made in history.steps):
        return Plan(last, limit, limit, (), turn, ())
    # It did not get beyond the checkpoint that it began on, where what it was given is kept beside the tasks' writes:
    # who goes on from there without giving it again has it taken for the answer to whatever is asked next.
    base = next((made for made in reversed(history.steps) if made.lane == lanes.ROOT and made.pos < turn.pos), last)
    cut = turn.pos - 1
    return Plan(base, cut, limit, _kept(history, base, cut, limit, ()), None, (turn,))


def _following(history: History, begun: int, cut: int) -> tuple[tuple[RecordedTurn, ...], str]:
    """The turns that began after a position, and why there are not more of them."""
    later = [turn for turn in history.turns if turn.pos > begun]
    by_hand = next((made for made in history.steps if made.event.what == UPDATE and made.pos > cut), None)
    kept = [turn for turn in later if by_hand is None or turn.pos < by_hand.pos]
    if by_hand is None or len(kept) == len(later):
        return tuple(later), ""
    return tuple(kept), (
        f"turn {later[len(kept)].number} and what follows it began from a state that was set by hand at step "
        f"{by_hand.number} (update_state): fork there to run them"
    )


class _Ran(msgspec.Struct, frozen=True):
    """The task that made a call: its lane, and the checkpoint on which it ran. `pos`: that of the call."""

    lane: str
    base: Made
    pos: int


def _ran(history: History, call: Call) -> _Ran:
    # A task begins when its checkpoint is in the log. What it wrote may come late, so that tells less.
    lane = call.lane
    while lane != lanes.ROOT:
        space = lanes.checkpoints_of(lane)
        found = [made for made in history.steps if made.lane == space and made.pos < call.pos]
        if found:
            return _Ran(lane, found[-1], call.pos)
        lane = space  # of a subgraph that keeps no checkpoints: what runs it is what can run again
    raise TargetError(
        Code.BAD_TARGET, f"the checkpoint that the call in {call.lane} was made on is not in the thread's record"
    )


def _turn_of(history: History, base: Made, tasks: Sequence[_Ran]) -> RecordedTurn | None:
    """The turn that ran what is to run again."""
    pos = min((task.pos for task in tasks), default=base.pos)
    return next((turn for turn in reversed(history.turns) if turn.pos < pos < turn.stop), None)


def _lanes_of(history: History, base: Made, tasks: Sequence[str], address: str) -> set[str]:
    """The lanes of the tasks of a checkpoint that are named: by their lane's last part, or by their node."""
    ran = {wrote.event.lane: wrote for wrote in _of(history, base) if wrote.event.what != NULL_TASK}
    found: set[str] = set()
    for name in tasks:
        named = {
            lane for lane, wrote in ran.items()
            if name in (lane.rpartition("/")[2], lane.rpartition(_CALLED)[2], wrote.event.name, wrote.event.what, lane)
        }  # fmt: skip
        if not named:
            known = ", ".join(sorted(lane.rpartition("/")[2] for lane in ran)) or "none"
            raise TargetError(Code.BAD_TARGET, f"no task {name!r} ran at {address}. Those that did: {known}")
        found |= named
    return found


def _of(history: History, base: Made) -> Iterable[Wrote]:
    return (wrote for wrote in history.writes if wrote.event.of == base.pos)


def _kept(history: History, base: Made, cut: int, limit: int, again: Collection[str]) -> tuple[Wrote, ...]:
    """What the other tasks wrote that ran beside those which run again: in the base's namespace, and in those around
    it. They had finished by `limit`, or led to a checkpoint that was made by then."""
    kept: list[Wrote] = []
    for made in _around(history, base, cut):
        closed = any(step.event.of == made.pos and step.pos <= limit for step in history.steps)
        for wrote in _of(history, made):
            event = wrote.event
            if event.pos <= cut or not (closed or event.pos <= limit) or event.what == NULL_TASK:
                continue
            if any(_hangs_on(event.lane, lane) for lane in again):
                continue
            body: Any = history.record.body(wrote.seq)
            if not _finished({channel for _, channel, _ in body["writes"]}):
                continue
            kept.append(wrote)
    return tuple(sorted(kept, key=lambda wrote: wrote.event.pos))


def _finished(channels: Collection[str]) -> bool:
    """Whether what a task wrote at once is what it wrote at its end."""
    return _ERROR not in channels and any(channel not in _UNFINISHED for channel in channels)


def _around(history: History, base: Made, cut: int) -> Iterable[Made]:
    """The base, and of each namespace around its own the checkpoint that is the last by then."""
    yield base
    lane = base.lane
    while lane != lanes.ROOT:
        lane = lanes.checkpoints_of(lane)
        found = [made for made in history.steps if made.lane == lane and made.pos <= cut]
        if found:
            yield found[-1]


def _hangs_on(lane: str, again: str) -> bool:
    """Whether what a task wrote cannot stay where another runs again: it is that one, or one around it, or was called
    by the same code after it."""
    if again == lane or again.startswith((f"{lane}/", f"{lane}{_CALLED}", f"{lane}~")):
        return True
    caller, called, own = again.rpartition(_CALLED)
    if not called or not lane.startswith(f"{caller}{_CALLED}"):
        return False
    # What `@task`s are called with is not recorded: one that was called after may have been given its answer. Which
    # came first their names tell, and not what they wrote: that is stored in any order.
    return _number(lane.removeprefix(f"{caller}{_CALLED}")) > _number(own)


def _number(called: str) -> int:
    """Which call of its caller this was: of `double.2` the third."""
    return int(_NAMES.split(called, 1)[0].rpartition(".")[2])
