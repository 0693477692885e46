"""What becomes of a call past a fork point: the tail of a fork. Decides; does nothing itself.

In this order:

* an edited call gets its edited answer, also where its lane has gone another way before it and comes back to it;
* where an edit lies before the step that is forked, calls are served past it: from the record, as long as each lane
  makes the recorded calls in the recorded order, up to that step. The first that is another one ends this;
* a call that the record has no answer for gets the one of another run, if the policy names one that has it;
* else the policy says: live, from the record (an unused call with the same match key), or refused.
"""

from __future__ import annotations

import _thread
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from lockstep.log.model import Event, Kind, Status, Value
from lockstep.session.call import Piece
from lockstep.session.policy import Declared, Policy, decide, judge
from lockstep.session.tape import PROCESS, STARTED, Recorded, Tape
from lockstep.session.unused import UNANSWERABLE, Nearest, Unused

if TYPE_CHECKING:
    from lockstep.session.beside import Beside


LENT = "lent"  # an answer of another run


class Edit(msgspec.Struct, frozen=True):
    """An answer that somebody gives in place of a recorded one.

    pos      of its BEGIN event
    told     as it was given, for the record: address and path ("7.1:status") -> value
    pieces   what its caller gets
    """

    pos: int
    told: dict[str, Value]
    pieces: tuple[Piece, ...]


class Plan(msgspec.Struct, frozen=True):
    """A fork, before it runs.

    branch  its name; `parent` that of the branch it leaves
    origin  the address it leaves from, without the run: ":7"
    upto    position of the last event that it shares
    until   position at which the step that is forked was closed: up to there calls are served past an edit
    """

    branch: str
    parent: str
    origin: str
    upto: int
    until: int
    edits: tuple[Edit, ...] = ()
    policy: Policy = Policy()


def encode(plan: Plan) -> bytes:
    """A plan for another process of ours."""
    return msgspec.msgpack.encode(plan)


def decode(data: bytes) -> Plan:
    """The reverse."""
    # By hand: msgspec makes no values that may be text as well as bytes.
    told: Any = msgspec.msgpack.decode(data)
    edits = tuple(
        Edit(each["pos"], each["told"], tuple(_piece(piece) for piece in each["pieces"])) for each in told["edits"]
    )
    return Plan(**{**told, "edits": edits, "policy": msgspec.convert(told["policy"], Policy)})


def _piece(told: Any) -> Piece:
    status = told["status"]
    return Piece(told["value"], None if status is None else Status(status))


class Live(msgspec.Struct, frozen=True):
    """It runs for real."""


class Answer(msgspec.Struct, frozen=True):
    """It is answered. `how`: edited, served (past an edit), reused, or lent by another run. From the record's `effect`,
    or with the pieces of `edit`."""

    how: str
    effect: Recorded | None = None
    edit: Edit | None = None


class Refuse(msgspec.Struct, frozen=True):
    """It may not run, and the record has no answer. `declared`: its class, and who says so."""

    declared: Declared
    nearest: Nearest | None = None


type Verdict = Live | Answer | Refuse


