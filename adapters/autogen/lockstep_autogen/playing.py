"""A team's messages in a replay: each step is compared with the recorded one, and the first difference stops it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from lockstep.errors import Code
from lockstep.log import checkpoints
from lockstep.log.model import Status, Value
from lockstep.session import difference
from lockstep.session.native.endings import Ending
from lockstep.session.native.faults import worded
from lockstep.session.native.ran import CONSISTENT, Ran, Recorded, RecordedStep
from lockstep.session.native.serving import Serving
from lockstep_autogen import canonical, layout, speaking, stopping
from lockstep_autogen.halting import Halt
from lockstep_autogen.layout import Moment
from lockstep_autogen.recording import Steps, returned
from lockstep_autogen.seams import Asked


class Player:
    """Is `Told` of a replay, and of the part of a fork that is served.

    compared  steps that were the recorded ones
    keys      of these
    ending    of the last turn
    """

    def __init__(
        self, recorded: Recorded, halt: Halt, hide: Callable[[Value], Value], *, until: int | None = None,
        upto: int | None = None, faults: list[str],
    ) -> None:  # fmt: skip
        """`until`: the step after which the team is stopped; `upto`: position behind which no step is expected."""
        self.compared: list[int] = []
        self.keys: list[bytes] = []
        self.ending = Ending()
        self.steps = Steps()
        self._recorded = recorded
        self._halt = halt
        self._hide = hide
        self._until = until
        self._upto = upto
        self._faults = faults
        self._left: dict[str, deque[RecordedStep]] = {}
        self._ends: dict[str, int] = {}  # the last step of each lane in this turn
        self._orders: dict[int, speaking.Order] = {}  # by step
        self._serving: Serving | None = None
        self._last: RecordedStep | None = None
        self._open = False  # the recording does not say what comes after the last step

    def turn(self, run: Ran, serving: Serving, *, is_open: bool = False) -> None:
        """The recorded run that is next. `is_open`: what follows its last step is not known."""
        self._serving = serving
        self._open = is_open
        self.ending = Ending()
        self._left = {}
        steps = self._recorded.steps_of(run)
        # A branch may go on from where its parent was stopped.
        self._ends = {step.event.lane: step.number for step in steps}
        for step in steps:
            if self._expects(step):
                self._left.setdefault(step.event.lane, deque()).append(step)

    def _expects(self, step: RecordedStep) -> bool:
        if self._open and self._recorded.is_broken(step):
            return False
        if self._upto is not None and step.pos > self._upto:
            return False
        return self._until is None or step.number <= self._until

    @property
    def left(self) -> RecordedStep | None:
        """The first step of the turn that has not been made again."""
        return min((steps[0] for steps in self._left.values() if steps), key=lambda step: step.pos, default=None)

    async def speaks(self, lane: str, name: str) -> None:
        """See `Seams`: those who spoke at once speak in the recorded order."""
        left = self._left.get(lane)
        if left:
            await self.as_in(left[0], name)

    async def as_in(self, step: RecordedStep, name: str) -> None:
        """Returns when those who spoke in a step before this one have spoken."""
        order = self._orders.get(step.number)
        if order is None:
            heard = self._recorded.record.field(step.seq, layout.ORDER)
            order = self._orders[step.number] = speaking.Order(layout.one_by_one(heard))
        await order.turn(name)

    # What the seams tell.

    async def begins(self, asked: Asked, before: Moment) -> None:
        """See `Told`."""
        if asked.entry.startswith(("run", "on_messages")):
            await self._step(before)

    async def cut(self, moment: Moment) -> Any:
        """See `Told`: a team that was stopped is stopped again."""
        return stopping.message(await self._step(moment))

    async def ends(self, result: Any, last: Moment | None) -> None:
        """See `Told`."""
        if last is not None and (last.consistent or last.spoken):
            await self._step(last)
        self.ending = Ending(Status.OK, returned(result))

    def fails(self, error: BaseException, last: Moment | None) -> None:
        """See `Told`."""
        if self._halt.stopped:
            return
        if last is not None and last.spoken:
            self._compare(last, *self.steps.unsaved(last))
        self.ending = Ending(Status.ERROR, error)

    def fault(self, where: str, error: BaseException) -> None:
        self._faults.append(worded(where, error))

    async def _step(self, moment: Moment) -> str:
        """Compares a step. Returns why the recorded team was stopped behind it."""
        if self._halt.stopped:
            await self._never()
        self._halt.moved += 1
        try:
            made = await self.steps.next(moment)
        except Exception as error:
            self.fault("a team's state", error)
            moment = msgspec.structs.replace(moment, consistent=False)
            made = self.steps.unsaved(moment)
        if not self._compare(moment, *made):
            await self._never()
        made_last = self._last
        if made_last is None or self._ends.get(moment.lane) != made_last.number:
            return ""
        halted = self._recorded.record.field(made_last.seq, layout.HALTED)
        return halted if isinstance(halted, str) else ""

    async def _never(self) -> None:
        assert self._serving is not None
        raise await self._halt.never(self._serving.latched.error())

    def _compare(self, moment: Moment, body: dict[str, Value], next: Any) -> bool:
        """Whether the team goes on."""
        hidden: Any = self._hide(body)
        key = self.steps.made(moment, next, hidden)
        left = self._left.get(moment.lane)
        if not left:
            self._beyond(moment)
            return False
        expected = left.popleft()
        next.pos = expected.pos
        if key != expected.event.key:
            self._differs(expected, moment, next.channels)
            return False
        self._last = expected
        self.compared.append(expected.number)
        self.keys.append(key)
        if expected.number == self._until:
            self._cut()
            return False
        return True

    def _cut(self) -> None:
        assert self._serving is not None
        self._serving.latched.come_to_cut()
        self._halt.stop()

    def _beyond(self, moment: Moment) -> None:
        """A step after the last recorded one."""
        if self._open or self._until is not None:
            self._cut()
            return
        said = [canonical.spoken(each.source, each.message, each.inner) for each in moment.spoken]
        self._stops(
            Code.EXTRA, "a message after the last one that was recorded", moment, at=None,
            actual=difference.shown(self._hide(said)),  # type: ignore[arg-type]
        )  # fmt: skip

    def _differs(self, expected: RecordedStep, moment: Moment, channels: Mapping[str, Value]) -> None:
        was = checkpoints.States(self._recorded.reader).at(expected.pos)
        now: Any = self._hide(dict(channels))
        code, reason = Code.STATE, "another message than recorded"
        if _speakers(was) != _speakers(now) and sorted(_speakers(was)) == sorted(_speakers(now)):
            code, reason = Code.ORDER, "those who spoke at once came in another order"
        found = difference.first(_in_order(was), _in_order(now))
        if found is None:
            consistent = self._recorded.body(expected).get(CONSISTENT, True)
            found = CONSISTENT, difference.shown(consistent), difference.shown(moment.consistent)
        elif not found[0].startswith((layout.MESSAGES, layout.SELECTED, layout.STOP)):
            reason = "the team's state is another one than recorded"
        path, before, after = found
        self._stops(code, reason, moment, at=expected, path=path, expected=before, actual=after)

    def _stops(self, code: Code, reason: str, moment: Moment, at: RecordedStep | None, **about: Any) -> None:
        assert self._serving is not None
        name = at.event.name if at is not None else moment.name
        where = {"at": at.pos} if at is not None else {}
        self._serving.differs(code, reason, lane=moment.lane, kind="message", name=name, source="", **where, **about)
        self._halt.stop()


def _speakers(channels: Mapping[str, Value]) -> list[str]:
    said = channels.get(layout.MESSAGES)
    return [str(each.get("source")) for each in said if isinstance(each, dict)] if isinstance(said, list) else []


def _in_order(channels: Mapping[str, Value]) -> Value:
    """What was said first, and the state it led to last."""
    first = (layout.MESSAGES, layout.SELECTED, layout.STOP)
    return {
        **{name: channels[name] for name in first if name in channels},
        **{name: value for name, value in channels.items() if name not in first},
    }
