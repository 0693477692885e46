"""Finds the recorded answer that makes a run bad: `lockstep bisect` and `lockstep.bisect`.

A search over forks: a probe keeps the recorded answers up to a cut and takes new ones after it. The verdict is the
step, and the answer in it, with which, kept, the run is bad, and without which it is not.

Who runs a probe is not known here (`Runner`): a command in a process of its own, or a target in this one.
"""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Awaitable, Callable, Collection, Sequence

import msgspec

from lockstep.debugger import belief as beliefs
from lockstep.debugger import causes, noisy, parting, shrinking, swaps, underway, words
from lockstep.debugger import cuts as places
from lockstep.debugger import predicate as predicates
from lockstep.debugger import search as searches
from lockstep.debugger import verdict as verdicts
from lockstep.debugger.conduct import Conduct, Crew, Outcome
from lockstep.debugger.cuts import Cut
from lockstep.debugger.predicate import Predicate
from lockstep.debugger.preview import Preview, preview
from lockstep.debugger.probes import Made, Series
from lockstep.debugger.search import GOOD, SKIP, Search
from lockstep.debugger.swaps import Swap
from lockstep.debugger.unchanged import Alike
from lockstep.debugger.verdict import NOT_RECORDED, NOT_REPRODUCIBLE, Asking, Located, Probe, Verdict, Wanted
from lockstep.debugger.view import Plain, View, ended_by_itself, view
from lockstep.errors import Code, EditError, LockstepError, TargetError
from lockstep.log.model import RunState, Value
from lockstep.log.store import Store
from lockstep.log.timeline import Place, Timeline, resolve
from lockstep.session.policy import Policy


class Aim(msgspec.Struct, frozen=True):
    """How long is searched.

    confidence  None: each probe is taken at its word, and made once. A number between 0.5 and 1: probes are repeated
                until the answer has that probability
    probes      how many there may be; None: as many as it takes, and where they are repeated `belief.most`
    prior       of each place where a probe can leave the run but the first, how likely the culprit is there, in any
                unit; None: by what of the outcome came from there (`prior`). For searches that repeat probes,
                or make several at once
    jobs        how many probes may be under way at once
    """

    confidence: float | None = None
    probes: int | None = None
    prior: Sequence[float] | None = None
    jobs: int = 1

    def __post_init__(self) -> None:
        if self.confidence is not None and not 0.5 < self.confidence < 1:
            raise ValueError(f"a confidence is more than 0.5 and less than 1, not {self.confidence:g}")
        if self.probes is not None and self.probes < 1:
            raise ValueError(f"a search makes at least one probe, not {self.probes}")
        if self.jobs < 1:
            raise ValueError(f"probes are made by at least one job, not {self.jobs}")


ONCE = Aim()

# Returns where the search ended, and the answer or the task that this is.
type Searching = Asking[tuple[Located, Located | None]]

# Runs a probe under a branch name, anew.
type Runner = Callable[[Cut, str], Made]
type ARunner = Callable[[Cut, str], Awaitable[Made]]

# Makes the predicate, given the recording.
type Bad = Callable[[View], Predicate]

# Told of the probe that comes, and of those that have been.
type Tell = Callable[[Wanted, Sequence[Probe]], None]


class Inquiry(msgspec.Struct, frozen=True):
    """A bisect that needs probes.

    run       its address
    tail      what becomes of the recorded calls where all of them are made anew
    swaps     answers in which the run and the `good` one differ, empty where there is no good one
    shrink    whether the culprit's answer is made as small as it can be
    most      how many probes there may be in all, None for as many as it takes
    passes    whether probes may make no live call, for each time that answers are tried
    jobs      how many probes the search has under way at once
    """

    run: str
    timeline: Timeline
    predicate: Predicate
    series: Series
    searching: Searching
    began: float
    tail: Preview
    good: str = ""
    swaps: tuple[Swap, ...] = ()
    shrink: bool = False
    most: int | None = None
    passes: tuple[bool, ...] = (True, False)
    jobs: int = 1