class Tail:
    """The record beyond the cut, as far as it may still answer. Thread-safe.

    past  whether calls are still served past an edit
    """

    def __init__(self, plan: Plan, later: Tape, *, ordered: bool = True, beside: Beside | None = None) -> None:
        """Not `ordered`: the calls of a lane may come in another order than recorded, and are told by what they ask.
        `beside`: the answers that the plan's policy has of another run."""
        self.plan = plan
        self.tape = later
        self._ordered = ordered
        self.past = plan.until > plan.upto
        self.unreached = {edit.pos: edit for edit in plan.edits}
        self._unused = Unused(later)
        self._beside = beside
        self._used: set[int] = set()
        self._at: dict[str, int] = {}  # lane -> how many of its first recorded calls are used up
        self._lock = _thread.allocate_lock()

    def decide(
        self, lane: str, kind: str, name: str, key: bytes, request: Value, declared: Declared | None, at: int
    ) -> Verdict:
        """What becomes of this call. `at`: position of the BEGIN that it has in the part served, 0 for none."""
        with self._lock:
            expected = self._expected(lane, key, at)
            if expected is not None:
                edit = self.unreached.pop(expected.begin.pos, None)
                if edit is not None:
                    self._use(expected)
                    return Answer("edited", edit=edit)
            if self.past and expected is None:
                self.past = False
            elif self.past and expected is not None and self._serves(expected):
                self._use(expected)
                return Answer("served", expected)
            policy = self.plan.policy
            found = judge(kind, name, request, declared, policy.rules)
            recorded = self._unused.find(key, lane)
            edit = self.unreached.pop(recorded.begin.pos, None) if recorded is not None else None
            if recorded is not None and edit is not None:
                # The lane went another way before it, and has come back to ask this.
                self._use(recorded)
                return Answer("edited", edit=edit)
            if recorded is None and self._beside is not None and policy.lends(kind, name, request):
                pieces = self._beside.take(key, lane)
                if pieces is not None:
                    return Answer(LENT, edit=Edit(0, {}, pieces))
            verdict = decide(policy, found.effect, kind, name, recorded is not None, request)
            if verdict == "live":
                if expected is not None and not self._ordered:
                    self._used.add(expected.seq)  # the next equal call of the lane is the next one of the record
                return Live()
            if verdict == "reuse" and recorded is not None:
                self._use(recorded)
                return Answer("reused", recorded)
            return Refuse(found, self._unused.nearest(kind, name, request, lane))

    def edit_of(self, lane: str, key: bytes) -> Edit | None:
        """The edit of the next such call of this lane, which then has been made; None where it has none. For calls that
        the policy is not asked about."""
        with self._lock:
            expected = self._expected(lane, key, 0)
            if expected is None:
                return None
            self._use(expected)
            return self.unreached.pop(expected.begin.pos, None)

    def _expected(self, lane: str, key: bytes, at: int) -> Recorded | None:
        """The recorded call of this lane that is next, if this is it."""
        if at:
            return self.tape.effect(at)
        recorded = self.tape.lanes.get(lane)
        if recorded is None:
            return None
        effects, number = recorded.effects, self._at.get(lane, 0)
        while number < len(effects) and effects[number].seq in self._used:
            number += 1
        self._at[lane] = number
        if not self._ordered:
            left = (each for each in effects[number:] if each.begin.key == key and each.seq not in self._used)
            return next(left, None)
        return effects[number] if number < len(effects) and effects[number].begin.key == key else None

    def _serves(self, effect: Recorded) -> bool:
        last = effect.pieces[-1][1] if effect.ended else None
        return (
            last is not None
            and last.pos <= self.plan.until
            and last.what != Status.CANCELLED
            and effect.begin.what not in UNANSWERABLE
        )

    def _use(self, effect: Recorded) -> None:
        self._used.add(effect.seq)
        self._unused.use(effect)


type Heads = list[tuple[int, Event]]


def split(events: Iterable[tuple[int, Event]], upto: int) -> tuple[Heads, Heads]:
    """The events of a stream that a fork serves, and those that lie beyond: of an effect that was in flight at the
    cut, both have its BEGIN, and the first also what followed where the program had begun to read it."""
    served: list[tuple[int, Event]] = []
    later: list[tuple[int, Event]] = []
    flying: dict[int, tuple[int, Event]] = {}
    begun: set[int] = set()
    for seq, event in sorted(events, key=lambda item: item[1].pos):
        if event.pos > upto:
            if event.of in begun and event.kind in (Kind.PART, Kind.END):
                served.append((seq, event))
            else:
                later.append((seq, event))
            continue
        served.append((seq, event))
        if event.kind is Kind.BEGIN:
            flying[event.pos] = (seq, event)
        elif event.kind is Kind.PART and event.of in flying:
            begun.add(event.of)
        elif event.kind is Kind.CAUSE and event.what == STARTED:
            own = [pos for pos, (_, begin) in flying.items() if (begin.what, begin.lane) == (PROCESS, event.lane)]
            begun.update(own[-1:])
        elif event.kind is Kind.END:
            flying.pop(event.of, None)
            begun.discard(event.of)
    return served, [*(item for pos, item in flying.items() if pos not in begun), *later]
