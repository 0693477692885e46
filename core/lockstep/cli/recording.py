"""`lockstep record`. Light at import: the program starts before anything else is loaded."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lockstep import launch
from lockstep.launch import supervise
from lockstep.log import place

if TYPE_CHECKING:
    from lockstep.launch.outcome import Outcome

BREAKS = "STOP_TEAMS_AT"  # what `lockstep_autogen.stopping` reads


def record(
    command: list[str], store: str | None = None, run: str = "", as_json: bool = False, debug: bool = False,
    breaks: str = "",
) -> None:  # fmt: skip
    """Records the command, says what was recorded, and ends as the command did. `breaks`: where its teams
    stop, with commas between."""
    path = place.locate(store)
    if breaks:
        os.environ[BREAKS] = breaks
    from lockstep.cli import failures

    with failures.reported(as_json=as_json, debug=debug):
        outcome = launch.run(command, "record", path, run, stdout=2 if as_json else None, debug=debug)
        if outcome.error is not None:
            if outcome.error.code.startswith("LS2"):
                raise outcome.error
            failures.fail(outcome.error, as_json=as_json, status=outcome.status or failures.NOT_STARTED)
        _close(path, run, outcome, as_json=as_json)
    supervise.leave(outcome.status)


def _close(path: str, wanted: str, outcome: Outcome, *, as_json: bool) -> None:
    from lockstep.cli import terminal
    from lockstep.debugger import recorded, render

    summary = recorded.close(path, outcome)
    if as_json:
        terminal.emit(summary)
        return
    for line in render.recording(summary, wanted):
        terminal.say(line)
