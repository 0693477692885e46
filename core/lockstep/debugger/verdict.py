"""What a bisect answers, out of what its probes said. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from lockstep.debugger import search as searches
from lockstep.debugger.cuts import Cut
from lockstep.debugger.search import BAD, SKIP, Judged, Search
from lockstep.debugger.structure import Change

type Kind = Literal["culprit", "ambiguous", "not-reproducible", "in-the-code", "not-recorded"]

CULPRIT: Kind = "culprit"
AMBIGUOUS: Kind = "ambiguous"
NOT_REPRODUCIBLE: Kind = "not-reproducible"
IN_THE_CODE: Kind = "in-the-code"
NOT_RECORDED: Kind = "not-recorded"


class Probe(msgspec.Struct, frozen=True):
    """A probe and what was said of it.

    at      where it left the run: `7` is after step 7
    live    calls that really happened in it, 0 where it was `found`: run before
    reused  names of the calls that were answered from the record, since nothing allowed them to run
    refuse  what was refused in it, and what would allow that
    reach   of a run that a framework keeps itself: the last step up to which its states were the recorded ones, though
            it was not served that far; None where that is not known
    asked   calls that happened when it was made, now or before
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


class Verdict(msgspec.Struct, frozen=True):
    """The answer of a bisect.

    verdict     culprit, ambiguous, not-reproducible, in-the-code or not-recorded
    step        the culprit's number, None where none is named
    effect      the answer in it, as `7.1`; None where the step is all that is known
    task        of a run that a framework keeps itself: the task whose work it is, where that made no call
    probes      how many were needed, those found from before included
    live_calls  calls that really happened for it
    confidence  1.0 for one answer, 1/n for a range of n: given that each probe would be judged the same way again
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

    def judged(self, judged: Judged) -> tuple[Probe, ...]:
        """The probes that were bad, good or skipped."""
        return tuple(probe for probe in self.tried if probe.judged == judged)


class Located(msgspec.Struct, frozen=True):
    """Where a search ended: between `cuts[known.good]` and `cuts[known.bad]`."""

    known: Search
    cuts: Sequence[Cut]

    @property
    def cut(self) -> Cut | None:
        """The culprit's; None where it is none of them."""
        found = self.known.found
        return self.cuts[found] if found is not None and 1 <= found < len(self.cuts) else None


def unsearched(kind: Kind, run: str, why: str) -> Verdict:
    """A verdict for which no probe was needed."""
    return Verdict(kind, None, None, 0, 0, 1.0, run, why)


def conclude(
    run: str, located: Located, inner: Located | None, tried: Sequence[Probe], seconds: float, *, good: str = "",
    alone: bool = True,
) -> Verdict:  # fmt: skip
    """What the probes say all together. `inner`: the search among the answers of the step; `good`: the run whose
    answers were swapped in; `alone`: whether the run was of one process."""
    known = located.known
    fields: dict[str, Any] = {
        "probes": len(tried), "live_calls": sum(probe.live for probe in tried), "run": run, "tried": tuple(tried),
        "seconds": seconds, "step": None, "effect": None, "confidence": 1.0,
    }  # fmt: skip
    cut = located.cut
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
        return Verdict(verdict=CULPRIT, why="kept, the run is bad; left out, it is not", **fields)
    if known.found == searches.beyond(known):
        return Verdict(verdict=NOT_REPRODUCIBLE, why="with every recorded answer kept, it is not bad again", **fields)
    reused = sorted({name for probe in tried if probe.judged == BAD for name in probe.reused})
    if known.found == 0 and not reused:
        new = f"every answer of {good}" if good else "every answer new"
        return Verdict(verdict=IN_THE_CODE, why=f"it is bad even with {new}", **fields)
    fields |= {"between": _between(run, located), "confidence": 1 / (known.bad - known.good)}
    lost = sum(probe.judged == SKIP for probe in tried)
    if known.found == 0:
        why = f"bad with every answer new but those that were taken from the record: {', '.join(reused)}"
        fields["between"] = "", f"{run}:{located.cuts[1].at}"
    else:
        why = f"{lost} of {len(tried)} probes could not be judged"
    return Verdict(verdict=AMBIGUOUS, why=why, **fields)


def _between(run: str, located: Located) -> tuple[str, str]:
    known, cuts = located.known, located.cuts
    good = f"{run}:{cuts[known.good].at}" if known.good >= 0 else ""
    return good, f"{run}:{cuts[min(known.bad, known.last)].at}"
