"""How much of what a run came to was said by which step: where a search for the culprit looks first.

For searches that repeat probes (`bisect.Aim.prior`): one that takes each probe at its word halves what is left, and
needs no guess. The culprit need not be among what the bad outcome says, as it may have been computed of it, or left
out. So half of the weight is spread evenly: a wrong guess costs a probe or two and no more, since no step gets less
than half of what it has without one.
"""

from __future__ import annotations

from collections.abc import Sequence

from lockstep.debugger import listing
from lockstep.debugger.cuts import Cut
from lockstep.debugger.flow import OUTCOME, Flow, Node
from lockstep.debugger.tracks import Track, track
from lockstep.debugger.why import Trail, Walk, target
from lockstep.log.address import parse
from lockstep.log.timeline import END, Place, Timeline

_EVEN = 0.5  # of the weight, spread evenly
_PASSED = 0.5  # what an answer counts that only passed a value on, beside the one that first had it

# What was answered: step and number of the effect, 0 for a state or input.
type Answered = tuple[int, int]


def prior(timeline: Timeline, address: str, step: int | None = None) -> tuple[float, ...]:
    """A weight for each step of a run, 0 to its last; together they are 1.

    address  of the run, without a step
    step     whose outcome is bad: what was printed, raised or returned, or a state. None: the last
    """
    said = _said(timeline, address, step)
    steps = [0.0] * len(timeline.steps)
    for (number, _), weight in said.items():
        steps[number] += weight
    return _mixed(steps)


def of_cuts(timeline: Timeline, cuts: Sequence[Cut], address: str, step: int | None = None) -> tuple[float, ...]:
    """A weight for each place where a probe can leave the run but the first, as `bisect.Aim.prior` takes it: of what
    was answered since the place before it."""
    said = _said(timeline, address, step)
    apart = {(cut.step, cut.effect) for cut in cuts[1:] if cut.effect is not None}
    weights: list[float] = []
    behind = cuts[0].step
    for cut in cuts[1:]:
        if cut.within is not None or cut.effect is not None:
            weights.append(said.get((cut.step, cut.effect), 0.0) if cut.effect is not None else 0.0)
            continue
        here = [at for at in said if behind < at[0] <= cut.step and at not in apart]
        weights.append(sum(said[at] for at in here))
        behind = cut.step
    return _mixed(weights)


def _mixed(weights: Sequence[float]) -> tuple[float, ...]:
    if not weights:
        return ()
    every, even = sum(weights), 1 / len(weights)
    return tuple(_EVEN * even + (1 - _EVEN) * (weight / every if every else even) for weight in weights)


def _said(timeline: Timeline, address: str, step: int | None) -> dict[Answered, float]:
    """Of each answer, how much of what the outcome says came from it or passed through it."""
    flow = Flow(address, timeline)
    found: dict[Answered, float] = {}
    for trail in _trails(flow, timeline, step):
        for hop in {hop.node: hop for hop in trail.hops if hop.side == OUTCOME}.values():
            node = flow.nodes[hop.node]
            if node.kind == END:
                continue
            weight = trail.bits * (1.0 if hop.node == trail.hops[-1].node else _PASSED)
            found[_answered(node)] = found.get(_answered(node), 0.0) + weight
    return found


def _answered(node: Node) -> Answered:
    """Nested calls are part of the one that they are in."""
    _, _, effect = node.address.rpartition(":")[2].partition(".")
    return node.step, int(effect.partition("/")[0]) if effect else 0


def _trails(flow: Flow, timeline: Timeline, step: int | None) -> list[Trail]:
    last = timeline.steps[-1] if step is None else timeline.steps[step]
    if step is None and last.kind == END and timeline.is_native and len(timeline.steps) > 1:
        last = timeline.steps[-2]  # what is on the way behind it is no outcome
    place = Place(parse(f"{flow.run}:{last.number}"), timeline, last, None)
    shown = listing.show(place).outcome
    if last.kind == END and isinstance(shown, dict):
        shown = {name: said for name, said in shown.items() if name != "exit"}
    whole: Track = track(shown)
    return Walk(flow).trails(target(flow, place), OUTCOME, whole, (0, len(whole.words)))
