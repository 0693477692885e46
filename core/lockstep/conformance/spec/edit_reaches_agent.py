"""An edited answer is what the agent gets: its output shows it, and it is the first thing that differs.

Of a framework that drops what a model says beside its tool calls (`Subject.drops_text`), a call that only reads is
edited in place of that text: its tool then tells the agent what it was asked.
"""

from __future__ import annotations

from typing import Any

from lockstep.conformance.scenario import Call, Scenario
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
    calls = _calls(scenario, seen) if getattr(stage.subject, "drops_text", False) else ()
    if any(scenario.tool(call.tool).effect != "read" for call in calls):
        return
    old = calls[0].argument if calls else seen.answer
    outcome = _replaced(stage.show(where).outcome, old, token)
    forked = stage.fork(scenario, f"{run}:{number(where)}", edits={address: outcome})
    stage.expect(
        forked.done.state == "complete",
        f"{about}: {forked.done.state} {forked.done.error} {forked.done.difference} {forked.done.refused}",
    )
    known = tokens(forked.output)
    stage.expect(token in known, f"{about}: the agent says {forked.output!r}, without the edited {token}")
    stage.expect(calls or seen.answer not in known, f"{about}: the agent still heard {seen.answer}")
    acted = [other.name for other in forked.seen if other.name == "note"]
    stage.expect(not acted, f"{about}: {acted} was done again")
    first = diff(run, forked.done.run, store=stage.store).first
    stage.expect(
        first is not None and number(str(first.address_a)) == number(where) and token in first.b,
        f"{about}: the first difference is {first}",
    )


def _calls(scenario: Scenario, seen: Seen) -> tuple[Call, ...]:
    """The tool calls that the model wanted with this answer."""
    return scenario.says[int(seen.argument.split()[-1])].calls if seen.kind == "model" else ()


def _replaced(value: Any, old: str, new: str) -> Any:
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, dict):
        return {name: _replaced(item, old, new) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replaced(item, old, new) for item in value]
    return value
