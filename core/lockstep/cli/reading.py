"""`lockstep runs`, `log` and `show`: the answer is what was asked for, so it goes to stdout."""

from __future__ import annotations

import shlex
import sys

from lockstep.cli import failures, pictured, terminal
from lockstep.debugger import branches, calls, listing, live, render_commanded, render_forks, render_log, render_native
from lockstep.debugger.lines import Line, safe
from lockstep.errors import AddressError, Code
from lockstep.log import address as addresses
from lockstep.log.store import open_store
from lockstep.log.timeline import resolve

LISTED = 100  # steps that `log` lists without --all


def runs(*, store: str | None, as_json: bool, debug: bool) -> None:
    """Lists the runs of a store."""
    with failures.reported(as_json=as_json, debug=debug, reading=True), open_store(store) as opened:
        found = listing.runs(opened)
        if as_json:
            terminal.emit(found)
        elif not found:
            terminal.say(f"no runs in {safe(opened.path)}. Record one: lockstep record -- python your_agent.py")
        else:
            terminal.table(render_log.RUN_COLUMNS, render_log.run_rows(found))
            for run in found:
                if run.problem:
                    name = shlex.quote(run.run)
                    terminal.say(
                        f"{safe(run.run)} cannot be read: {safe(run.problem)}. See: lockstep verify {safe(name)}"
                    )


def log(run: str, *, store: str | None, everything: bool, as_json: bool, debug: bool) -> None:
    """Lists a run's steps, newest first; of a long run the last ones."""
    with failures.reported(as_json=as_json, debug=debug, reading=True), open_store(store) as opened:
        place = resolve(opened, run)
        timeline = place.timeline
        name = str(addresses.Address(place.address.path, place.address.branch))
        if as_json:
            terminal.emit(listing.log(name, timeline))
            return
        steps = timeline.steps
        hidden = 0 if everything else max(0, len(steps) - LISTED)
        for line in render_log.log_head(name, timeline):
            _write(line)
        for line in render_log.log_uncovered(live.recorded(timeline.reader)):
            _write(line)
        rows = render_native if timeline.is_native or timeline.native is not None else render_log
        terminal.table(
            render_log.LOG_COLUMNS, rows.log_rows(timeline, steps[hidden:]), flexible=render_log.LOG_FLEXIBLE
        )
        if hidden:
            _write([f" ┆ {hidden} earlier steps: lockstep log {shlex.quote(name)} --all"])
        path, reader = place.address.path, timeline.reader
        found = branches.forks(reader, path, reader.branch)
        for line in render_forks.lines(found, path, reader.branch, everything=everything):
            _write(line)


def show(address: str, *, store: str | None, as_json: bool, debug: bool, picture: str = "") -> None:
    """Shows one step or effect; of a run, its log. `picture`: the file that a step's picture is written to; beside the
    store if not told, and not at all for `--json`."""
    with failures.reported(as_json=as_json, debug=debug, reading=True), open_store(store) as opened:
        place = resolve(opened, address)
        if place.step is None:
            log(address, store=store, everything=False, as_json=as_json, debug=debug)
            return
        found = listing.show(place)
        if isinstance(found, listing.Acted) and (picture or not as_json):
            found = pictured.written(found, place, opened.path, picture)
        elif picture:
            raise AddressError(Code.NO_ADDRESS, f"{address} is no action on a page, so there is no picture of it")
        if as_json:
            terminal.emit(found)
            return
        if isinstance(found, listing.Checkpoint):
            for line in render_native.shown(found, terminal.width(sys.stdout)):
                _write(line)
            return
        effect = place.effect or listing.closing_effect(place.step)
        conversation = calls.read(place.timeline, effect).conversation if effect is not None else None
        wide = terminal.width(sys.stdout)
        for line in render_log.shown(found, conversation, wide) + render_commanded.tried(found.attempts or (), wide):
            _write(line)


def _write(line: Line) -> None:
    terminal.say(line, to=sys.stdout)
