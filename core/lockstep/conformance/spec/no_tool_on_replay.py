"""In a replay no tool runs and no model is asked, whatever they would do."""

from __future__ import annotations

from lockstep.conformance.scenario import Call, Says, Scenario, Tool
from lockstep.conformance.stage import Stage

PAYS = Scenario(
    "pays",
    says=(
        Says((Call("look", "the bill"),)),
        Says((Call("pay", "the bill"),)),
        Says((Call("tell", "the owner"),)),
        Says(),
    ),
    tools=(Tool("look"), Tool("pay", effect="mutating"), Tool("tell", effect="unknown")),
)


def check(stage: Stage) -> None:
    recorded = stage.record(PAYS)
    called = [seen.name for seen in recorded.seen if seen.kind == "tool"]
    stage.expect(called == ["look", "pay", "tell"], f"the recorded agent called {called}")
    replayed = stage.replay(PAYS, recorded.done.run)
    stage.expect(not replayed.seen, f"the replay reached the world: {[seen.name for seen in replayed.seen]}")
