"""How a launched command ended: its status, and what its followed processes had to say."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence

import msgspec

from lockstep.errors import Code, LockstepError, StoreError, TargetError
from lockstep.launch import meeting
from lockstep.launch.merge import merge
from lockstep.launch.supervise import Ended
from lockstep.session.report import Coverage, Report

PATIENCE = 30.0  # seconds that a replay waits for processes which outlive the first one, while they do nothing
LOOK = 0.02


class Gathered(msgspec.Struct, frozen=True):
    """What the followed processes of a run left in their meeting place.

    reports    of each, the first one's first
    followed   their lanes, in the order in which they came
    running    those without a report that had not ended when the first one did
    ended      those that have ended without one: killed, or replaced by another program
    """

    reports: tuple[Report, ...] = ()
    followed: tuple[str, ...] = ()
    running: tuple[str, ...] = ()
    ended: tuple[str, ...] = ()


class Outcome(msgspec.Struct, frozen=True):
    """status    as the command left it: 0 to 255, or -N for signal N
    run        the run's name in the store; "" where none was begun
    report     of all followed processes together; None where the first one could not leave any (killed, replaced)
    processes  what each of them left
    error      why there is no run at all, or none to replay
    fault      an error of ours while recording: the program ran on bare
    asked      whether somebody asked the command to end by a signal
    uncovered  executables of Python processes that were started but not recorded
    isolated   by what the command was kept off the network; "" if it was not
    """

    status: int
    run: str = ""
    report: Report | None = None
    error: LockstepError | None = None
    fault: str = ""
    asked: bool = False
    uncovered: tuple[str, ...] = ()
    isolated: str = ""
    processes: Gathered = Gathered()


def coverage(outcome: Outcome) -> tuple[Coverage, ...]:
    """What was covered and what was not, as the recorded process knew it and as the supervisor saw after it."""
    return (*(outcome.report.coverage if outcome.report is not None else ()), *late(outcome))


def late(outcome: Outcome) -> tuple[Coverage, ...]:
    """What only the supervisor saw."""
    known = outcome.report.coverage if outcome.report is not None else ()
    noted = {entry.detail for entry in known if entry.source == meeting.CHILD_PROCESS}
    return tuple(
        Coverage(meeting.CHILD_PROCESS, "not covered", outcome.uncovered.count(executable), executable)
        for executable in sorted(set(outcome.uncovered) - noted)
    )


def read(place: str, command: Sequence[str], mode: str, ended: Ended) -> Outcome:
    """Collects what the command's processes left in their meeting place. In a replay each one's verdict counts, so
    those that outlive the first are waited for."""
    if mode != "record":
        wait(place)
    heard = meeting.heard(place)
    trouble = meeting.read(place, "trouble").decode("utf-8", "replace")
    code, _, words = trouble.partition(" ")
    error: LockstepError | None = None
    if code:
        error = _error(Code(code), words)
    elif not any(other.state == meeting.RECORDED for other in heard):
        foreign = [other.executable for other in heard if other.state == meeting.FOREIGN]
        error = _not_loaded(command, mode, foreign)
    processes = gather(place)
    return Outcome(
        status=ended.status,
        asked=ended.asked,
        isolated=ended.isolated,
        run=meeting.read(place, "run").decode(),
        report=merge(processes.reports),
        error=error,
        fault=words if trouble and not code else "",
        uncovered=tuple(_uncovered(heard)),
        processes=processes,
    )


def gather(place: str) -> Gathered:
    """Collects the reports that there are by now."""
    found = {report.process: report for raw in meeting.reports(place) if raw for report in [_decode(raw)]}
    lanes = _followed(meeting.heard(place))
    without = [lane for lane in lanes if lane not in found]
    return Gathered(
        reports=tuple(found[lane] for lane in lanes if lane in found),
        followed=tuple(lanes),
        running=tuple(sorted(lane for lane in without if alive(lanes[lane]))),
        ended=tuple(sorted(lane for lane in without if not alive(lanes[lane]))),
    )


def _decode(raw: bytes) -> Report:
    return msgspec.json.decode(raw, type=Report)


def _followed(heard: Sequence[meeting.Heard]) -> dict[str, int]:
    """The followed lanes with the process of each, in the order in which they came."""
    found: dict[str, int] = {}
    for other in heard:
        if other.state == meeting.RECORDED:
            found[other.lane] = other.pid
        elif other.state in (meeting.EARLIER, meeting.LEFT):
            found.pop(other.lane, None)
    return found


def wait(place: str, but: int = 0) -> None:
    """Until every followed process has ended, but for `but`. Who does nothing for long enough is ended: it is
    the replay's."""
    quiet, used = 0.0, -1.0
    while True:
        left = [pid for pid in _followed(meeting.heard(place)).values() if pid != but and alive(pid)]
        if not left:
            return
        before, used = used, sum(_processor_time(pid) for pid in left)
        quiet = quiet + LOOK if used == before else 0.0
        if quiet > PATIENCE:
            for pid in left:
                try:
                    os.kill(pid, 9)
                except ProcessLookupError:
                    continue
            return
        time.sleep(LOOK)


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and that nobody has collected does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return _status(pid)[:1] != ["Z"]


def _processor_time(pid: int) -> float:
    told = _status(pid)
    return float(told[11]) + float(told[12]) if len(told) > 12 else 0.0


def _status(pid: int) -> list[str]:
    """What the system tells of a process, from its state on; nothing where it does not tell."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def _uncovered(heard: Sequence[meeting.Heard]) -> Iterator[str]:
    recorded = False
    for number, other in enumerate(heard):
        recorded = recorded or other.state == meeting.RECORDED
        # Before the recorded process, one that cannot import lockstep is a wrapper; after it, part of the program,
        # unless whoever started it named it: what it says is recorded there.
        foreign = other.state == meeting.FOREIGN and recorded and other.lane in ("", meeting.FIRST)
        if other.state == meeting.CHILD or foreign or _replaced(other, heard[number + 1 :]):
            yield other.executable


def _replaced(other: meeting.Heard, later: Sequence[meeting.Heard]) -> bool:
    """Whether a followed process became a program that was not."""
    return other.state == meeting.LEFT and not any(
        each.lane == other.lane and each.state == meeting.RECORDED for each in later
    )


def _error(code: Code, message: str) -> LockstepError:
    return (StoreError if code.startswith("LS2") else LockstepError)(code, message)


def _not_loaded(command: Sequence[str], mode: str, foreign: list[str]) -> TargetError:
    done = "recorded" if mode == "record" else "replayed"
    if foreign:
        python = foreign[-1]
        return TargetError(
            Code.NOT_LOADED,
            f"nothing was {done}: {python} cannot import lockstep. "
            f"Install it there: {python} -m pip install lockstep-replay",
        )
    return TargetError(
        Code.NOT_LOADED,
        f"nothing was {done}: {command[0]} started no Python that loads lockstep. It may not be a Python program, "
        "or run Python with -I, -E or -S, which keep sitecustomize away.",
    )
