"""`lockstep why`: the answer is what was asked for, so it goes to stdout."""

from __future__ import annotations

import sys

from lockstep.cli import failures, terminal
from lockstep.debugger import render_why
from lockstep.debugger.why import why as trace


def why(address: str, path: str, *, store: str | None, as_json: bool, debug: bool) -> None:
    """Says where a value came from."""
    with failures.reported(as_json=as_json, debug=debug, reading=True):
        found = trace(address, path, store=store)
        if as_json:
            terminal.emit(found)
            return
        for line in render_why.lines(found, terminal.width(sys.stdout)):
            terminal.say(line, to=sys.stdout)
