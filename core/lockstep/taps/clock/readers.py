"""The functions of module `time`, each with one that asks the session first.

One stream per clock: `time()`, `time_ns()` and `clock_gettime(CLOCK_REALTIME)` read the same one, so
that adding a `_ns` call does not shift what the others get. Streams hold nanoseconds; a float is
`ns / 1e9` while recording and in replay, which is also how CPython derives it.

Not here: `time.sleep` and an event loop's `time()` are the concurrency taps' (a sleep is a cause).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from lockstep.session import current as active
from lockstep.session.lanes import INSIDE, Lane, current
from lockstep.session.reads import open_stream
from lockstep.taps.patches import stand_in

WALL = "time.time"

# (source, the function of float seconds, the clock id it stands for); each has a twin in nanoseconds
_CLOCKS = (
    (WALL, "time", "CLOCK_REALTIME"),
    ("time.monotonic", "monotonic", "CLOCK_MONOTONIC"),
    ("time.perf_counter", "perf_counter", ""),
    ("time.process_time", "process_time", "CLOCK_PROCESS_CPUTIME_ID"),
    ("time.thread_time", "thread_time", "CLOCK_THREAD_CPUTIME_ID"),
)
# What tells no date, and so stays while time-machine travels: it leaves these alone too.
STEADY = frozenset(name + twin for _, name, _ in _CLOCKS[1:] for twin in ("", "_ns"))
# Calendar functions that read the wall clock where their last argument is left out: (name, its place).
_CALENDAR = (("localtime", 0), ("gmtime", 0), ("ctime", 0), ("asctime", 0), ("strftime", 1))

real: dict[str, Any] = dict(vars(time))
"""Module `time` as it was before any tap."""

_inside = INSIDE.get  # most reads of a clock are a client's own
_real_time_ns: Callable[[], int] = time.time_ns
_real_localtime = time.localtime


def _seconds(source: str, function: Callable[[], float], real_ns: Callable[[], int]) -> Callable[[object], float]:
    def reading(_: object) -> float:
        lane = None if active.session is None or _inside() is not None else current()
        if lane is None:
            return function()
        value: int = (lane.taps.get(source) or open_stream(lane, source)).next(real_ns)
        return value / 1e9

    return reading


def _nanoseconds(source: str, real_ns: Callable[[], int]) -> Callable[[object], int]:
    def reading(_: object) -> int:
        lane = None if active.session is None or _inside() is not None else current()
        if lane is None:
            return real_ns()
        value: int = (lane.taps.get(source) or open_stream(lane, source)).next(real_ns)
        return value

    return reading


def wall(lane: Lane, source: str) -> int:
    """The wall clock of a lane in nanoseconds, as a read of `source`."""
    value: int = (lane.taps.get(source) or open_stream(lane, source)).next(_real_time_ns)
    return value


def _calendar(source: str, function: Callable[..., Any], place: int) -> Callable[..., Any]:
    # asctime and strftime want a broken-down time, the others seconds.
    broken_down = source in ("time.asctime", "time.strftime")
    optional = source in ("time.localtime", "time.gmtime", "time.ctime")  # these also take None for "now"

    def reading(_: object, *args: Any) -> Any:
        if len(args) > place and not (optional and args[place] is None):
            return function(*args)
        if len(args) < place:
            return function(*args)  # TypeError, as it says it
        lane = current()
        if lane is None:
            return function(*args)
        seconds = wall(lane, source) // 1_000_000_000
        return function(*args[:place], _real_localtime(seconds) if broken_down else seconds)

    return reading


def _by_id(function: Callable[[int], Any], real_ns: Callable[[int], int], float_seconds: bool) -> Callable[..., Any]:
    sources = {real[clock]: source for source, _, clock in _CLOCKS if clock in real}

    def reading(_: object, clk_id: int, /) -> Any:
        lane = current()
        if lane is None or type(clk_id) is not int:
            return function(clk_id)
        source = sources.get(clk_id) or f"time.clock_gettime({clk_id})"
        stream = lane.taps.get(source)
        if stream is None:
            function(clk_id)  # an unknown clock: OSError, as it says it
            stream = open_stream(lane, source)
        value: int = stream.next(lambda: real_ns(clk_id))
        return value / 1e9 if float_seconds else value

    return reading


def taps() -> dict[str, Callable[..., Any]]:
    """What stands for each function of module `time` that reads a clock, by name."""
    made: dict[str, Callable[..., Any]] = {}
    for source, name, _ in _CLOCKS:
        if name in real:
            made[name] = _seconds(source, real[name], real[f"{name}_ns"])
            made[f"{name}_ns"] = _nanoseconds(source, real[f"{name}_ns"])
    for name, place in _CALENDAR:
        made[name] = _calendar(f"time.{name}", real[name], place)
    if "clock_gettime" in real:
        made["clock_gettime"] = _by_id(real["clock_gettime"], real["clock_gettime_ns"], True)
        made["clock_gettime_ns"] = _by_id(real["clock_gettime_ns"], real["clock_gettime_ns"], False)
    return {name: stand_in(function, real[name], "time") for name, function in made.items()}