def begin(
    store: Store, address: str, bad: Bad, policy: Policy, ran: Value, *, good: str = "",
    again: bool | Collection[str] = False, alike: Alike | None = None, plain: Plain | None = None, aim: Aim = ONCE,
    shrink: bool = False,
) -> Inquiry | Verdict:  # fmt: skip
    """Asks about the recording itself, and plans the search. A verdict where that is enough.

    bad     makes the predicate, given the recording
    policy  what may run for real in probes
    ran     what a probe runs, see `lockstep.debugger.probes`
    good    address of a run that went right: its answers are swapped in
    again   probes that were run before are not taken for the same: all of them, or the branches that are named
    alike   of a run that a framework keeps itself: whether two states say the same, though they are not equal
    plain   of one that is stored in another form: what makes the program's values of it
    aim     how sure it has to be, and how many probes there may be
    shrink  make the culprit's answer as small as it can be and still make the run bad

    Raises AddressError (LS205, LS206), LS301 where no probe could finish, and TargetError LS402 for a run that still
    grows, LS406 where nobody can say whether it is bad.
    """
    began = time.monotonic()
    place = resolve(store, address)
    if place.step is not None:
        raise TargetError(Code.BAD_TARGET, f"bisect takes a run, and {address} is a step of one")
    run, path, branch = place.timeline.reader.info.name, place.address.path, place.address.branch
    if good and plain is not None:
        raise TargetError(
            Code.BAD_TARGET,
            f"{address} keeps its values encrypted, and those of two runs cannot be compared: bisect it without a good "
            "one",
        )
    if shrink and plain is not None:
        raise TargetError(Code.BAD_TARGET, f"{address} keeps its values encrypted: no part of an answer can be edited")
    recorded = recording(place, store.path, plain)
    if recorded.state == RunState.GROWING:
        raise TargetError(Code.BAD_TARGET, f"{address} is still being recorded")
    others = (recording(resolve(store, good), store.path),) if good else ()
    predicate = predicates.but_crashes(bad(recorded), recorded, *others)
    told = predicate(recorded)
    if told.judged == SKIP:
        raise TargetError(Code.NO_PREDICATE, f"nobody can say whether {recorded.address} is bad: {told.why}")
    if told.judged == GOOD:
        return verdicts.unsearched(NOT_REPRODUCIBLE, recorded.address, f"it is not bad: {told.why}")
    options: dict[str, Value] = {"ran": ran, "good": good, "live": [*sorted(policy.live)], "tail": policy.tail}
    supervised = isinstance(ran, dict) and "command" in ran
    series = Series(store, run, path, branch, options, again=again, alike=alike, plain=plain, supervised=supervised)
    differing = swaps.between(store, recorded.address, good) if good else ()
    cuts = swaps.cuts(place.timeline, differing, good) if good else places.of_run(place.timeline)
    if len(cuts) < 2:
        why = f"no answer in it differs from one of {good}" if good else "no answer from outside was recorded in it"
        return verdicts.unsearched(NOT_RECORDED, recorded.address, why)
    if not good:
        _can_finish(place.timeline, cuts, policy)
    if (aim.confidence is not None or (aim.jobs > 1 and not good)) and aim.prior is None:
        from lockstep.debugger import prior as priors  # of use to few, and costs a search's start a twentieth

        every = cuts if good else places.of_answers(place.timeline, cuts)
        weights = priors.of_cuts(place.timeline, every, recorded.address)
        aim = msgspec.structs.replace(aim, prior=weights)
    # For free first, where anything else is allowed.
    passes = (False,) if policy.tail == "record" and not policy.live else (True, False)
    if good and aim.confidence is None:
        searching = _over_swaps(place.timeline, differing, good, aim, passes)
    elif good or places.are_actions(place.timeline) or places.are_strands(place.timeline):
        searching = _over_answers(cuts, aim)
    else:
        searching = _over_steps(place.timeline, cuts, aim)
    return Inquiry(
        recorded.address,
        place.timeline,
        predicate,
        series,
        searching,
        began,
        preview(place.timeline, 0, policy),
        good,
        differing,
        shrink,
        aim.probes,
        passes,
        aim.jobs,
    )


def _can_finish(timeline: Timeline, cuts: Sequence[Cut], policy: Policy) -> None:
    """Raises LS301 where even the probe that makes the fewest calls anew would have one refused."""
    stopped = preview(timeline, cuts[-2].step, policy).stopped
    if stopped:
        names = ", ".join(f"{one.kind} {one.name}" for one in stopped)
        flags = " ".join(f"--live {shlex.quote(one.flag)}" for one in stopped)
        raise LockstepError(
            Code.REFUSED,
            f"no probe could finish: each would have to run {names} for real, which nothing allows and no record can "
            f"stand for. To let it run: {flags}",
        )


def recording(place: Place, store: str, plain: Plain | None = None) -> View:
    """The recording itself, whose verdict is free."""
    return view(place.timeline.reader, place.address.path, store, place.address.branch, plain)


def default(recorded: View) -> Predicate:
    """Bad is what ends like the recorded run, see `predicate.like`. Raises TargetError LS406 where it has no end."""
    if not ended_by_itself(recorded):
        raise TargetError(
            Code.NO_PREDICATE,
            f"{recorded.address} did not come to an end ({predicates.how(recorded)}), so nothing can end like it. Say "
            "what is bad about it: --bad CMD, or bad= in Python",
        )
    return predicates.like(recorded)


