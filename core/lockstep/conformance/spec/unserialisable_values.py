"""A result that is no data does not disturb the agent, and its replay is never wrong in silence."""

from __future__ import annotations

from lockstep.conformance.scenario import Call, Says, Scenario, Tool
from lockstep.conformance.stage import Stage

OPENS = Scenario("opens", says=(Says((Call("open", "the door"),)), Says()), tools=(Tool("open", gives="object"),))


def check(stage: Stage) -> None:
    plain = stage.plain(OPENS, same=True)
    recorded = stage.record(OPENS, same=True)
    stage.expect(
        plain.done.outputs == recorded.done.outputs,
        f"the agent says {plain.done.outputs}, and recorded {recorded.done.outputs} {recorded.done.error}",
    )
    replayed = stage.replay(OPENS, recorded.done.run)
    stage.expect(not replayed.seen, "the replay reached the world")
    if replayed.done.identical:
        # The framework made a text of it before anybody had to store it.
        stage.expect_identical(recorded, replayed)
        return
    told = replayed.done.difference
    stage.expect(told is not None and bool(told.reason), "the replay is not identical and does not say why")
    stage.expect(bool(recorded.done.faults), "the recording could not store the result and did not say so")
