"""What `lockstep bisect` does once its probes' interpreter has been started."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import msgspec

from lockstep.cli import failures, replaying, terminal
from lockstep.debugger import bisect as bisects
from lockstep.debugger import (
    chart_bisect,
    elsewhere,
    forked_probes,
    predicate,
    probes,
    render_bisect,
    render_preview,
    resuming,
)
from lockstep.debugger.bisect import Aim, Inquiry
from lockstep.debugger.conduct import Crew, Ordered
from lockstep.debugger.cuts import Cut
from lockstep.debugger.lines import safe
from lockstep.debugger.orders import Order
from lockstep.debugger.probes import Made
from lockstep.debugger.resuming import Asked
from lockstep.debugger.unchanged import Alike
from lockstep.debugger.verdict import CULPRIT, Probe, Verdict, Wanted
from lockstep.errors import Code, StoreError
from lockstep.launch.nursery import Nursery
from lockstep.log.store import Store
from lockstep.log.timeline import Place, resolve
from lockstep.performing import perform
from lockstep.session import rules
from lockstep.session.policy import TAILS, Policy
from lockstep.workers import Workers


def bisect(
    store: Store, asked: Asked, place: Place, *, plot: str, as_json: bool, debug: bool, output: int, nursery: Nursery
) -> int:  # fmt: skip
    """Finds the answer that makes the run bad and says so. Returns the exit status."""
    reader, target = place.timeline.reader, asked.target
    policy = Policy(asked.live, next(one for one in TAILS if one == asked.tail), rules.here().effects)
    alike = _alike(store.path, asked.run, target)
    ran = probes.program([target], os.getcwd()) if target else forked_probes.ran(reader, asked.run, asked.command)
    found = bisects.begin(
        store, asked.run, _predicate(asked.bad, store.path, as_json), policy, ran, good=asked.good,
        again=asked.ignored if asked.ignored is not None else False, alike=alike,
        aim=Aim(asked.confidence, asked.max_probes, jobs=asked.jobs), shrink=asked.shrink,
    )  # fmt: skip
    if isinstance(found, Inquiry):
        order = Order(
            found.run, Cut("", 0), "", asked.command, target, "", asked.live, policy.tail, asked.trust, asked.isolate,
            debug,
        )  # fmt: skip
        with resuming.noted(store.path, asked):
            found = (
                _by_workers(store.path, found, elsewhere.named(order, reader), asked, quiet=as_json)
                if asked.workers
                else _here(store.path, found, order, output, nursery, asked.jobs, quiet=as_json)
            )
    if as_json:
        terminal.emit(found)
    else:
        for line in render_bisect.verdict(found, target):
            terminal.say(line)
    if plot:
        _draw(plot, found)
    return failures.OK if found.verdict == CULPRIT else failures.NO


def _here(
    store: str, inquiry: Inquiry, order: Order, output: int, nursery: Nursery, jobs: int, *, quiet: bool
) -> Verdict:  # fmt: skip
    """Makes probes one after another, in this process or from it; or several at once, each from a process of ours."""
    # Of another command nobody knows yet whether it loads us: each is started by itself.
    warm = nursery if not order.command else None
    if jobs > 1:
        with Workers(store, order, jobs, output=output, nursery=warm) as workers:
            return _search(inquiry, Ordered(workers, order, jobs), quiet=quiet)

    def runner(cut: Cut, branch: str) -> Made:
        asked = msgspec.structs.replace(order, cut=cut, branch=branch)
        return perform(store, asked, output=output, nursery=warm)

    return _search(inquiry, runner, quiet=quiet)


def _by_workers(
    store: str, inquiry: Inquiry, order: Order, asked: Asked, *, quiet: bool
) -> Verdict:  # fmt: skip
    """Has probes made by workers, on other machines."""

    def say(what: str) -> None:
        terminal.say(f"  {safe(what)}")

    with elsewhere.hired(asked.workers, store, say, again=asked.token) as crew:
        found = _search(inquiry, Ordered(crew, order, asked.jobs), quiet=quiet)
        if not quiet and crew.made_by:
            by = ", ".join(f"{name} {count}" for name, count in sorted(crew.made_by.items()))
            say(f"made by {by}")
    return found


def _draw(plot: str, found: Verdict) -> None:
    try:
        with open(plot, "w", encoding="utf-8") as file:
            file.write(chart_bisect.svg(found))
    except OSError as error:
        raise StoreError(Code.UNWRITABLE, f"the plot could not be written: {error}") from error


def _alike(store: str, run: str, target: str) -> Alike | None:
    """Of a run that a framework keeps itself, what its adapter says of two states. Raises TargetError."""
    from lockstep import inprocess_native as natives

    if not target:
        replaying.needs_target(store, run)
        return None
    with natives.looked_up(store, run, target) as found:
        return found.native.alike if found is not None else None


def _predicate(bad: str, store: str, as_json: bool) -> bisects.Bad:
    if not bad:
        return bisects.default
    asked = predicate.command(bad, store, stdout=2 if as_json else None)
    return lambda recorded: asked


def _search(inquiry: Inquiry, runner: bisects.Runner | Crew, *, quiet: bool) -> Verdict:
    lines = render_preview.preview(inquiry.tail)
    if inquiry.swaps:
        first = inquiry.swaps[0]
        if lines:
            lines = [["  live only where neither record has the answer:"], *lines]
        lines += render_bisect.parting(f"{inquiry.run}:{first.at}", first.name, first.changes)
    for line in () if quiet else lines:
        terminal.say(line)
    shown = not quiet and terminal.coloured(sys.stderr)
    try:
        return bisects.run(inquiry, runner, _tell if shown else None)
    except KeyboardInterrupt:
        if shown:
            sys.stderr.write("\n")
        terminal.say(
            "lockstep: the probes made so far are kept: the same command goes on from there, as does "
            f"lockstep bisect {inquiry.run} --resume"
        )
        raise
    finally:
        if shown:
            sys.stderr.write(_ANEW)


_ANEW = "\r\x1b[K"  # the line is written once more


def _tell(wanted: Wanted, tried: Sequence[Probe]) -> None:
    sys.stderr.write(_ANEW)
    terminal.say(render_bisect.probing(wanted, tried), end="")
    sys.stderr.flush()


def log(store: Store, run: str, *, bad: str, as_json: bool) -> None:
    """Lists the probes that are kept, and what the predicate says of each."""
    place = resolve(store, run)
    recorded = bisects.recording(place, store.path)
    said = predicate.but_crashes(_predicate(bad, store.path, as_json)(recorded), recorded)
    reader = place.timeline.reader
    found = [probes.kept(store, reader, place.address.path, one, said) for one in probes.listed(reader)]
    if as_json:
        terminal.emit(found)
    elif found:
        heads = (("", "left"), ("PROBE", "left"), ("FROM", "left"), ("WHY", "left"))
        terminal.table(heads, render_bisect.kept(found), flexible=3)
    else:
        terminal.say(f"  no probes of {run} are kept: lockstep bisect {run}", to=sys.stdout)
