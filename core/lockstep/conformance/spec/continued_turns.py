"""A conversation of several prompts is recorded and replayed as a whole, and later turns know the earlier ones.

One invocation of a framework is a turn of the run. In plain Python a turn is the whole run, so that both prompts are in
one.
"""

from __future__ import annotations

from lockstep.conformance.scenario import Call, Says, Scenario, Tool
from lockstep.conformance.stage import Stage
from lockstep.conformance.world import heard

TALKS = Scenario(
    "talks",
    prompts=("Look at the door.", "And the window?"),
    says=(Says((Call("look", "the door"),)), Says(), Says((Call("look", "the window"),)), Says()),
    tools=(Tool("look"),),
)


def check(stage: Stage) -> None:
    recorded = stage.record(TALKS)
    outputs = recorded.done.outputs
    stage.expect(len(outputs) == 2, f"two prompts had {len(outputs)} answers {recorded.done.error}")
    first, second = [seen.answer for seen in recorded.seen if seen.kind == "tool"]
    stage.expect({first, second} <= {*heard(outputs[1])}, "the second turn does not know what the first one heard")
    stage.holders(recorded.done.run, recorded.seen)
    replayed = stage.replay(TALKS, recorded.done.run)
    stage.expect_identical(recorded, replayed)
    stage.expect(not replayed.seen, "the replay reached the world")
