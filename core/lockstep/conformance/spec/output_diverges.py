"""Changed code that asks the same and says something else at its end is no identical replay."""

from __future__ import annotations

from lockstep.conformance.scenario import change
from lockstep.conformance.spec.records_steps import LOOKS
from lockstep.conformance.stage import Stage


def check(stage: Stage) -> None:
    recorded = stage.record(LOOKS)
    replayed = stage.replay(change(LOOKS, ending="Farewell."), recorded.done.run)
    stage.expect(not replayed.done.identical, "the replay of changed code with another output is called identical")
    told = replayed.done.difference
    stage.expect(told is not None, "the replay names no difference")
    stage.expect(
        told is not None and "Farewell" in told.actual,
        f"the difference shows {told.actual if told else ''!r}, not the output",
    )
    stage.expect(not replayed.seen, "the replay reached the world")
