"""`lockstep bisect` and `lockstep bisect log`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer

from lockstep.cli import failures, terminal
from lockstep.debugger import bisect as bisects
from lockstep.debugger import forked_probes, predicate, probes, render_bisect, render_preview
from lockstep.debugger.bisect import Inquiry, Wanted
from lockstep.debugger.verdict import CULPRIT, Probe, Verdict
from lockstep.log.store import locate, open_store
from lockstep.log.timeline import resolve
from lockstep.session import rules
from lockstep.session.policy import TAILS, Policy


def bisect(
    run: str, command: Sequence[str], *, store: str | None, bad: str, good: str, live: Sequence[str], tail: str,
    again: bool, trust: bool, isolate: bool, as_json: bool, debug: bool,
) -> None:  # fmt: skip
    """Finds the answer that makes the run bad. Ends with 0 where it names one, else with 1."""
    asked = next((one for one in TAILS if one == tail), None)
    if asked is None:
        raise typer.BadParameter(f"{tail!r} is not live, reuse or record", param_hint="--tail")
    with failures.reported(as_json=as_json, debug=debug):
        path = str(locate(store))
        with open_store(path) as opened, open(os.devnull, "wb") as nowhere:
            reader = resolve(opened, run).timeline.reader
            ran = forked_probes.ran(reader, run, command)
            policy = Policy(tuple(live), asked, rules.here().effects)
            inquiry = bisects.begin(opened, run, _predicate(bad, path, as_json), policy, ran, good=good, again=again)
            if isinstance(inquiry, Verdict):
                found = inquiry
            else:
                runner = forked_probes.runner(
                    path, inquiry.run, command, live=live, tail=asked, trust=trust, isolate=isolate,
                    output=2 if debug else nowhere.fileno(), debug=debug,
                )  # fmt: skip
                found = _search(inquiry, runner, quiet=as_json)
        if as_json:
            terminal.emit(found)
        else:
            for line in render_bisect.verdict(found):
                terminal.say(line)
        raise SystemExit(failures.OK if found.verdict == CULPRIT else failures.NO)


def _predicate(bad: str, store: str, as_json: bool) -> bisects.Bad:
    if not bad:
        return bisects.default
    asked = predicate.command(bad, store, stdout=2 if as_json else None)
    return lambda recorded: asked


def _search(inquiry: Inquiry, runner: bisects.Runner, *, quiet: bool) -> Verdict:
    lines = render_preview.preview(inquiry.tail)
    if inquiry.swaps:
        first = inquiry.swaps[0]
        lines += render_bisect.parting(f"{inquiry.run}:{first.at}", first.name, first.changes)
    for line in () if quiet else lines:
        terminal.say(line)
    shown = not quiet and terminal.coloured(sys.stderr)
    try:
        return bisects.run(inquiry, runner, _tell if shown else None)
    except KeyboardInterrupt:
        if shown:
            sys.stderr.write("\n")
        terminal.say("lockstep: the probes made so far are kept: the same command goes on from there")
        raise
    finally:
        if shown:
            sys.stderr.write(_ANEW)


_ANEW = "\r\x1b[K"  # the line is written once more


def _tell(wanted: Wanted, tried: Sequence[Probe]) -> None:
    sys.stderr.write(_ANEW)
    terminal.say(render_bisect.probing(wanted, tried), end="")
    sys.stderr.flush()


def log(run: str, *, store: str | None, bad: str, as_json: bool, debug: bool) -> None:
    """Lists the probes that are kept, and what the predicate says of each."""
    with failures.reported(as_json=as_json, debug=debug):
        path = str(locate(store))
        with open_store(path) as opened:
            place = resolve(opened, run)
            recorded = bisects.recording(place, path)
            said = _predicate(bad, path, as_json)(recorded)
            reader = place.timeline.reader
            found = [probes.kept(opened, reader, place.address.path, one, said) for one in probes.listed(reader)]
        if as_json:
            terminal.emit(found)
        elif found:
            heads = (("", "left"), ("PROBE", "left"), ("FROM", "left"), ("WHY", "left"))
            terminal.table(heads, render_bisect.kept(found), flexible=3)
        else:
            terminal.say(f"  no probes of {run} are kept: lockstep bisect {run}", to=sys.stdout)
