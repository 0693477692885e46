"""Reading a native run: its steps, which are checkpoints, what was called and written on the way to each, its turns.

Each STEP closes a step, the first one step 0. A call belongs to the next step of the namespace that its task is of:
the lane of a task is that of its checkpoints with one more part, so a checkpoint in lane `main/plan` closes over
`main/plan/search`, and one in `main` over all that is left below; one that a single strand has made, over its own
(`OWN`). What a task wrote late, after the checkpoint that was
made of it, is still of that. Calls and writes that no checkpoint has followed are in a closing step of kind `end`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import msgspec

from lockstep.log.drafts import Draft, Step, numbered
from lockstep.log.model import Event, Kind
from lockstep.log.steps import TURN

END = "end"
CHECKPOINT = "checkpoint"

# Of workflows: kinds of what came without being asked for, whose value is what it brought; waiting for a moment, which
# reaches nobody; and what an effect's children are that was tried more than once.
GIVEN = frozenset({"signal", "update", "cancel"})
TIMER = "timer"
LOOK = "browser"  # of a page: what its own browser was asked for
UNASKED = frozenset({TIMER, LOOK, *GIVEN})  # kinds that reach nobody
ATTEMPT = "attempt"

ATTACHMENT = "attachment"  # `what` of WRITES that nobody wrote: what is kept of a step to be looked at

LOOP = "loop"  # the source of a checkpoint that tasks have made; others are kinds of their own: input, update, fork
# Likewise, of one that one strand of several has made, which may run beside others: it closes over what happened in the
# lane of its own name, and in that of all of them.
OWN = "own"
MADE = frozenset({"", LOOP, OWN})


class Turn(msgspec.Struct, frozen=True):
    """One native invocation: resume and update included, where the framework has a turn for these.

    number  from 1, in the branch
    name    the entry method
    seq     number of its BEGIN, `end_seq` of its END (-1), without bodies
    first   number of the first step that it made, `last` of the last one; -1 where it made none
    left    whether the branch left another one in the middle of it, so that this is its beginning only
    """

    number: int
    name: str
    seq: int
    begin: Event
    end_seq: int = -1
    end: Event | None = None
    first: int = -1
    last: int = -1
    left: bool = False


class Written(msgspec.Struct, frozen=True):
    """What a task wrote: the WRITES event, without its body, and its number."""

    seq: int
    event: Event


def belongs(lane: str, checkpoints: str) -> bool:
    """Whether a checkpoint in that lane closes over what happened in this one."""
    return lane.startswith(f"{checkpoints}/") or (lane == checkpoints and "/" not in lane)


class Closing:
    """Which lanes the checkpoints of a branch close over, told of each in order."""

    def __init__(self) -> None:
        self._own: dict[str, str] = {}  # lanes of strands that have made theirs -> that in which they made it

    def over(self, step: Event) -> Callable[[str], bool]:
        """Tells whether this checkpoint, the next one, closes over what happened in a lane."""
        lane = step.lane
        if step.what != OWN:
            for own in [own for own, of in self._own.items() if belongs(of, lane) or of == lane]:
                del self._own[own]
            return lambda found: belongs(found, lane)
        # What a strand still did when it had made its own, comes to the next one beside it.
        self._own[f"{lane}/{step.name}"] = lane
        owns = tuple(own for own, of in self._own.items() if of == lane)
        return lambda found: found == lane or any(found == own or found.startswith(f"{own}/") for own in owns)


def steps(heads: Iterable[tuple[int, Event]], stream: int) -> Iterator[Step]:
    """The steps of a branch, by all events of its main stream in order."""
    open_: dict[int, Draft] = {}  # calls that have not ended
    done: list[Draft] = []  # outermost ones that no step has closed over
    writes: list[Event] = []  # likewise
    parents: set[int] = set()
    turn = 0  # position where the last one began: what was open before it will never end
    closing = Closing()
    number = before = -1
    for seq, event in heads:
        kind = event.kind
        if kind is Kind.STEP:
            number += 1
            parents.add(event.of)
            lane = event.lane
            closes = closing.over(event)
            closed = [draft for draft in done if closes(draft.begin.lane)]
            cut = [draft for pos, draft in open_.items() if pos < turn and closes(draft.begin.lane)]
            if closed:
                done = [draft for draft in done if not closes(draft.begin.lane)]
            for draft in cut:
                del open_[draft.begin.pos]
            writes = [written for written in writes if not closes(written.lane)]
            effects = closed + [draft for draft in cut if not draft.begin.of]
            title = CHECKPOINT if event.what in MADE else event.what
            yield Step(number, title, event.name, lane, seq, event.at, numbered(effects, stream), stream, before)
            before = seq
        elif kind is Kind.BEGIN:
            if event.what == TURN:
                turn = event.pos
                continue
            draft = open_[event.pos] = Draft(seq, event)
            if event.of in open_:
                open_[event.of].children.append(draft)
        elif kind is Kind.FORK:
            open_.clear()  # what was in flight where a branch leaves is no part of it
        elif kind is Kind.PART:
            if event.of in open_:
                open_[event.of].parts.append(seq)
        elif kind is Kind.END:
            ended = open_.pop(event.of, None)
            if ended is not None:
                ended.end, ended.end_seq = event, seq
                if not ended.begin.of:
                    done.append(ended)
        elif kind is Kind.WRITES and event.of not in parents and event.what != ATTACHMENT:
            writes.append(event)
    done += [draft for draft in open_.values() if not draft.begin.of]
    if done or writes or number < 0:
        yield Step(number + 1, END, "", "", -1, 0, numbered(done, stream), stream, before)


def turns(heads: Iterable[tuple[int, Event]]) -> tuple[Turn, ...]:
    """The turns of a branch, by all events of its main stream in order."""
    found: list[Turn] = []
    open_: dict[int, int] = {}
    number = -1
    for seq, event in heads:
        if event.kind is Kind.STEP:
            number += 1
            # Of turns that were on at once in one branch, nothing tells whose step it was.
            at = next(reversed(open_.values()), None)
            if at is not None:
                turn = found[at]
                first = number if turn.first < 0 else turn.first
                found[at] = msgspec.structs.replace(turn, first=first, last=number)
        elif event.kind is Kind.BEGIN and event.what == TURN:
            open_[event.pos] = len(found)
            found.append(Turn(len(found) + 1, event.name, seq, event))
        elif event.kind is Kind.FORK:
            for at in open_.values():
                found[at] = msgspec.structs.replace(found[at], left=True)
            open_.clear()
        elif event.kind is Kind.END and event.of in open_:
            at = open_.pop(event.of)
            found[at] = msgspec.structs.replace(found[at], end_seq=seq, end=event)
    return tuple(found)


def writes(heads: Iterable[tuple[int, Event]], of: int) -> tuple[Written, ...]:
    """What was written on the step at a position, late writes included, by the events behind it."""
    return tuple(
        Written(seq, event)
        for seq, event in heads
        if event.kind is Kind.WRITES and event.of == of and event.what != ATTACHMENT
    )
