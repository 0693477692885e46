"""The verdict on the processes of a replayed run: which of them did not come, or did not tell what they did.

Plain functions: what is recorded and what the processes left in, a difference out.
"""

from __future__ import annotations

import msgspec

from lockstep.errors import Code, Difference
from lockstep.launch.outcome import Gathered
from lockstep.log.roll import LAUNCH
from lockstep.log.store import RunReader
from lockstep.log.timeline import END, INPUT, Timeline


def recorded(reader: RunReader) -> tuple[str, ...]:
    """The lanes of a run's processes, in the order in which they came."""
    return tuple(dict.fromkeys(stream.process for stream in reader.streams if stream.process != LAUNCH))


def missing(told: tuple[str, ...], found: Gathered) -> Difference | None:
    """A recorded process that never began, or one of which nobody knows what it did."""
    for lane in told:
        if lane not in found.followed:
            return _difference(Code.MISSING, "a recorded process never began", lane)
    for lane in told:
        if lane in found.ended or lane in found.running:
            return _difference(Code.END, "the process was ended before it could say what it did", lane)
    return None


def _difference(code: Code, reason: str, lane: str) -> Difference:
    return Difference(
        code=code, reason=reason, step=None, lane=lane, kind="process", name=lane.rpartition("/")[2], source=""
    )


def in_run(reader: RunReader, difference: Difference, process: str, found: Gathered) -> Difference:
    """A difference found by one of several processes, with its steps as the whole run numbers them."""
    timeline = Timeline(reader)
    if len(timeline.streams) < 2 or difference.step is None:
        return difference
    names = {stream.id: stream.process for stream in timeline.streams}
    places: dict[str, list[int]] = {}
    for step in timeline.steps:
        if step.kind not in (INPUT, END):
            places.setdefault(names[step.stream], []).append(step.number)
    last = timeline.steps[-1].number
    own = places.get(process, [])
    here = own[difference.step - 1] if 0 < difference.step <= len(own) else last
    done = {report.process: report.steps for report in found.reports}
    open_ = [
        numbers[steps]
        for lane, numbers in places.items()
        if (steps := (difference.same_until or 0) if lane == process else done.get(lane, 0)) < len(numbers)
    ]
    return msgspec.structs.replace(difference, step=here, same_until=min([here, *open_]) - 1)
