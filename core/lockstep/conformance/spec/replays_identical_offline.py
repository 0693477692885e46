"""A replay is the same run, again and again, when nobody is left to answer."""

from __future__ import annotations

from lockstep.conformance.spec.records_steps import LOOKS
from lockstep.conformance.stage import Stage


def check(stage: Stage) -> None:
    recorded = stage.record(LOOKS)
    stage.expect(bool(recorded.output), "the recorded agent said nothing")
    stage.world.stop()
    for _ in range(3):
        stage.expect_identical(recorded, stage.replay(LOOKS, recorded.done.run))
