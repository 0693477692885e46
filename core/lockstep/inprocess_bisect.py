"""Bisecting inside the running process: each probe calls the target anew."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from lockstep import inprocess_native as natives
from lockstep.adapter.native import ForkOptions
from lockstep.debugger import bisect as bisects
from lockstep.debugger import elsewhere, predicate, probes
from lockstep.debugger import fork as forks
from lockstep.debugger.bisect import Aim, Inquiry
from lockstep.debugger.conduct import Ordered
from lockstep.debugger.cuts import Cut
from lockstep.debugger.orders import Order
from lockstep.debugger.probes import Made
from lockstep.debugger.verdict import Verdict
from lockstep.debugger.view import View
from lockstep.errors import Code, Refused, TargetError
from lockstep.inprocess import Run, Store, aforked, forked
from lockstep.launch import target as naming
from lockstep.log.store import Store as OpenStore
from lockstep.log.store import locate, open_store
from lockstep.session import rules
from lockstep.session.policy import Policy, Tail
from lockstep.workers import Workers

type Bad = Callable[[View], bool | None]


def bisect(
    run: str, target: Callable[[], Any], bad: Bad | None = None, good: str | None = None, live: Sequence[str] = (),
    *, tail: Tail = "", store: Store = None, again: bool = False, confidence: float | None = None,
    max_probes: int | None = None, shrink: bool = False, jobs: int = 1, workers: Any = None, **own: Any,
) -> Verdict:  # fmt: skip
    """Finds the recorded answer that makes a run bad: kept, the run is bad, and left out, it is not.

    run     the bad run, or a branch of one
    target  a callable without arguments that does the whole run anew each time it is called; of a run that a framework
            keeps itself what its adapter says, as a compiled graph
    bad     asked about a `View` of the recording and of each probe: True is bad, False good, None cannot say. Without
            it, bad is what raises the recorded exception again
    good    a run that went right: its answers are swapped in, and the verdict names the smallest set of them that cures
            the bad one (`causes`), without a live call as far as the two records have the answers
    live    names of tools and other calls that may run for real in probes; `tail` as in `lockstep.fork`
    store   path of the store; by default as on the command line
    again   run also probes that were run before
    confidence   between 0.5 and 1, as 0.95: probes are repeated until the answer is that likely, where the same answers
            may lead to a bad run or to a good one. By default each probe is taken at its word, and made once
    max_probes   how many there may be, found ones included: the verdict is `ambiguous` where they do not suffice. By
            default as many as it takes, and with `confidence` eight for each halving of the steps
    shrink  the culprit's answer is made as small as it can be and still make the run bad: `shrunk` and `reproduce` of
            the verdict
    jobs    how many probes are made at once, each in a process of its own that imports the target: a function or object
            at the top of a module, or its name as `"agent:main"`. By default one after another, in this process
    workers  where Temporal workers are that make the probes, on other machines: `"HOST:PORT/QUEUE"`, or a
            `lockstep_temporal.probes.Place`. Each has the target, by the same name
    own     of a run that a framework keeps itself: what only its adapter knows, as Temporal's `data_converter=`

    Probes stay as branches of the run. Raises AddressError (LS205, LS206), TargetError LS402 (no callable, or a
    coroutine function under a running loop: use `abisect`) and LS406 where nobody can say whether the run is bad, and
    ValueError for a confidence, a number of
    probes or of jobs that is none.
    """
    path = str(locate(store))
    with open_store(path) as opened, natives.looked_up(path, run, target) as found:
        if found is None:
            natives.only_native(own)
        aim = Aim(confidence, max_probes, jobs=jobs)
        named = _named(target, own) if jobs > 1 or workers is not None else ""
        inquiry = _begin(opened, run, target, bad, good, live, tail, again, found, own, aim, shrink, named)
        if isinstance(inquiry, Verdict):
            return inquiry
        if named:
            with _crew(path, inquiry, named, live, tail, workers, again) as crew:
                return bisects.run(inquiry, crew)

        def probe(cut: Cut, branch: str) -> Made:
            if found is not None:
                with natives.looked_up(path, f"{inquiry.run}:{cut.at}", found.target) as place:
                    assert place is not None
                    return natives.made(place.fork(_options(inquiry.run, cut, live, tail, branch, own)))
            try:
                policy = cut.policy(live, tail, rules.here().effects)
                done = forked(f"{inquiry.run}:{cut.at}", target, cut.edits, policy, branch, path)
            except Refused as refused:
                done = refused.run
            return _made(done)

        return bisects.run(inquiry, probe)


async def abisect(
    run: str, target: Callable[[], Any], bad: Bad | None = None, good: str | None = None, live: Sequence[str] = (),
    *, tail: Tail = "", store: Store = None, again: bool = False, confidence: float | None = None,
    max_probes: int | None = None, shrink: bool = False, jobs: int = 1, workers: Any = None, **own: Any,
) -> Verdict:  # fmt: skip
    """As `bisect`, under a running event loop: awaits what `target` returns."""
    path = str(locate(store))
    with open_store(path) as opened, natives.looked_up(path, run, target) as found:
        if found is None:
            natives.only_native(own)
        aim = Aim(confidence, max_probes, jobs=jobs)
        named = _named(target, own) if jobs > 1 or workers is not None else ""
        inquiry = _begin(opened, run, target, bad, good, live, tail, again, found, own, aim, shrink, named)
        if isinstance(inquiry, Verdict):
            return inquiry
        if named:
            with _crew(path, inquiry, named, live, tail, workers, again) as crew:
                return await bisects.arun(inquiry, crew)

        async def probe(cut: Cut, branch: str) -> Made:
            if found is not None:
                with natives.looked_up(path, f"{inquiry.run}:{cut.at}", found.target) as place:
                    assert place is not None
                    return natives.made(await place.afork(_options(inquiry.run, cut, live, tail, branch, own)))
            try:
                policy = cut.policy(live, tail, rules.here().effects)
                done = await aforked(f"{inquiry.run}:{cut.at}", target, cut.edits, policy, branch, path)
            except Refused as refused:
                done = refused.run
            return _made(done)

        return await bisects.arun(inquiry, probe)


def _begin(
    opened: OpenStore,
    run: str,
    target: Any,
    bad: Bad | None,
    good: str | None,
    live: Sequence[str],
    tail: Tail,
    again: bool,
    found: natives.Found | None,
    own: Mapping[str, Any],
    aim: Aim,
    shrink: bool,
    named: str,
) -> Inquiry | Verdict:
    asked = predicate.asked(bad) if bad is not None else None
    # What has a name is the same program in another process too.
    if named and (found is not None or isinstance(target, str)):
        ran = probes.program([named], os.getcwd())
    else:
        ran = probes.function(target) if found is None else natives.identity(found.target)
    return bisects.begin(
        opened, run, bisects.default if asked is None else lambda recorded: asked,
        Policy(tuple(live), tail, rules.here().effects), ran if ran is not None else os.urandom(8), good=good or "",
        again=again, alike=found.native.alike if found is not None else None,
        plain=found.plain(own) if found is not None else None, aim=aim, shrink=shrink,
    )  # fmt: skip


def _named(target: Any, own: Mapping[str, Any]) -> str:
    """The target for other processes. Raises TargetError LS402."""
    if own:
        given = ", ".join(f"{name}=" for name in own)
        raise TargetError(
            Code.BAD_TARGET, f"{given} cannot be handed to other processes: leave it out, or jobs= and workers="
        )
    return naming.named(target)


@contextmanager
def _crew(
    path: str, inquiry: Inquiry, target: str, live: Sequence[str], tail: Tail, workers: Any, again: bool
) -> Iterator[Ordered]:
    """Makes the probes: processes on this machine, or workers elsewhere."""
    order = Order(inquiry.run, Cut("", 0), "", target=target, directory=os.getcwd(), live=tuple(live), tail=tail)
    made = (
        Workers(path, order, inquiry.jobs)
        if workers is None
        else elsewhere.hired(
            workers, path, logging.getLogger("lockstep").warning, again=os.urandom(8).hex() if again else ""
        )
    )
    with made as maker:
        yield Ordered(maker, order, inquiry.jobs)


def _options(run: str, cut: Cut, live: Sequence[str], tail: Tail, branch: str, own: Mapping[str, Any]) -> ForkOptions:
    policy = cut.policy(live, tail, rules.here().effects)
    return natives.probe_options(forks.given(cut.edits, run), cut, policy, branch, own)


def _made(done: Run) -> Made:
    return Made(done.branch, done.live, done.refused, done.divergence or "", done.report.seconds)