def run(inquiry: Inquiry, runner: Runner | Crew, tell: Tell | None = None) -> Verdict:
    """Makes the probes and says what they show. `runner`: makes one, in this process; or a crew that makes several at
    once."""
    crew = _Alone(runner) if callable(runner) else runner
    conduct = _conduct(inquiry, crew.jobs)
    while not _ordered(conduct, crew):
        if tell is not None and conduct.found is None:
            tell(conduct.wanted, conduct.tried)
        conduct.ended(*crew.next())
    return _told(inquiry, conduct)


async def arun(inquiry: Inquiry, runner: ARunner | Crew) -> Verdict:
    """As `run`, with probes that are awaited."""
    if not callable(runner):
        conduct = _conduct(inquiry, runner.jobs)
        while not _ordered(conduct, runner):
            conduct.ended(*await asyncio.to_thread(runner.next))
        return _told(inquiry, conduct)
    conduct = _conduct(inquiry, 1)
    while conduct.found is None:
        for flight in conduct.due():
            try:
                outcome: Outcome = await runner(flight.cut, flight.branch)
            except EditError as error:
                outcome = error
            conduct.ended(flight.number, outcome)
    return _told(inquiry, conduct)


def _ordered(conduct: Conduct, crew: Crew) -> bool:
    """Has ended what is needless, and made what is due. Whether the search has ended, and nothing is under way."""
    for flight in conduct.needless():
        crew.end(flight.number)
    for flight in conduct.due():
        crew.begin(flight.number, flight.cut, flight.branch)
    # What was found from before may have made others needless.
    for flight in conduct.needless():
        crew.end(flight.number)
    return conduct.found is not None and not conduct.flying


class _Alone:
    """Makes probes one after another, in this process."""

    jobs = 1

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._asked: tuple[int, Cut, str] | None = None

    def begin(self, number: int, cut: Cut, branch: str) -> None:
        self._asked = number, cut, branch

    def end(self, number: int) -> None:
        raise AssertionError("one that is made while it is waited for cannot become needless")

    def next(self) -> tuple[int, Outcome]:
        assert self._asked is not None
        number, cut, branch = self._asked
        try:
            return number, self._runner(cut, branch)
        except EditError as error:
            return number, error


def _conduct(inquiry: Inquiry, jobs: int) -> Conduct:
    tried: list[Probe] = []
    conduct = Conduct(_course(inquiry, tried), inquiry.run, inquiry.series, inquiry.predicate, jobs, tried)
    conduct.begin()
    return conduct


def _told(inquiry: Inquiry, conduct: Conduct) -> Verdict:
    """With all that it took, also what was of no use."""
    assert conduct.found is not None
    whole = verdicts.cost(conduct.tried)
    whole["live_calls"] += conduct.dropped_calls
    seconds = time.monotonic() - inquiry.began
    return msgspec.structs.replace(conduct.found, **whole, ended=conduct.dropped, seconds=seconds)


def _course(inquiry: Inquiry, tried: Sequence[Probe]) -> Asking[Verdict]:
    """All searches of it, one after another. `tried`: each probe as it is judged, before it is sent."""
    located, inner = yield from inquiry.searching
    found = _concluded(inquiry, tried, located, inner)
    if not inquiry.shrink or found.verdict != verdicts.CULPRIT:
        return found
    left = None if inquiry.most is None else inquiry.most - len(tried)
    return (yield from shrinking.over(
        inquiry.series.store, inquiry.timeline, found, inquiry.swaps, inquiry.good, left, inquiry.passes, inquiry.jobs
    ))  # fmt: skip


def _concluded(inquiry: Inquiry, tried: Sequence[Probe], located: Located, inner: Located | None) -> Verdict:
    seconds = time.monotonic() - inquiry.began
    alone = len(inquiry.timeline.streams) == 1
    found = verdicts.conclude(inquiry.run, located, inner, tried, seconds, good=inquiry.good, alone=alone)
    return swaps.explained(inquiry.series.store, inquiry.timeline, found, inquiry.good, inquiry.swaps)


# The searches.


def _over_steps(timeline: Timeline, cuts: Sequence[Cut], aim: Aim) -> Searching:
    """One search over the answers of all steps. One over steps, and then one within the step found, would halve less
    well: and where probes are repeated, each would have to be sure, and learn the same of how they err."""
    cuts = places.of_answers(timeline, cuts)
    last = len(cuts) - 1
    if aim.confidence is not None:
        budget = aim.probes if aim.probes is not None else beliefs.most(last)
        located = yield from noisy.over(cuts, beliefs.begun(last, aim.prior), aim.confidence, budget, aim.jobs)
    elif timeline.is_native and aim.jobs == 1:
        # Several at once leave in other places than one after another.
        located = yield from _over_checkpoints(timeline, cuts, searches.whole(last), aim.probes)
    else:
        known, weights = searches.whole(last), aim.prior or ()
        located = yield from _over(cuts, known, aim.jobs, aim.probes, weights, reach=timeline.is_native)
    return located, _answer(timeline, located)


