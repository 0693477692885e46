"""Answers that failed fail again, and what was tried again is tried again, as often as it was."""

from __future__ import annotations

from lockstep.conformance.scenario import Call, Says, Scenario, Tool
from lockstep.conformance.stage import Stage, Took

AGAIN = Scenario(
    "again",
    says=(Says((Call("look", "the door"),), fails=1), Says((Call("look", "the door"),)), Says()),
    tools=(Tool("look", fails=1),),
)
ENDS = Scenario("ends", says=(Says((Call("look", "the door"),)), Says(status=400)), tools=(Tool("look"),))


def check(stage: Stage) -> None:
    recorded = stage.record(AGAIN)
    let_down = [seen.kind for seen in recorded.seen if not seen.answer]
    stage.expect(let_down == ["model", "tool"], f"the world failed for {let_down}, not for the model and a tool")
    stage.expect(bool(recorded.output), f"the agent did not try again: {recorded.done.error}")
    _check_replay(stage, AGAIN, recorded)

    recorded = stage.record(ENDS)
    stage.expect(bool(recorded.done.error), "the agent ended well, though its model refused to answer")
    state = stage.log(recorded.done.run).state
    # Where a model that does not answer leaves a turn that can be gone on with, it is interrupted.
    stage.expect(state in ("failed", "interrupted"), f"a run that ended in an error is {state}")
    _check_replay(stage, ENDS, recorded)


def _check_replay(stage: Stage, scenario: Scenario, recorded: Took) -> None:
    replayed = stage.replay(scenario, recorded.done.run)
    stage.expect_identical(recorded, replayed)
    stage.expect(not replayed.seen, "the replay reached the world")
