"""A call that acts and was not made like that before is refused in a fork, by name, until it is allowed."""

from __future__ import annotations

from lockstep.conformance.scenario import Call, Says, Scenario, Tool
from lockstep.conformance.stage import Stage, number

OWES = Scenario(
    "owes",
    says=(Says((Call("look", "the bill"),)), Says((Call("pay", "{last}"),)), Says()),
    tools=(Tool("look"), Tool("pay", effect="mutating")),
)


def check(stage: Stage) -> None:
    recorded = stage.record(OWES)
    run = recorded.done.run
    look = next(seen for seen in recorded.seen if seen.name == "look")
    # From before the look, which gets another answer then, so that another bill would be paid.
    address = f"{run}:{number(stage.holders(run, [look])[look.answer].address) - 1}"
    refused = stage.fork(OWES, address)
    stage.expect(refused.done.state == "refused", f"the fork is {refused.done.state} {refused.done.error}")
    stage.expect(any("pay" in told for told in refused.done.refused), f"refused were {refused.done.refused}, not pay")
    stage.expect(not refused.done.outputs, "the agent talked over the refusal")
    called = [seen.name for seen in refused.seen]
    stage.expect("pay" not in called, f"the world was asked {called}")

    allowed = stage.fork(OWES, address, live=("pay",))
    stage.expect(allowed.done.state == "complete", f"allowed, the fork is {allowed.done.state} {allowed.done.error}")
    looked, paid = [[seen for seen in allowed.seen if seen.name == name] for name in ("look", "pay")]
    stage.expect(len(paid) == 1, f"allowed, pay was called {len(paid)} times")
    stage.expect(
        [paid[0].argument] == [f"~{look.answer}" for look in looked], f"paid was {paid[0].argument}, not the new bill"
    )
