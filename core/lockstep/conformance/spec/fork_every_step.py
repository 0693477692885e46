"""A fork at any step serves what came before and asks anew for the rest, and nothing that acts is done again.

What the run had done already, and does again alike, is answered from the record.
"""

from __future__ import annotations

from lockstep.conformance.scenario import Call, Says, Scenario, Tool
from lockstep.conformance.stage import Stage, number
from lockstep.conformance.world import Seen, tokens

WRITES = Scenario(
    "writes",
    says=(
        Says((Call("look", "the door"),)),
        Says((Call("look", "the window"), Call("look", "the roof"))),
        Says((Call("note", "all of it"),)),
        Says((Call("look", "the cellar"),)),
        Says(),
    ),
    tools=(Tool("look"), Tool("note", effect="mutating")),
)


def check(stage: Stage) -> None:
    recorded = stage.record(WRITES)
    run = recorded.done.run
    holders = stage.holders(run, recorded.seen)
    steps = {seen.answer: number(holders[seen.answer].address) for seen in recorded.seen}
    for step in range(max(steps.values()) + 1):
        forked = stage.fork(WRITES, f"{run}:{step}")
        about = f"fork at step {step}"
        stage.expect(
            forked.done.state == "complete",
            f"{about}: {forked.done.state} {forked.done.error} {forked.done.difference} {forked.done.refused}",
        )
        served = {answer for answer, at in steps.items() if at <= step}
        live = [seen for seen in recorded.seen if seen.answer not in served and seen.name != "note"]
        _check_world(stage, about, live, forked.seen)
        kept = served | {seen.answer for seen in recorded.seen if seen.name == "note"}
        known = {*tokens(forked.output)}
        stage.expect(kept <= known, f"{about}: the agent did not hear {kept - known}, which are recorded")
        again = known & ({*steps} - kept)
        stage.expect(not again, f"{about}: the agent heard {again}, which were to be asked anew")


def _check_world(stage: Stage, about: str, expected: list[Seen], seen: tuple[Seen, ...]) -> None:
    wanted = sorted((each.name, each.argument) for each in expected)
    got = sorted((each.name, each.argument) for each in seen)
    stage.expect(wanted == got, f"{about}: the world was asked {got} and not {wanted}")
