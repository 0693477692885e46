"""`lockstep scrub`: personal data out of a run, or a look at what is still in it."""

from __future__ import annotations

import shlex

from lockstep.cli import failures, terminal
from lockstep.debugger import scrub as scrubs
from lockstep.debugger import words
from lockstep.debugger.lines import safe
from lockstep.log.store import locate
from lockstep.session import rules

_SHOWN = 20


def scrub(run: str, *, store: str | None, check: bool, as_json: bool, debug: bool) -> None:
    """Writes a scrubbed copy of a run; with `check` says what a scan finds in it, and ends with 1 if anything."""
    with failures.reported(as_json=as_json, debug=debug):
        project = rules.here()
        path = str(locate(store))
        if check:
            found = scrubs.check(path, run, project.rules, project.scrub)
            if as_json:
                terminal.emit(found)
            else:
                _found(found)
            raise SystemExit(failures.OK if found.clean else failures.NO)
        done = scrubs.scrub(path, run, project.rules, project.scrub)
        if as_json:
            terminal.emit(done)
            return
        kinds = ", ".join(f"{count} {safe(kind)}" for kind, count in sorted(done.replaced.items())) or "nothing"
        terminal.say([("● scrubbed ", "good"), (safe(done.scrubbed), "strong"), f"  replaced: {kinds}"])
        name = shlex.quote(done.scrubbed)
        terminal.say(f"  next: lockstep export {safe(name)} --output {safe(name)}.tape")


def _found(found: scrubs.Checked) -> None:
    if found.clean:
        terminal.say([("✓ clean", "good"), f"  nothing found in {safe(found.run)}"])
        return
    count = words.number(len(found.found), "text")
    terminal.say([("✗ ", "bad"), (f"{count} found", "bad"), f"  in {safe(found.run)}"])
    for one in found.found[:_SHOWN]:
        where = f"{safe(one.process)} event {one.pos} ({safe(one.what)})" if one.process else "the run's own record"
        times = f"  {one.count} times" if one.count > 1 else ""
        terminal.say(f"  {safe(one.kind):<16} {where}  {safe(one.seen)}{times}")
    if len(found.found) > _SHOWN:
        terminal.say(f"  and {len(found.found) - _SHOWN} more: --json has all")
    terminal.say(f"  to take it out: lockstep scrub {safe(shlex.quote(found.run))}")
