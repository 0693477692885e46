"""The recording of an agent that was killed has all that came before, and replays up to there."""

from __future__ import annotations

from lockstep.conformance.scenario import Call, Says, Scenario, Tool
from lockstep.conformance.stage import Stage

# The last tool waits before it kills: effects are stored within 5 ms, and only a native checkpoint or a named step is
# waited for.
KILLED = Scenario(
    "killed",
    says=(Says((Call("look", "the door"),)), Says((Call("step", "over the edge"),)), Says()),
    tools=(Tool("look"), Tool("step", effect="mutating", kills=True, delays=(0.1,))),
)


def check(stage: Stage) -> None:
    run = stage.record_killed(KILLED)
    log = stage.log(run)
    stage.expect(log.state == "interrupted", f"the run is {log.state}")
    # Two turns of the model and one look were answered before.
    answered = [seen for seen in stage.world.seen if seen.answer]
    stage.expect(len(answered) == 3, f"the world answered {answered}")
    stage.holders(run, answered)
    before = len(stage.world.seen)
    replayed = stage.replay(KILLED, run)
    stage.expect(replayed.done.cut, "the replay does not stop where the recording was cut")
    stage.expect(replayed.done.identical, f"the replay up to the cut is not identical: {replayed.done.difference}")
    stage.expect(len(stage.world.seen) == before, "the replay reached the world")
