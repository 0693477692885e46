"""Sync and async agents are recorded alike: the same answers in as many effects, the same words to the user."""

from __future__ import annotations

from collections.abc import Sequence

from lockstep.conformance.spec.no_tool_on_replay import PAYS
from lockstep.conformance.stage import Stage


def across(stages: Sequence[Stage]) -> None:
    first = stages[0]
    kinds = {stage.mode.asynchronous for stage in stages}
    first.expect(kinds == {False, True}, f"there are only modes {[stage.mode.name for stage in stages]}")
    expected = None
    for stage in stages:
        recorded = stage.record(PAYS, same=True)
        holders = stage.holders(recorded.done.run, recorded.seen)
        found = (recorded.done.outputs, recorded.seen, len(holders))
        expected = expected or found
        stage.expect(found == expected, f"mode {stage.mode.name} came to {found}, and {first.mode.name} to {expected}")
        stage.expect_identical(recorded, stage.replay(PAYS, recorded.done.run))
