"""Where bisect can leave a run: after each step, and inside of the step in question after each of its answers.

A cut keeps what was recorded up to it. With a good run beside the bad one, cuts lie between the answers that differ:
one keeps the bad run's answers up to there and gives the program the good run's after it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from lockstep.debugger import checkpointed
from lockstep.debugger import plan as plans
from lockstep.errors import TargetError
from lockstep.log import checkpoints, native
from lockstep.log.address import Address
from lockstep.log.model import Kind, Value
from lockstep.log.native import CHECKPOINT
from lockstep.log.timeline import END, INPUT, Effect, Place, Step, Timeline
from lockstep.session import policy as policies
from lockstep.session.policy import EffectRules, Policy


class Cut(msgspec.Struct, frozen=True):
    """A place in a run.

    at      as in an address: `7`, `7.2`
    step    the step of the last answer that is kept, `effect` its number there; None where that is the whole step
    edits   answers given in the place of recorded ones, by address in the run
    within  of a run that a framework keeps itself: what was answered and written on the way to step `at` is kept up to
            this position; None: all of it
    task    the task whose writes are the last that are kept, "" for a call
    label   what a probe's branch is called after
    free    nothing may run for real, whatever else is allowed: what no record answers is refused
    beside  address of another run, whose answers calls get for which this one's record has none
    """

    at: str
    step: int
    effect: int | None = None
    edits: Mapping[str, Value] = {}
    label: str = ""
    within: int | None = None
    task: str = ""
    free: bool = False
    beside: str = ""

    @property
    def name(self) -> str:
        return self.label or self.at

    @property
    def place(self) -> str:
        """The last of the run's own answers that is kept: `at`, or where another run's are given for those that follow
        the last before them. What has no address has its label: within a step, or one that keeps all but some."""
        if not self.beside:
            return self.at if self.within is None else self.label
        kept = f"{self.step}.{self.effect}" if self.effect is not None else "0"
        return kept if kept not in self.edits else self.label

    def policy(self, live: Sequence[str], tail: str, rules: EffectRules) -> Policy:
        """What a probe there may run for real, of what was allowed. Where another run's answers are given for some
        calls, all others keep theirs: what is asked as it was is answered as it was, also behind them."""
        kept = tail or ("reuse" if self.beside else "")
        found = policies.given((), "record", rules) if self.free else policies.given(live, kept, rules)
        return msgspec.structs.replace(found, beside=self.beside)


def of_run(timeline: Timeline) -> list[Cut]:
    """Step 0, each numbered step, and what was answered after the last one. One alone: nothing was recorded."""
    if timeline.is_native:
        return _of_checkpoints(timeline)
    cuts: list[Cut] = []
    for step in timeline.steps:
        if step.kind != END:
            cuts.append(Cut(str(step.number), step.number))
        elif answered := in_order(step):
            cuts.append(Cut(f"{step.number}.{answered[-1].number}", step.number))
    return [cut for cut in cuts if _can_leave(timeline, cut)]


def of_answers(timeline: Timeline, cuts: Sequence[Cut]) -> list[Cut]:
    """These, and those between the answers of a step that has several."""
    if are_actions(timeline) or are_strands(timeline):
        return [*cuts]  # they are its answers
    found = [cuts[0]]
    for cut in cuts[1:]:
        between = of_step(timeline, timeline.step(cut.step))[1:-1]
        found += [*(one for one in between if timeline.is_native or _can_leave(timeline, one)), cut]
    return found


def _can_leave(timeline: Timeline, cut: Cut) -> bool:
    alone = len(timeline.streams) == 1 and not plans.conversations(timeline)
    return alone or not cut.step or _leaves(timeline, cut)


def _leaves(timeline: Timeline, cut: Cut) -> bool:
    """Whether a fork can leave there: not where another process of the run closed the step, or was at work, nor in the
    middle of a conversation with one."""
    step = timeline.step(cut.step)
    effect = next((one for one in step.effects if cut.at == f"{step.number}.{one.number}"), None)
    address = Address(timeline.reader.info.name, step=step.number, effect=effect.number if effect else None)
    try:
        plans.plan(Place(address, timeline, step, effect), "", (), Policy())
    except TargetError:
        return False
    return True


def _of_checkpoints(timeline: Timeline) -> list[Cut]:
    """Those that a task has led to: what was given, or set by hand, is no answer. Before them, the last that was
    given."""
    if checkpoints.are_commanded(timeline.reader):
        return _of_answers(timeline)
    if are_actions(timeline) or are_strands(timeline):
        return _of_exchanges(timeline)
    cuts: list[Cut] = []
    for step in timeline.steps:
        if step.kind == END:
            answered = in_order(step)
            at = f"{step.number}.{answered[-1].number}" if answered else str(step.number)
            cuts.append(Cut(at, step.number))
        elif step.kind == CHECKPOINT and step.name != INPUT:
            cuts.append(Cut(str(step.number), step.number))
        elif len(cuts) < 2:
            cuts[:] = [Cut(str(step.number), step.number)]
    return cuts


def _of_answers(timeline: Timeline) -> list[Cut]:
    """Of a workflow, each step to which an answer led: what else came is given again by each probe."""
    cuts: list[Cut] = []
    for step in timeline.steps:
        answered = [effect for effect in in_order(step) if effect.kind not in native.GIVEN]
        if answered:
            at = str(step.number) if step.kind != END else f"{step.number}.{answered[-1].number}"
            cuts.append(Cut(at, step.number))
        elif step.kind != END and len(cuts) < 2:
            cuts[:] = [Cut(str(step.number), step.number)]
    return cuts


def are_actions(timeline: Timeline) -> bool:
    """Whether the steps of a native run are actions, which are all done again by each probe: what is kept of it are
    answers alone, whichever step they came in."""
    return timeline.is_native and any(step.kind == checkpoints.ACTION for step in timeline.steps)


def are_strands(timeline: Timeline) -> bool:
    """Likewise, whether its steps are those of strands that run beside each other: when one closes, others have had
    answers of their own."""
    return timeline.is_native and any(
        event.kind is Kind.STEP and event.what == native.OWN
        for _, event in timeline.reader.heads(timeline.stream.id)
    )  # fmt: skip


def _of_exchanges(timeline: Timeline) -> list[Cut]:
    """Of such runs, each answer in the order in which they came; of actions, up to the last one."""
    ends = not are_actions(timeline)
    answered = [
        (effect.end.pos, Cut(f"{step.number}.{effect.number}", step.number, effect.number))
        for step in timeline.steps if step.kind != END or ends
        for effect in step.effects if effect.end is not None and effect.kind not in native.UNASKED
    ]  # fmt: skip
    return [Cut("0", 0), *(cut for _, cut in sorted(answered, key=lambda each: each[0]))]


def of_step(timeline: Timeline, step: Step) -> list[Cut]:
    """The end of the step before, then each answer of this one in the order in which they came."""
    if timeline.is_native and step.kind != END:
        return _of_tasks(timeline, step)
    return [
        Cut(str(step.number - 1), step.number - 1),
        *(Cut(f"{step.number}.{effect.number}", step.number, effect.number) for effect in in_order(step)),
    ]


def _of_tasks(timeline: Timeline, step: Step) -> list[Cut]:
    """The answers on the way to one checkpoint, in the order in which they came: calls, and what tasks wrote that made
    none. The first cut keeps none of them."""
    found: list[tuple[int, Cut]] = []
    for effect in in_order(step):
        if effect.end is not None:
            found.append((effect.end.pos, Cut(f"{step.number}.{effect.number}", step.number, effect.number)))
    asked = {effect.lane for effect in step.effects}
    for one in checkpointed.ran(timeline, step):
        event = one.event
        if event.lane not in asked:
            task = event.lane.rpartition("/")[2]
            cut = Cut(str(step.number), step.number, label=f"{step.number}-{task}", within=event.pos, task=task)
            found.append((event.pos, cut))
    return [Cut(str(step.number - 1), step.number - 1), *(cut for _, cut in sorted(found, key=lambda each: each[0]))]


def in_order(step: Step) -> Sequence[Effect]:
    """The answers of a step as they came: its effects are numbered lane by lane."""
    ended = [effect for effect in step.effects if effect.end is not None]
    return sorted(ended, key=lambda effect: (effect.end.at if effect.end is not None else 0, effect.end_seq))
