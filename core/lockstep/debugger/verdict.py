"""What a bisect answers, out of what its probes said. Pure."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Literal

import msgspec

from lockstep.debugger import belief as beliefs
from lockstep.debugger import search as searches
from lockstep.debugger.belief import Belief, Chance
from lockstep.debugger.cuts import Cut
from lockstep.debugger.search import BAD, GOOD, SKIP, Judged, Search
from lockstep.debugger.structure import Change
from lockstep.log.model import Value

type Kind = Literal["culprit", "ambiguous", "not-reproducible", "in-the-code", "not-recorded"]

CULPRIT: Kind = "culprit"
AMBIGUOUS: Kind = "ambiguous"
NOT_REPRODUCIBLE: Kind = "not-reproducible"
IN_THE_CODE: Kind = "in-the-code"
NOT_RECORDED: Kind = "not-recorded"


class Probe(msgspec.Struct, frozen=True):
    """A probe and what was said of it.

    at      where it left the run: `7` is after step 7. With a good run: the last of the bad run's answers that it kept,
            `7.1`; of one that kept all but some, a name
    live    calls that really happened in it, 0 where it was `found`: run before
    reused  names of the calls that were answered from the record, since nothing allowed them to run
    refuse  what was refused in it, and what would allow that
    reach   of a run that a framework keeps itself: the last step up to which its states were the recorded ones, though
            it was not served that far; None where that is not known
    asked   calls that happened when it was made, now or before
    again   whether what it asked up to `reach` was answered as it had been
    """

    address: str
    at: str
    judged: Judged
    why: str
    live: int
    seconds: float
    found: bool
    reused: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    reach: int | None = None
    asked: int = 0
    again: bool = False


class Wanted(msgspec.Struct, frozen=True):
    """The next probe. `left`: how many it takes at most, this one included, where each can be judged. `good` and `bad`:
    places between which the culprit is, "" where none is known yet. `sure`: of a search that repeats probes, how likely
    its likeliest answer is."""

    cut: Cut
    left: int
    good: str
    bad: str
    sure: float | None = None


class Told(msgspec.Struct, frozen=True):
    """What a search is told: a probe that has ended, and the cut where it left."""

    cut: Cut
    probe: Probe


# Yields the probes that are to be under way, the one that is needed most first; is sent the first that has ended.
type Asking[T] = Generator[Sequence[Wanted], Told, T]


class Likelihood(msgspec.Struct, frozen=True):
    """What is known of one place where a probe can leave the run.

    at           as in an address; the answers up to there are kept, and with a good run its own are given after it
    culprit      how likely the culprit is the last of them, and none before; of the first place, that no recorded
                 answer is needed for the run to be bad
    bad          how likely a probe that leaves there is bad, 0 to 1; `low` and `high` hold the rate at which such
                 probes are bad with probability 0.95
    tried        how many probes there were bad, good, and skipped
    """

    at: str
    culprit: float
    bad: float
    low: float
    high: float
    tried: tuple[int, int, int]


class Verdict(msgspec.Struct, frozen=True):
    """The answer of a bisect.

    verdict     culprit, ambiguous, not-reproducible, in-the-code or not-recorded
    step        the culprit's number, None where none is named
    effect      the answer in it, as `7.1`; None where the step is all that is known
    task        of a run that a framework keeps itself: the task whose work it is, where that made no call
    probes      how many were needed, those found from before included
    live_calls  calls that really happened for it
    confidence  where probes were repeated: how likely the answer is right, of an ambiguous one the likeliest. Else 1.0
                for one answer, 1/n for a range of n: given that each probe would be judged the same way again
    run         address of what was searched
    why         in words, what the verdict stands on
    between     of an ambiguous one: the last place that is known to be good ("" for none), and the first that is known
                to be bad
    name        what the culprit is: `tool get_order(452)`
    changes     where its recorded answer (a) differs from another one (b): that at `other`, of a probe which asked anew
                or of the good run
    edits       of a fork in which it answers as the other one did, where few values differ: `7.1:total=450`
    tried       all probes in the order in which they were judged
    seconds     that all of it took
    posterior   what is known of each place, from step 0 on
    likeliest   of an ambiguous verdict of repeated probes: the place of the likeliest answer, as `7`
    rescue      where probes were repeated: how often one that keeps the culprit is good all the same; `spoil`: how
                often one that does not is bad
    causes      with a good run: addresses of the answers that cure it together, as `7.1`; the culprit is the first
    minimal     whether the run was seen to be bad with each of them kept by itself, so that none can be left out
    shrunk      where the culprit's answer was shrunk: what of it is enough, by path in the answer at `other`; "" is all
                of it
    reproduce   edits of a fork of `run` that is bad by no more than that: `7.1={"owed":4000}`
    ended       how many probes more were begun, and ended before their end, since what others said made them needless;
                the calls that had happened in them are among `live_calls`
    fork_at     where forks with `edits` or `reproduce` leave, as the probes did: `12`; "" for the culprit's own step
    """

    verdict: Kind
    step: int | None
    effect: str | None
    probes: int
    live_calls: int
    confidence: float
    run: str
    why: str
    between: tuple[str, str] | None = None
    name: str = ""
    changes: tuple[Change, ...] = ()
    other: str = ""
    edits: tuple[str, ...] = ()
    tried: tuple[Probe, ...] = ()
    seconds: float = 0.0
    task: str = ""
    posterior: tuple[Likelihood, ...] = ()
    likeliest: str = ""
    rescue: Chance | None = None
    spoil: Chance | None = None
    causes: tuple[str, ...] = ()
    minimal: bool = False
    shrunk: dict[str, Value] | None = None
    reproduce: tuple[str, ...] = ()
    fork_at: str = ""
    ended: int = 0

    def judged(self, judged: Judged) -> tuple[Probe, ...]:
        """The probes that were bad, good or skipped."""
        return tuple(probe for probe in self.tried if probe.judged == judged)


class Cure(msgspec.Struct, frozen=True):
    """A set of answers, at these addresses in the bad run, that cures it where the good run's are given for them.

    proven   whether each was kept by itself, and the run was bad
    stopped  why it was not looked for a smaller one, "" where it was
    """

    answers: tuple[str, ...]
    proven: bool
    stopped: str = ""


class Located(msgspec.Struct, frozen=True):
    """Where a search ended: between `cuts[known.good]` and `cuts[known.bad]`.

    belief   what all probes said, of a search that repeats them; None of one that takes each at its word
    made     how many probes it took
    stopped  why it ended before it knew, "" where it did not
    cure     with a good run: the answers that have to be other ones
    """

    known: Search
    cuts: Sequence[Cut]
    belief: Belief | None = None
    made: int = 0
    stopped: str = ""
    cure: Cure | None = None

    @property
    def cut(self) -> Cut | None:
        """The culprit's; None where it is none of them."""
        found = self.known.found
        return self.cuts[found] if found is not None and 1 <= found < len(self.cuts) else None

    @property
    def sure(self) -> float:
        """How likely it is that the answer is what the search ended with, or its likeliest: 1/n for a range of n that
        no probe tells apart."""
        if self.belief is None:
            return 1.0 if self.known.found is not None else 1 / (self.known.bad - self.known.good)
        chances = beliefs.posterior(self.belief)
        return chances[self.known.found] if self.known.found is not None else max(chances)


