"""The search of a run whose probes may err: it repeats them until it is as sure as it was asked to be."""

from __future__ import annotations

from collections.abc import Sequence

from lockstep.debugger import belief as beliefs
from lockstep.debugger import words
from lockstep.debugger.belief import Belief
from lockstep.debugger.cuts import Cut
from lockstep.debugger.search import GOOD, PATIENCE, SKIP, Search
from lockstep.debugger.verdict import Asking, Located, Probe, Wanted


def over(
    cuts: Sequence[Cut], belief: Belief, confidence: float, budget: int, jobs: int = 1
) -> Asking[Located]:  # fmt: skip
    """Probes until one answer has that probability, or `budget` probes were made. The belief is about these cuts.

    `jobs` of them are under way at once. None of these is left out, also where the answer is known before it has ended:
    how long a probe takes may have to do with how it ends, and those that end first are no fair sample.
    """
    flying: list[int] = []
    made = lost = 0
    stopped = ""
    while True:
        stopped = ""
        while beliefs.settled(belief, confidence) is None and len(flying) < jobs:
            told = beliefs.following(belief, under_way=flying)
            if made + len(flying) >= budget:
                stopped = f"the budget of {words.number(made, 'probe')} is reached"
            elif lost >= PATIENCE:
                stopped = f"{lost} probes in a row could not be judged"
            elif not told:
                stopped = "no other probe would tell more"
            if stopped:
                break
            flying.append(told[0])
        if not flying:
            break
        ended = yield tuple(_wanted(cuts, belief, confidence, at, budget - made) for at in flying)
        at, probe = cuts.index(ended.cut), ended.probe
        flying.remove(at)
        made += 1
        lost = lost + 1 if probe.judged == SKIP else 0
        # One that got the recorded answers up to a later cut, though it was not given them, is a probe of that cut.
        of = reached(cuts, probe, at) if probe.judged == GOOD else at
        belief = beliefs.told(belief, of, probe.judged, certain=_is_no_sample(cuts, probe, at))
    first, last = beliefs.settled(belief, confidence) or beliefs.span(beliefs.posterior(belief), confidence)
    return Located(Search(len(cuts) - 1, first - 1, last), cuts, belief, made, stopped)


def _wanted(cuts: Sequence[Cut], belief: Belief, confidence: float, at: int, left: int) -> Wanted:
    chances = beliefs.posterior(belief)
    first, last = beliefs.span(chances, confidence)
    good = cuts[first - 1].place if first else ""
    bad = cuts[last].place if last < len(cuts) else ""
    return Wanted(cuts[at], left, good, bad, max(chances))


def _is_no_sample(cuts: Sequence[Cut], probe: Probe, at: int) -> bool:
    """Whether the probe would go that way each time: it kept all answers, or was given those of the good run, and asked
    nothing anew."""
    return probe.asked == 0 and (at == len(cuts) - 1 or bool(cuts[at].edits))


def reached(cuts: Sequence[Cut], probe: Probe, at: int) -> int:
    """The last cut up to which a probe at cut `at` got the recorded answers. States say how far it went, and there are
    none within a step: other answers may come to the same state at its end."""
    if cuts[at].effect is not None:
        return at
    reach = probe.reach if probe.reach is not None else -1
    return max((number for number, cut in enumerate(cuts) if number > at and cut.step <= reach), default=at)
