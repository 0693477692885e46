"""Bisect names the one answer that makes a run bad, wherever it is, though every live answer is a new one."""

from __future__ import annotations

import math

from lockstep.conformance.scenario import Call, Says, Scenario, Tool
from lockstep.conformance.stage import Stage, number, path
from lockstep.conformance.world import POISON, tokens

ROOMS = ("the door", "the window", "the roof", "the cellar")
SEARCHES = Scenario("searches", says=(*(Says((Call("look", room),)) for room in ROOMS), Says()), tools=(Tool("look"),))


def check(stage: Stage) -> None:
    for nth in (1, 3, len(ROOMS)):
        recorded = stage.record(SEARCHES, poisoned=nth)
        run = recorded.done.run
        planted = next(seen for seen in recorded.seen if seen.answer.startswith(POISON))
        where = stage.holders(run, [planted])[planted.answer].address
        found = stage.bisect(SEARCHES, run, _bad)
        about = f"a bad answer at {where}"
        stage.expect(found.verdict == "culprit", f"{about}: the verdict is {found.verdict}")
        stage.expect(
            (found.step, found.effect) == (number(where), path(where)), f"{about}: found {found.step}, {found.effect}"
        )
        steps = [step for step in stage.log(run).steps[1:] if step.kind != "end"]
        most = math.ceil(math.log2(len(steps))) + 1 + math.ceil(math.log2(max(len(step.effects) for step in steps)))
        stage.expect(found.probes <= most, f"{about}: {found.probes} probes, and {most} are enough")


def _bad(output: str) -> bool:
    return any(token.startswith(POISON) for token in tokens(output))