def unsearched(kind: Kind, run: str, why: str) -> Verdict:
    """A verdict for which no probe was needed."""
    return Verdict(kind, None, None, 0, 0, 1.0, run, why)


def conclude(
    run: str, located: Located, inner: Located | None, tried: Sequence[Probe], seconds: float, *, good: str = "",
    alone: bool = True,
) -> Verdict:  # fmt: skip
    """What the probes say all together. `inner`: the answer that it ended with; `good`: the run whose
    answers were swapped in; `alone`: whether the run was of one process."""
    known, belief = located.known, located.belief
    fields: dict[str, Any] = {
        **cost(tried), "run": run, "seconds": seconds, "step": None, "effect": None, "confidence": located.sure,
        "posterior": _places(located, tried),
    }  # fmt: skip
    if belief is not None:
        fields["rescue"], fields["spoil"] = beliefs.rates(belief)
    cut = located.cut
    if located.cure is not None:
        return _cured(located.cure, fields)
    if cut is not None and good == "" and not alone and located.cuts[known.bad - 1].step < cut.step - 1:
        why = "steps of other processes lie between, where no fork can leave"
        between = _between(run, located)
        count = cut.step - located.cuts[known.bad - 1].step
        return Verdict(verdict=AMBIGUOUS, why=why, **{**fields, "between": between, "confidence": 1 / count})
    if cut is not None:
        effect = inner.cut.effect if inner is not None and inner.cut is not None else cut.effect
        fields |= {"step": cut.step, "effect": f"{cut.step}.{effect}" if effect is not None else None}
        if inner is not None and inner.cut is not None:
            fields["task"] = inner.cut.task
            fields["confidence"] = located.sure * inner.sure
        why = "kept, the run is bad; left out, it is not"
        if belief is not None:
            why = "kept, the run is bad more often than left out"
        return Verdict(verdict=CULPRIT, why=why, **fields)
    if known.found == searches.beyond(known):
        return Verdict(verdict=NOT_REPRODUCIBLE, why="with every recorded answer kept, it is not bad again", **fields)
    reused = sorted({name for probe in tried if probe.judged == BAD for name in probe.reused})
    if known.found == 0 and not reused:
        new = f"every answer of {good}" if good else "every answer new"
        return Verdict(verdict=IN_THE_CODE, why=f"it is bad even with {new}", **fields)
    fields |= {"between": _between(run, located), "confidence": located.sure}
    lost = sum(probe.judged == SKIP for probe in tried)
    if known.found == 0:
        why = f"bad with every answer new but those that were taken from the record: {', '.join(reused)}"
        fields["between"] = "", f"{run}:{located.cuts[1].place}"
        fields["confidence"] = 1 / (known.bad - known.good)
    elif belief is not None:
        chances = beliefs.posterior(belief)
        first = beliefs.likeliest(chances)
        fields["likeliest"] = located.cuts[min(first, known.last)].place
        parts = [located.stopped] if located.stopped else []
        parts += [f"{lost} of {len(tried)} probes could not be judged"] if lost else []
        why = f"P = {chances[first]:.2f} for {_answer(located, first)}" + (f"; {', '.join(parts)}" if parts else "")
    else:
        why = located.stopped or f"{lost} of {len(tried)} probes could not be judged"
    return Verdict(verdict=AMBIGUOUS, why=why, **fields)


