"""`lockstep fork`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lockstep.cli import failures, replaying, terminal
from lockstep.debugger import edits as editing
from lockstep.debugger import fork as forks
from lockstep.debugger import render_fork
from lockstep.log.store import locate
from lockstep.session.policy import Tail


def fork(
    address: str, command: Sequence[str], *, store: str | None, edits: Sequence[str], live: Sequence[str], tail: Tail,
    branch: str, target: str = "", tasks: Sequence[str] = (), thread: str = "", turn: int | None = None,
    server: str = "", breaks: Sequence[str] = (), trust: bool, isolate: bool, as_json: bool, debug: bool,
) -> None:  # fmt: skip
    """Forks once, and says how it went."""
    with failures.reported(as_json=as_json, debug=debug):
        run = address.partition(":")[0]
        path, changes = str(locate(store)), [editing.parse(text, run) for text in edits]
        own: dict[str, Any] = {"server": server} if server else {}
        if breaks:
            own["stop"] = [int(place) if place.isdecimal() else place for place in breaks]
        if target:
            from lockstep.cli import targets

            done = targets.fork(
                path, address, target, edits=changes, live=live, tail=tail, branch=branch, as_json=as_json,
                tasks=tasks, thread=thread, turn=turn, own=own,
            )  # fmt: skip
        else:
            replaying.needs_target(path, address)
            if own:
                from lockstep.inprocess_native import only_native

                only_native(own)
            done = forks.fork(
                path, address, command, edits=changes, live=live, tail=tail, branch=branch,
                stdout=2 if as_json else None, trust=trust, isolate=isolate, debug=debug,
            )  # fmt: skip
        if as_json:
            terminal.emit(done)
        else:
            for line in render_fork.forking(done, target):
                terminal.say(line)
        raise SystemExit(failures.OK if done.state in ("complete", "failed") else failures.NO)
