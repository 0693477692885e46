"""An edited answer is what the agent gets: its output shows it, and it is the first thing that differs."""

from __future__ import annotations

from typing import Any

from lockstep.conformance.scenario import Scenario
from lockstep.conformance.spec.fork_every_step import WRITES
from lockstep.conformance.spec.streams import STREAMS
from lockstep.conformance.stage import Stage, number, path
from lockstep.conformance.world import Seen, edited, tokens
from lockstep.debugger.diff import diff


def check(stage: Stage) -> None:
    for scenario in (WRITES, STREAMS):
        recorded = stage.record(scenario)
        holders = stage.holders(recorded.done.run, recorded.seen)
        for seen in recorded.seen:
            _check_edit(stage, scenario, recorded.done.run, seen, holders[seen.answer].address)


def _check_edit(stage: Stage, scenario: Scenario, run: str, seen: Seen, where: str) -> None:
    address, about = path(where), f"edit of {seen.name} {seen.argument} at {where}"
    token = edited(seen.answer)
    outcome = _replaced(stage.show(where).outcome, seen.answer, token)
    forked = stage.fork(scenario, f"{run}:{number(where)}", edits={address: outcome})
    stage.expect(
        forked.done.state == "complete",
        f"{about}: {forked.done.state} {forked.done.error} {forked.done.difference} {forked.done.refused}",
    )
    known = tokens(forked.output)
    stage.expect(token in known, f"{about}: the agent says {forked.output!r}, without the edited {token}")
    stage.expect(seen.answer not in known, f"{about}: the agent still heard {seen.answer}")
    acted = [other.name for other in forked.seen if other.name == "note"]
    stage.expect(not acted, f"{about}: {acted} was done again")
    first = diff(run, forked.done.run, store=stage.store).first
    stage.expect(
        first is not None and number(str(first.address_a)) == number(where) and token in first.b,
        f"{about}: the first difference is {first}",
    )


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, dict):
        return {name: _replaced(item, old, new) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replaced(item, old, new) for item in value]
    return value