def _answer(timeline: Timeline, located: Located) -> Located | None:
    """The answer, or the task, that a search over all of them ended with: a cut behind a whole step is behind its
    last."""
    cut = located.cut
    if cut is None:
        return None
    within = places.of_step(timeline, timeline.step(cut.step))
    if cut.effect is not None or cut.within is not None:
        within = [within[0], cut]
    return Located(Search(1, 0, 1), within[-2:]) if len(within) > 1 else None


def _over_checkpoints(
    timeline: Timeline, cuts: Sequence[Cut], known: Search, most: int | None = None
) -> Asking[Located]:
    """As `_over`, where nothing before a cut is run: late cuts are cheap. A first, cheap one shows whether the program
    does again what it did. Then one that keeps nothing tells most: it goes its own way at the first answer that
    is another one, and that is the next to be tried. Where it does only some of it again, that may be two probes
    more."""
    budget = searches.budget(known.last)
    asks = any(step.effects for step in timeline.steps)
    steady = guessed = False
    guess: int | None = None
    made = 0
    while True:
        at = searches.cheapest(known, budget)
        if at is None:
            return Located(known, cuts, made=made)
        if made == most:
            return Located(known, cuts, made=made, stopped=_spent(made))
        if steady and known.good < 0 and not known.skipped:
            at = 0
        elif guess is not None and known.good < guess < known.bad and guess not in known.skipped:
            at, guessed = guess, True
        good = cuts[known.good].place if known.good >= 0 else ""
        bad = cuts[known.bad].place if known.bad < len(cuts) else ""
        probe = (yield (Wanted(cuts[at], max(budget, searches.left(known)), good, bad),)).probe
        budget -= 1
        made += 1
        reached = noisy.reached(cuts, probe, at)
        # Where the program asks somebody, one that asked nobody anew shows nothing of that.
        steady = (steady or (reached > at and (probe.asked > 0 or not asks) and probe.again)) and at != guess
        guess = reached + 1 if steady and not guessed and probe.judged == GOOD else None
        # With the answers up to there kept it would have been the same experiment.
        known = searches.told(known, min(reached, known.bad - 1) if probe.judged == GOOD else at, probe.judged)


def _over_swaps(
    timeline: Timeline, differing: Sequence[Swap], good: str, aim: Aim, passes: Sequence[bool]
) -> Searching:
    """The answers that cure it."""
    return (yield from causes.over(timeline, differing, good, aim.probes, passes, aim.jobs)), None


def _over_answers(cuts: Sequence[Cut], aim: Aim) -> Searching:
    last = len(cuts) - 1
    if aim.confidence is None:
        return (yield from _over(cuts, searches.whole(last), aim.jobs, aim.probes, aim.prior or ())), None
    budget = aim.probes if aim.probes is not None else beliefs.most(last)
    return (yield from noisy.over(cuts, beliefs.begun(last, aim.prior), aim.confidence, budget, aim.jobs)), None


def _over(
    cuts: Sequence[Cut],
    known: Search,
    jobs: int,
    most: int | None = None,
    weights: Sequence[float] = (),
    *,
    reach: bool = False,
) -> Asking[Located]:
    """By probes that are each taken at its word, as many at once as there may be. `reach`: one that got the recorded
    answers up to a later cut, though it was not given them, is a probe of that cut."""
    flying = underway.Flying(parting.falling(len(cuts) - 1, weights))
    made = 0
    while True:
        wanted = flying.wanted(known, jobs if most is None else min(jobs, most - made))
        if not wanted:
            stopped = _spent(made) if searches.following(known) is not None else ""
            return Located(known, cuts, made=made, stopped=stopped)
        good = cuts[known.good].place if known.good >= 0 else ""
        bad = cuts[known.bad].place if known.bad < len(cuts) else ""
        told = yield tuple(Wanted(cuts[at], searches.left(known), good, bad) for at in wanted)
        made += 1
        at = cuts.index(told.cut)
        flying.ended(at, told.probe.found)
        if known.good < at < known.bad:
            good_upto = reach and told.probe.judged == GOOD
            of = min(noisy.reached(cuts, told.probe, at), known.bad - 1) if good_upto else at
            known = searches.told(known, of, told.probe.judged)


def _spent(probes: int) -> str:
    return f"the budget of {words.number(probes, 'probe')} is reached"
