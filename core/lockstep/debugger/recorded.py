"""The end of a recording, once the program is over: its real exit status goes into the run."""

from __future__ import annotations

import msgspec

from lockstep.debugger import ending
from lockstep.launch import meeting
from lockstep.launch.outcome import Outcome, coverage, late
from lockstep.log.model import RunState
from lockstep.log.store import open_store
from lockstep.session.report import Coverage


class Recorded(msgspec.Struct, frozen=True):
    """What was recorded. `exit`: the program's status, -N where signal N ended it. `running`: processes that went on
    when the program had ended; `killed`: that were ended before they could end their recording."""

    run: str
    address: str
    state: RunState
    exit: int
    steps: int
    lanes: int
    counts: dict[str, int]
    seconds: float
    digest: str
    coverage: tuple[Coverage, ...]
    faults: tuple[str, ...]
    running: tuple[str, ...] = ()
    killed: tuple[str, ...] = ()


def close(store: str, outcome: Outcome) -> Recorded:
    """Completes the run of a launched command and sums it up.

    Without a report (the process was killed, or became another program) the store says how far it got.
    A program that an error of ours left unrecorded has a summary without a run.
    """
    report = outcome.report
    faults = tuple(report.faults if report is not None else ()) + ((outcome.fault,) if outcome.fault else ())
    covered = coverage(outcome)
    if not outcome.run:
        return Recorded("", "", RunState.INTERRUPTED, outcome.status, 0, 0, {}, 0.0, "", covered, faults)
    opened = open_store(store)
    try:
        ending.write(opened, outcome.run, outcome.status, late(outcome))
        info = opened.run(outcome.run).info
    finally:
        opened.close()
    return Recorded(
        run=outcome.run,
        address=f"{outcome.run}@main",
        state=ending.state(info, outcome.status),
        exit=outcome.status,
        steps=info.steps,
        lanes=report.lanes if report is not None else 0,
        counts=report.counts if report is not None else {},
        seconds=report.seconds if report is not None else 0.0,
        digest=report.digest if report is not None else "",
        coverage=covered,
        faults=faults,
        running=outcome.processes.running,
        killed=tuple(lane for lane in outcome.processes.ended if lane != meeting.FIRST),
    )
