"""A streamed answer comes in the recorded pieces, and breaks off where it did."""

from __future__ import annotations

from lockstep.conformance.scenario import Call, Says, Scenario, Tool, change
from lockstep.conformance.stage import Stage

STREAMS = Scenario("streams", says=(Says((Call("look", "the door"),)), Says()), tools=(Tool("look"),), streams=True)
BROKEN = change(STREAMS, name="broken-off", says=(Says((Call("look", "the door"),)), Says(cut=3)))


def check(stage: Stage) -> None:
    recorded = stage.record(STREAMS)
    stage.expect(len(recorded.done.pieces) > 3, f"the stream came as {recorded.done.pieces}")
    whole = "".join(recorded.done.pieces)
    stage.expect(recorded.output.strip() in whole, f"the pieces {whole!r} do not make up {recorded.output!r}")
    stage.holders(recorded.done.run, [seen for seen in recorded.seen if seen.kind == "tool"])
    replayed = stage.replay(STREAMS, recorded.done.run)
    stage.expect_identical(recorded, replayed)
    stage.expect(not replayed.seen, "the replay reached the world")

    broken = stage.record(BROKEN)
    replayed = stage.replay(BROKEN, broken.done.run)
    stage.expect_identical(broken, replayed)
    stage.expect(not replayed.seen, "the replay of a stream that broke off reached the world")
