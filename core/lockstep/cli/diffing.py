"""`lockstep diff`: the answer is what was asked for, so it goes to stdout."""

from __future__ import annotations

import sys

import msgspec

from lockstep.cli import failures, terminal
from lockstep.debugger import render_diff
from lockstep.debugger.diff import diff as compare

LISTED = 20  # differences that are listed without --all


def diff(
    a: str, b: str, *, store: str | None, exact: bool, times: bool, reads: bool, limit: int | None, everything: bool,
    as_json: bool, debug: bool,
) -> None:  # fmt: skip
    """Compares and says what differs. Ends with 0 where nothing does, with 1 where something does."""
    with failures.reported(as_json=as_json, debug=debug):
        found = compare(a, b, store=store, exact=exact, times=times, reads=reads)
        if as_json:
            shown = found.differences if limit is None else found.differences[:limit]
            terminal.emit(msgspec.structs.replace(found, differences=shown))
        else:
            most = None if everything else LISTED if limit is None else limit
            for line in render_diff.compared(found, a, b, limit=most, width=terminal.width(sys.stdout)):
                terminal.say(line, to=sys.stdout)
        raise SystemExit(failures.OK if found.same else failures.NO)