def cost(tried: Sequence[Probe]) -> dict[str, Any]:
    """The fields of a verdict that say what it took."""
    return {"probes": len(tried), "live_calls": sum(probe.live for probe in tried), "tried": tuple(tried)}


def _cured(cure: Cure, fields: dict[str, Any]) -> Verdict:
    """Answers are known that cure it. The first of them is the culprit."""
    step = int(cure.answers[0].partition(".")[0])
    why = "kept, the run is bad; left out, it is not"
    if len(cure.answers) > 1:
        why = "with all of its causes answered as in the good run, it is not bad"
    if not cure.proven:
        why += f"; whether each of them has to be is not known: {cure.stopped or 'probes could not be judged'}"
    known = {"step": step, "effect": cure.answers[0], "causes": cure.answers, "minimal": cure.proven}
    return Verdict(verdict=CULPRIT, why=why, **{**fields, **known})


def _answer(located: Located, k: int) -> str:
    """What it would say that the first cut to be bad is number k."""
    if k == 0:
        return "the code: bad with every answer new"
    return f":{located.cuts[k].place}" if k < len(located.cuts) else "something that was not recorded"


def _places(located: Located, tried: Sequence[Probe]) -> tuple[Likelihood, ...]:
    """What is known of each cut. Where each probe was taken at its word there is nothing between never and always, but
    for cuts of which nothing is known."""
    known, belief = located.known, located.belief
    counts: dict[str, list[int]] = {cut.place: [0, 0, 0] for cut in located.cuts}
    for probe in tried:
        if probe.at in counts:
            counts[probe.at][(BAD, GOOD, SKIP).index(probe.judged)] += 1
    if belief is not None:
        chances: Sequence[float] = beliefs.posterior(belief)
        bad: Sequence[Chance] = beliefs.bad(belief)
    else:
        wide = known.bad - known.good
        chances = [1 / wide if known.good < k <= known.bad else 0.0 for k in range(known.last + 2)]
        bad = [_never_or_always(known, cut) for cut in range(known.last + 1)]
    return tuple(
        Likelihood(cut.place, chances[k], bad[k].mean, bad[k].low, bad[k].high, _three(counts[cut.place]))
        for k, cut in enumerate(located.cuts)
    )


def _never_or_always(known: Search, cut: int) -> Chance:
    if cut <= known.good:
        return Chance(0.0, 0.0, 0.0)
    if cut >= known.bad:
        return Chance(1.0, 1.0, 1.0)
    return Chance((cut - known.good) / (known.bad - known.good), 0.0, 1.0)


def _three(counts: Sequence[int]) -> tuple[int, int, int]:
    bad, good, lost = counts
    return bad, good, lost


def _between(run: str, located: Located) -> tuple[str, str]:
    known, cuts = located.known, located.cuts
    good = f"{run}:{cuts[known.good].place}" if known.good >= 0 else ""
    return good, f"{run}:{cuts[min(known.bad, known.last)].place}"
