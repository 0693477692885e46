"""Equal calls that are made at once get their own answers back, whichever came first."""

from __future__ import annotations

from lockstep.conformance.scenario import Call, Says, Scenario, Tool
from lockstep.conformance.stage import Stage
from lockstep.conformance.world import heard

AT_ONCE = Scenario(
    "at-once",
    says=(Says((Call("look", "the door"),) * 3), Says()),
    tools=(Tool("look", meets=3),),
)


def check(stage: Stage) -> None:
    for _ in range(3):
        recorded = stage.record(AT_ONCE)
        stage.expect(stage.world.overlap == 3, "calls that the model wanted at once were made one after the other")
        told = heard(recorded.output)
        stage.expect(len(told) >= 3, f"three equal calls had the answers {told}")
        stage.holders(recorded.done.run, [seen for seen in recorded.seen if seen.kind == "tool"])
        replayed = stage.replay(AT_ONCE, recorded.done.run)
        stage.expect_identical(recorded, replayed)
        stage.expect(not replayed.seen, "the replay reached the world")
