"""The recording of an agent that was killed has all that came before, replays up to there, and forks from there."""

from __future__ import annotations

from lockstep.conformance.scenario import Call, Says, Scenario, Tool, change
from lockstep.conformance.stage import Stage, number
from lockstep.conformance.world import tokens

# The last tool waits before it kills: effects are stored within 5 ms, and only a native checkpoint or a named step is
# waited for.
KILLED = Scenario(
    "killed",
    says=(Says((Call("look", "the door"),)), Says((Call("step", "over the edge"),)), Says()),
    tools=(Tool("look"), Tool("step", effect="mutating", kills=True, delay=0.1)),
)


def check(stage: Stage) -> None:
    run = stage.record_killed(KILLED)
    log = stage.log(run)
    stage.expect(log.state == "interrupted", f"the run is {log.state}")
    # Two turns of the model and one look were answered before.
    answered = [seen for seen in stage.world.seen if seen.answer]
    stage.expect(len(answered) == 3, f"the world answered {answered}")
    holders = stage.holders(run, answered)
    before = len(stage.world.seen)
    replayed = stage.replay(KILLED, run)
    stage.expect(replayed.done.cut, "the replay does not stop where the recording was cut")
    stage.expect(replayed.done.identical, f"the replay up to the cut is not identical: {replayed.done.difference}")
    stage.expect(len(stage.world.seen) == before, "the replay reached the world")

    # What was under way is issued anew, by an agent whose tool no longer kills.
    mended = change(KILLED, tools=(Tool("look"), Tool("step", effect="mutating")))
    last = max(number(effect.address) for effect in holders.values())
    forked = stage.fork(mended, f"{run}:{last}", live=("step",))
    stage.expect(forked.done.state == "complete", f"forked where it was killed, it is {forked.done.state}")
    asked = [seen.name for seen in forked.seen]
    stage.expect(asked == ["step", "model"], f"forked where it was killed, it asked {asked}")
    served = {seen.answer for seen in answered}
    stage.expect(served <= {*tokens(forked.output)}, f"the fork says {forked.output!r}, without {served}")
