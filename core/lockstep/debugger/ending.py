"""The exit status of a run's command, as its supervisor saw it: what the program cannot know of itself.

It is a stream of its own in the run, `launch`, with one FINISH event, so that it is in the chain like
everything else. Written when the recorded process is gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lockstep.log import roll
from lockstep.log.address import MAIN
from lockstep.log.model import Event, Kind, RunInfo, RunState, Value
from lockstep.log.store import RunReader, Store
from lockstep.session.report import Coverage

PROCESS = roll.LAUNCH
_LAST = 64  # events among which the end is: threads may still say something after it


def write(store: Store, run: str, status: int, uncovered: Sequence[Coverage] = (), branch: str = MAIN) -> None:
    """Adds the status (-N: ended by signal N) to a branch, and what only the supervisor saw to be not covered."""
    state = RunState.COMPLETE if status == 0 else RunState.FAILED
    reader = store.run(run, branch)
    body: dict[str, Value] = {"exit": status, roll.STREAMS: roll.call(reader)}
    if uncovered:
        body["notes"] = [[entry.source, entry.detail, entry.count] for entry in uncovered]
    appender = store.stream(run, PROCESS, branch=branch)
    appender.append([Event(Kind.FINISH, 1, 0, PROCESS, what=state.value, body=body)])
    appender.close(state)


def read(reader: RunReader) -> int | None:
    """The recorded status; None where no supervisor lived to see it."""
    for stream in reader.streams:
        if stream.process == PROCESS:
            for event in reader.events(stream.id):
                if event.kind is Kind.FINISH and isinstance(event.body, dict):
                    status = event.body.get("exit")
                    return status if isinstance(status, int) else None
    return None


def told(reader: RunReader) -> dict[str, Any]:
    """What the first process's FINISH says of the end: exit, error, result; empty where it has none."""
    for stream in reader.streams:
        if stream.process != PROCESS:
            for seq, event in reader.heads(stream.id, max(0, stream.events - _LAST)):
                if event.kind is Kind.FINISH:
                    body = reader.body(stream.id, seq)
                    end = body.get("end") if isinstance(body, dict) else None
                    return end if isinstance(end, dict) else {}
            return {}
    return {}


def raised(end: Mapping[str, Any]) -> str | None:
    """What it ended with by that, as a traceback's last line; None where it raised nothing."""
    error = end.get("error")
    if not isinstance(error, dict):
        return None
    name, message = str(error.get("type") or "").removeprefix("builtins."), str(error.get("message") or "")
    return f"{name}: {message}" if message else name


def state(info: RunInfo, status: int | None) -> RunState:
    """The run's state, with its exit status in mind: Python does not tell a program's exit handlers what
    `sys.exit` was given, so the recorded process may have called itself complete."""
    return RunState.FAILED if info.state is RunState.COMPLETE and status else info.state
