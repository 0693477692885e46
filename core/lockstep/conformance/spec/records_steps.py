"""Every answer from outside is the outcome of one effect, in the step that it belongs to.

The run begins with the input (a workflow's start is its input) and ends with a step of kind `end`, or, where the
framework keeps it, with its last checkpoint, which a turn ends with. Steps are numbered without gaps; each effect has
a lane, its request and an address that `show` takes.
"""

from __future__ import annotations

from urllib.parse import unquote

from lockstep.conformance.scenario import Call, Says, Scenario, Tool
from lockstep.conformance.stage import Stage, number, text

LOOKS = Scenario(
    "looks",
    says=(Says((Call("look", "the door"),)), Says((Call("look", "the window"),)), Says()),
    tools=(Tool("look"),),
)


def check(stage: Stage) -> None:
    took = stage.record(LOOKS)
    log = stage.log(took.done.run)
    stage.expect(log.state == "complete", f"the run is {log.state}")
    stage.expect(not took.done.faults, f"there were faults: {took.done.faults}")
    numbers = [number(step.address) for step in log.steps]
    stage.expect(numbers == [*range(len(numbers))], f"the steps are numbered {numbers}")
    stage.expect(log.steps[0].kind in ("input", "start"), f"the first step is a {log.steps[0].kind}, not the input")
    last = log.steps[-1]
    ended = last.kind in ("end", "checkpoint") or any(turn.steps[-1:] == (numbers[-1],) for turn in log.turns)
    stage.expect(ended, f"the last step is a {last.kind}, not the end")
    holders = stage.holders(took.done.run, took.seen)
    order = [number(holders[seen.answer].address) for seen in took.seen]
    stage.expect(order == sorted(order), f"answers that came one after the other are in steps {order}")
    for seen in took.seen:
        effect = holders[seen.answer]
        shown = stage.show(effect.address)
        stage.expect(bool(effect.lane), f"{effect.address} has no lane")
        if seen.kind == "tool":
            stage.expect(seen.name in effect.name, f"the call of tool {seen.name} is recorded as {effect.name}")
            told = unquote(text(shown.request))  # an address may hold it
            stage.expect(seen.argument in told, f"{effect.address} was asked {seen.argument!r}, and recorded as {told}")
