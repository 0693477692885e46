"""How a launched command ended: its status, and what its recorded process had to say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from lockstep.errors import Code, LockstepError, StoreError, TargetError
from lockstep.launch import meeting
from lockstep.launch.supervise import Ended
from lockstep.session.report import Coverage, Report


class Outcome(msgspec.Struct, frozen=True):
    """status    as the command left it: 0 to 255, or -N for signal N
    run        the run's name in the store; "" where none was begun
    report     the recorded process's; None where it could not leave one (killed, replaced, still running)
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
    """Collects what the command's processes left in their meeting place."""
    heard = meeting.heard(place)
    report = meeting.read(place, "report")
    trouble = meeting.read(place, "trouble").decode("utf-8", "replace")
    code, _, words = trouble.partition(" ")
    error: LockstepError | None = None
    if code:
        error = _error(Code(code), words)
    elif not any(state == meeting.RECORDED for _, state, _ in heard):
        error = _not_loaded(command, mode, [executable for _, state, executable in heard if state == meeting.FOREIGN])
    return Outcome(
        status=ended.status,
        asked=ended.asked,
        isolated=ended.isolated,
        run=meeting.read(place, "run").decode(),
        report=msgspec.json.decode(report, type=Report) if report else None,
        error=error,
        fault=words if trouble and not code else "",
        uncovered=tuple(_uncovered(heard)),
    )


def _uncovered(heard: list[tuple[int, str, str]]) -> Iterator[str]:
    recorded = False
    for _, state, executable in heard:
        recorded = recorded or state == meeting.RECORDED
        # Before the recorded process, one that cannot import lockstep is a wrapper; after it, part of the program.
        if state == meeting.CHILD or (recorded and state == meeting.FOREIGN):
            yield executable


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
