"""Changed code that asks something else is told where: the step, the lane and the field of the request.

That step is the one that has the call's answer or, where a step is what the code made of what it was told, the one
before: there the call was asked. Nothing of it reaches the world.
"""

from __future__ import annotations

from lockstep.conformance.scenario import change
from lockstep.conformance.spec.records_steps import LOOKS
from lockstep.conformance.stage import Stage, number

WHICH_ASK = ("start",)  # kinds of steps that end with what the code asks for
OTHER = "You look things up and say nothing of it."


def check(stage: Stage) -> None:
    recorded = stage.record(LOOKS)
    asked = next(seen for seen in recorded.seen if seen.kind == "model")
    step = number(stage.holders(recorded.done.run, [asked])[asked.answer].address)
    replayed = stage.replay(change(LOOKS, system=OTHER), recorded.done.run)
    told = replayed.done.difference
    stage.expect(not replayed.done.identical, "the replay of a changed prompt is called identical")
    if told is None:
        stage.expect(False, "the replay of a changed prompt names no difference")
        return
    asking = stage.log(recorded.done.run).steps[step - 1].kind in WHICH_ASK
    stage.expect(
        told.step == step - asking, f"the difference is said to be in step {told.step}, not in {step - asking}"
    )
    stage.expect(bool(told.lane), "the difference names no lane")
    stage.expect(bool(told.path), "the difference names no field of the request")
    stage.expect("nothing of it" in told.actual, f"the difference shows {told.actual!r}, not what was asked now")
    stage.expect(not replayed.seen, "the changed call reached the world")
