"""The children that a session in process forks: each goes on as a process of the run, and reports to it.

Programs that they start otherwise are not followed: nothing loads us there.
"""

from __future__ import annotations

import atexit
import os
import sys
from typing import TYPE_CHECKING, Any

from lockstep.launch import meeting
from lockstep.session import forks, lanes

if TYPE_CHECKING:
    from lockstep.launch.followed import Followed
    from lockstep.session.report import Report
    from lockstep.session.session import Session

_here: Followed | None = None  # in such a child


def begin(session: Session) -> None:
    """Prepares a session for children; costs nothing until there are some."""
    session.meets = lanes.ours(_place)
    forks.on_fork = _forked


def _place() -> str:
    place = meeting.make()
    meeting.claim(place, meeting.FIRST)
    meeting.hello(place, meeting.RECORDED, meeting.FIRST, sys.executable)
    return place


def _forked(before: Any, session: Any, lane: Any) -> None:
    global _here
    if lane is None or not before.meeting:  # of a session that `begin` has not prepared, nobody hears of a child
        return
    from lockstep.launch.followed import Followed
    from lockstep.launch.settings import Settings

    mode = "record" if before.recording else "replay"
    _here = Followed(Settings(mode, before.meeting, before.store, before.run, lane.name))
    _here.wrap()
    atexit.register(_here.at_exit)
    _here.forked(before, session, lane)


def elsewhere(session: Session, error: BaseException | None) -> bool:
    """Whether this is a child that comes to the end of what its parent began, which is its own end then."""
    if session.pid == os.getpid():
        return False
    if _here is not None:
        _here.end(None, error)
    return True


def together(session: Session, report: Report) -> Report:
    """The report of the run: of this process and of all that it forked."""
    place, session.meeting = session.meeting, ""
    if not place and len(session.processes) < 2:
        return report
    import msgspec

    from lockstep.launch import outcome
    from lockstep.launch.merge import merge

    found = outcome.Gathered((report,), (report.process,))
    if place:
        meeting.report(place, meeting.FIRST, msgspec.json.encode(report))
        if not session.recording:
            outcome.wait(place, but=session.pid)
        found = outcome.gather(place)
        meeting.remove(place)
    merged = merge(found.reports) or report
    if session.recording or merged.difference is not None or merged.cut:
        return merged
    from lockstep.debugger import processes

    missing = processes.missing(tuple(sorted(session.processes)), found)
    return merged if missing is None else msgspec.structs.replace(merged, identical=False, difference=missing)
