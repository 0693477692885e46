"""A crew's or flow's steps in a replay: each is compared with the recorded one, and the first difference stops it.

Steps that ran beside each other when they were recorded may be done in any order: each is compared when those before it
are. One that had not begun before another was done is not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from lockstep.errors import Code, Stop
from lockstep.log import checkpoints, untapped
from lockstep.log.model import Kind, Status, Value
from lockstep.session import difference
from lockstep.session.native.endings import Ending
from lockstep.session.native.faults import worded
from lockstep.session.native.latch import Latch
from lockstep.session.native.ran import Ran, Recorded, RecordedStep
from lockstep.session.native.serving import Serving
from lockstep_crewai import canonical, layout, replaced
from lockstep_crewai.layout import Moment, Replacement
from lockstep_crewai.seams import Asked
from lockstep_crewai.steps import Steps

type _Name = tuple[str, str]  # of a step in its lane: source and name


class Player:
    """Is `Told` of a replay, and of the part of a fork that is served.

    compared  steps that were the recorded ones
    keys      of these
    ending    of the last turn
    moved     grows with whatever it is told
    """

    def __init__(
        self, recorded: Recorded, latch: Latch, hide: Callable[[Value], Value], *, until: int | None = None,
        upto: int | None = None, faults: list[str],
    ) -> None:  # fmt: skip
        """`until`: the step after which it is stopped; `upto`: position behind which no step is expected."""
        self.compared: list[int] = []
        self.keys: list[bytes] = []
        self.ending = Ending()
        self.moved = 0
        self.steps = Steps()
        self._recorded = recorded
        self._latch = latch
        self._hide = hide
        self._until = until
        self._upto = upto
        self._faults = faults
        self._left: dict[str, deque[RecordedStep]] = {}
        self._number: dict[int, int] = {}  # by step: how many of its lane and turn come before it
        self._tokens: dict[str, deque[Value]] = {}  # that were counted, by lane
        self._busy: frozenset[tuple[str, int]] = frozenset()  # lanes and attempts at which an agent was at work
        self._held: dict[str, dict[_Name, Moment]] = {}
        self._serving: Serving | None = None
        self._open = False  # the recording does not say what comes after the last step
        self._lock: Any = untapped.RLock()

    def turn(self, run: Ran, serving: Serving, *, is_open: bool = False) -> None:
        """The recorded turn that is next. `is_open`: what follows its last step is not known."""
        self._serving = serving
        self._open = is_open
        self.ending = Ending()
        self.steps.turn()
        self._left, self._held, self._number = {}, {}, {}
        self._tokens = self._counted(run)
        self._busy = self._found_busy(run)
        counts: dict[str, int] = {}
        for step in self._recorded.steps_of(run):
            lane = step.event.lane
            self._number[step.number] = counts.get(lane, 0)
            counts[lane] = self._number[step.number] + (step.event.what == layout.DONE)
            if (self._upto is None or step.pos <= self._upto) and (self._until is None or step.number <= self._until):
                self._left.setdefault(lane, deque()).append(step)

    @property
    def left(self) -> RecordedStep | None:
        """The first step of the turn that has not been made again."""
        return min((steps[0] for steps in self._left.values() if steps), key=lambda step: step.pos, default=None)

    # What the seams tell.

    def begins(self, asked: Asked, before: Moment) -> None:
        """See `Told`."""
        self.step(before)

    def step(self, moment: Moment) -> Replacement | None:
        """See `Told`: stops the program where it differs."""
        with self._lock:
            self.moved += 1
            if self._latch.stopped:
                self._latch.raise_it()
            edited = self._comes(moment)
            if self._latch.stopped:
                self._latch.raise_it()
        return Replacement(edited.payload) if edited is not None else None

    def expects(self, moment: Moment) -> bool:
        """Whether it is one of the recorded steps that have not been made again."""
        with self._lock:
            return any(_name(step) == (moment.source, moment.name) for step in self._left.get(moment.lane, ()))

    def counts(self, lane: str, tokens: Value) -> Value:
        """See `Told`: as they were recorded."""
        with self._lock:
            self.moved += 1
            left = self._tokens.get(lane)
            return left.popleft() if left else None

    def was_busy(self, lane: str, attempt: int) -> bool:
        """See `Told`."""
        return (lane, attempt) in self._busy

    def busy(self, lane: str, attempt: int) -> None:
        """See `Told`."""

    def attached(self, lane: str, name: str, about: Value) -> None:
        """See `Told`."""

    def ends(self, result: Value) -> None:
        """See `Told`."""
        self.moved += 1
        self.ending = Ending(Status.OK, result)

    def fails(self, error: BaseException) -> None:
        """See `Told`."""
        self.moved += 1
        if not isinstance(error, Stop):
            self.ending = Ending(Status.CLOSED if isinstance(error, GeneratorExit) else Status.ERROR, error)

    def fault(self, where: str, error: BaseException) -> None:
        """See `Told`."""
        self._faults.append(worded(where, error))

    # How they compare.

    def _comes(self, moment: Moment) -> Moment | None:
        """Gives what it came to by an edit, where the recorded one did."""
        left = self._left.get(moment.lane)
        expected = next((step for step in left or () if _name(step) == (moment.source, moment.name)), None)
        if not left or expected is None:
            self._beyond(moment, left[0] if left else None)
            return None
        edited = self._edited(expected, moment)
        moment = edited if edited is not None else moment
        if expected is not left[0]:
            if self._began(expected) > self._number[left[0].number]:
                self._stops(
                    Code.ORDER, "another step than recorded", moment, at=left[0],
                    expected=left[0].event.name, actual=moment.name,
                )  # fmt: skip
                return None
            self._held.setdefault(moment.lane, {})[moment.source, moment.name] = moment
            return edited
        self._compare(left.popleft(), moment)
        held = self._held.get(moment.lane, {})
        while left and not self._latch.stopped and (later := held.pop(_name(left[0]), None)) is not None:
            self._compare(left.popleft(), _later(later))
        return edited

    def _edited(self, expected: RecordedStep, moment: Moment) -> Moment | None:
        """Of a step whose output somebody edited in a fork, the moment with that edit."""
        changes = replaced.read(self._recorded.record.field(expected.seq, layout.EDITED))
        if not changes or layout.OUTPUT not in moment.channels:
            return None
        try:
            return replaced.edited(moment, changes)
        except Exception as error:  # of a model's own validators too
            reason = f"its output cannot be what the edit says: {replaced.why(error)}"
            self._stops(Code.UNSERVABLE, reason, moment, at=expected)
            return None

    def _counted(self, run: Ran) -> dict[str, deque[Value]]:
        found: dict[str, deque[Value]] = {}
        record = self._recorded.record
        for seq, event in record.heads:
            is_one = event.kind is Kind.CAUSE and event.what == layout.TOKENS and run.pos < event.pos < run.stop
            if is_one and (self._upto is None or event.pos <= self._upto):
                found.setdefault(event.lane, deque()).append(record.field(seq, layout.TOKENS))
        return found

    def _found_busy(self, run: Ran) -> frozenset[tuple[str, int]]:
        record = self._recorded.record
        return frozenset(
            (event.lane, attempt)
            for seq, event in record.heads
            if event.kind is Kind.CAUSE and event.what == layout.BUSY and run.pos < event.pos < run.stop
            if self._upto is None or event.pos <= self._upto
            if isinstance(attempt := record.field(seq, layout.BUSY), int)
        )

    def _began(self, step: RecordedStep) -> int:
        """How many steps of its lane had been done when a recorded one began."""
        began = self._recorded.record.field(step.seq, layout.BEGAN)
        return began if isinstance(began, int) else self._number[step.number]

    def _compare(self, expected: RecordedStep, moment: Moment) -> None:
        beside = self._recorded.record.field(expected.seq, layout.BESIDE) is True
        moment = msgspec.structs.replace(moment, beside=beside)
        body, last = self.steps.next(moment)
        hidden: Any = self._hide(body)
        key = self.steps.made(moment, last, hidden)
        last.pos = expected.pos
        if key != expected.event.key:
            self._differs(expected, moment, last.channels)
            return
        if self._serving is not None and self._serving.order is not None:
            self._serving.order.come(expected.pos)
        self.compared.append(expected.number)
        self.keys.append(key)
        if expected.number == self._until:
            self._latch.come_to_cut()

    def _beyond(self, moment: Moment, expected: RecordedStep | None) -> None:
        """A step that is not recorded, where this one was to come next."""
        if expected is None and (self._open or self._until is not None):
            self._latch.come_to_cut()
        elif expected is None:
            shown = difference.shown(self._hide({"name": moment.name, **moment.channels}))
            self._stops(Code.EXTRA, "a step after the last one that was recorded", moment, actual=shown)
        else:
            self._stops(
                Code.ORDER, "another step than recorded", moment, at=expected, expected=expected.event.name,
                actual=moment.name,
            )  # fmt: skip

    def _differs(self, expected: RecordedStep, moment: Moment, channels: Mapping[str, Value]) -> None:
        was = checkpoints.States(self._recorded.reader).at(expected.pos)
        now: Any = self._hide(dict(channels))
        found = difference.first(_in_order(was), _in_order(now))
        path, before, after = found if found is not None else ("name", expected.event.name, moment.name)
        reason = "a step came to something else than recorded"
        if path.startswith(layout.STATE):
            reason = "the flow's state is another one than recorded"
        elif path.startswith(layout.INPUTS):
            reason = "the kickoff was given something else than recorded"
        self._stops(Code.STATE, reason, moment, at=expected, path=path, expected=before, actual=after)

    def _stops(self, code: Code, reason: str, moment: Moment, at: RecordedStep | None = None, **about: Any) -> None:
        assert self._serving is not None
        where = {"at": at.pos} if at is not None else {}
        kind = moment.kind or "turn"
        self._serving.differs(
            code, reason, lane=moment.lane, kind=kind, name=moment.name, source="", **where, **about
        )  # fmt: skip


def _name(step: RecordedStep) -> _Name:
    return str(step.event.what), step.event.name


def _later(moment: Moment) -> Moment:
    """A step that was done before others whose turn was first: its flow's state is the one that they have led to."""
    if layout.STATE not in moment.channels:
        return moment
    return msgspec.structs.replace(
        moment, channels={**moment.channels, layout.STATE: canonical.state(moment.of)}
    )  # fmt: skip


def _in_order(channels: Mapping[str, Value]) -> Value:
    """What was done first, and what it led to last."""
    known = {name: channels[name] for name in layout.CHANNEL_ORDER if name in channels}
    return {**known, **{name: value for name, value in channels.items() if name not in known}}
