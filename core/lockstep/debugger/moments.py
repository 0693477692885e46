"""Whether a text or number in a run is the time that it was, or a time that the run measured itself.

Two live runs never share those. What a program says of the time is held against its own recorded clock reads, to the
digits given; what it was answered, against the time at which it was answered. A duration is the run's own where it
is the difference of two clock reads of the lane. Any other date or time (a deadline, an appointment) is content.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from lockstep.debugger.sides import Call, Side
from lockstep.log.model import Kind
from lockstep.session import reads

_SLACK = 60.0  # seconds that another machine's clock may be off
_DAY = 86400.0
_FINEST = 2e-6  # seconds: a microsecond that was cut off, and what floats of this size lose
_UNITS = (1.0, 1e3, 1e6, 1e9)  # of an epoch number
_HOURS = tuple(hour * 3600.0 for hour in range(-12, 15))
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_WALL = (
    "time.time",
    "time.localtime",
    "time.gmtime",
    "time.ctime",
    "time.asctime",
    "time.strftime",
    "datetime.",
    "date.",
)
_CLOCKS = ("time.", "loop.", "datetime.")
_READS = 400  # of one clock in one lane: with more, any duration would be the difference of some two

_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?(?:\s?(Z|[+-]\d\d:?\d\d))?)?", re.IGNORECASE
)
_NAMED = re.compile(
    r"(?:[A-Za-z]{3,9},? )?(?:(?P<d1>\d{1,2})[ -](?P<m1>[A-Za-z]{3,9})|(?P<m2>[A-Za-z]{3,9}) +(?P<d2>\d{1,2})),?"
    r"(?P<early> \d\d:\d\d(?::\d\d)?)?[ -](?P<year>\d{4})(?P<late> \d\d:\d\d(?::\d\d)?)?(?P<zone> GMT| UTC)?"
)
_CLOCK = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?")
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s?(ns|µs|us|ms|s|sec|secs|seconds|min|minutes)")
_SECONDS = {"ns": 1e-9, "µs": 1e-6, "us": 1e-6, "ms": 1e-3, "min": 60.0, "minutes": 60.0}

# From when until when, in seconds since 1970.
type Span = tuple[float, float]


class _Moment(msgspec.Struct, frozen=True):
    """A parsed time: seconds since 1970 (as if in UTC where no zone is said), or since midnight where there is no
    date, and how much of it is left open."""

    seconds: float
    precision: float
    zoned: bool
    dated: bool = True


class Moments:
    """The times of one run."""

    def __init__(self, side: Side) -> None:
        self._side = side
        started = side.meta.get("started")
        self._started = started / 1e9 if isinstance(started, int) else None
        self._clocks: dict[str, list[list[int]]] = {}
        self._wall: list[float] | None = None
        zone = (side.start(0).get("facts") or {}).get("clock") or {}
        west = [zone.get(name) for name in ("offset", "summer")] if isinstance(zone, dict) else []
        self._local = (0.0, *(-float(seconds) for seconds in west if isinstance(seconds, int)))

    def span(self, call: Call) -> Span | None:
        """When the call was made and answered; of a child process, only that it was during the run."""
        if self._started is None:
            return None
        if call.stream:
            return self._started, self._started + sum(stream.ended for stream in self._side.streams) / 1e9
        return self._started + call.at / 1e9, self._started + max(call.end_at, call.at) / 1e9

    def told(self, word: str, span: Span | None) -> bool:
        """Whether a date, time or epoch number is the time that it was: `span`, or else one that the run read."""
        if word.replace(".", "", 1).isdigit():
            return self.number(float(word), span, 10.0 ** -len(word.partition(".")[2]))
        moment = _parsed(word)
        return moment is not None and self._met(moment, span)

    def number(self, value: float, span: Span | None, precision: float = 1.0) -> bool:
        """Whether it is seconds (or ms, µs, ns) since 1970 at that time."""
        return any(self._met(_Moment(value / unit, max(precision / unit, _FINEST), True), span) for unit in _UNITS)

    def measured(self, word: str, lane: str) -> bool:
        """Whether a duration is one that the lane measured."""
        match = _DURATION.fullmatch(word)
        if match is None:
            return False
        digits = match[1].partition(".")[2]
        scale = _SECONDS.get(match[2], 1.0)
        return self.elapsed(float(match[1]) * scale, scale * 10.0 ** -len(digits), lane)

    def elapsed(self, seconds: float, precision: float, lane: str) -> bool:
        """Whether two clock reads of the lane lie so far apart, give or take `precision` seconds."""
        self._read()
        wanted, room = seconds * 1e9, max(precision * 1e9, 1.0)
        for values in self._clocks.get(lane, ()):
            for first in values:
                at = bisect_left(values, first + wanted - room)
                if at < len(values) and values[at] <= first + wanted + room:
                    return True
        return False

    def _met(self, moment: _Moment, span: Span | None) -> bool:
        zones = (0.0,) if moment.zoned else self._local
        if span is not None:
            low, high = span[0] - _SLACK - moment.precision, span[1] + _SLACK
            if not moment.dated:
                # Any time of day comes in a day.
                return any((moment.seconds - zone - low) % _DAY <= high - low for zone in zones)
            return any(low <= moment.seconds - zone <= high for zone in zones)
        if not moment.zoned and moment.precision <= 1.0:
            zones = (*zones, *_HOURS)  # the program may know of other zones than the machine's
        wall = self._read()
        if moment.dated:
            return any(self._read_at(wall, moment.seconds - zone, moment.precision) for zone in zones)
        return any(
            (value + zone - moment.seconds + moment.precision) % _DAY <= 2 * moment.precision
            for value in wall[:_READS]
            for zone in zones
        )

    def _read_at(self, wall: list[float], seconds: float, precision: float) -> bool:
        at = bisect_left(wall, seconds - precision)
        return at < len(wall) and wall[at] <= seconds + precision

    def _read(self) -> list[float]:
        """What the run read of the wall clock, sorted; on the way, what each lane read of each clock."""
        if self._wall is None:
            found: dict[tuple[str, str], list[int]] = {}
            for stream, seq, event in self._side.heads(Kind.READS):
                if event.what.removeprefix(reads.SOFT).startswith(_CLOCKS):
                    found.setdefault((event.lane, event.what), []).extend(self._values(stream, seq))
            wall: set[float] = set()
            for (lane, source), values in found.items():
                if source.removeprefix(reads.SOFT).startswith(_WALL):
                    wall.update(value / 1e9 for value in values)
                if len(values) <= _READS:
                    self._clocks.setdefault(lane, []).append(sorted(values))
            self._wall = sorted(wall)
        return self._wall

    def _values(self, stream: int, seq: int) -> Iterator[int]:
        body: Any = self._side.body(stream, seq)
        packed = body.get("values") if isinstance(body, dict) else None
        try:
            yield from reads.unpack(packed if isinstance(packed, bytes) else b"\0\0")
        except ValueError:
            return  # damaged: `verify` says so


def _parsed(word: str) -> _Moment | None:
    try:
        if (iso := _ISO.fullmatch(word)) is not None:
            return _iso(iso)
        if (clock := _CLOCK.fullmatch(word)) is not None:
            hour, minute, second, part = clock.groups()
            return _Moment(_of_day(hour, minute, second, part), _precision(second, part), False, dated=False)
        named = _NAMED.fullmatch(word)
        return _named(named) if named is not None else None
    except ValueError:
        return None  # no such day


def _iso(match: re.Match[str]) -> _Moment:
    year, month, day, hour, minute, second, part, zone = match.groups()
    midnight = datetime(int(year), int(month), int(day), tzinfo=UTC).timestamp()
    if hour is None:
        return _Moment(midnight, _DAY, False)
    seconds = midnight + _of_day(hour, minute, second, part)
    return _Moment(seconds - _offset(zone or "Z"), _precision(second, part), zone is not None)


def _named(match: re.Match[str]) -> _Moment | None:
    name = (match["m1"] or match["m2"])[:3].lower()
    if name not in _MONTHS:
        return None
    day = datetime(int(match["year"]), _MONTHS.index(name) + 1, int(match["d1"] or match["d2"]), tzinfo=UTC)
    clock = _CLOCK.fullmatch((match["early"] or match["late"] or "").strip())
    if clock is None:
        return _Moment(day.timestamp(), _DAY, False)
    hour, minute, second, part = clock.groups()
    moment = day + timedelta(seconds=_of_day(hour, minute, second, part))
    return _Moment(moment.timestamp(), _precision(second, part), match["zone"] is not None)


def _of_day(hour: str, minute: str, second: str | None, part: str | None) -> float:
    if int(hour) > 23 or int(minute) > 59 or int(second or 0) > 60:
        raise ValueError("no time of day")
    return int(hour) * 3600 + int(minute) * 60 + int(second or 0) + (float(f"0.{part}") if part else 0.0)


def _precision(second: str | None, part: str | None) -> float:
    if second is None:
        return 60.0
    return max(10.0 ** -len(part), _FINEST) if part else 1.0


def _offset(zone: str) -> float:
    if zone.upper() == "Z":
        return 0.0
    sign = -1 if zone[0] == "-" else 1
    return sign * (int(zone[1:3]) * 3600.0 + int(zone[-2:]) * 60.0)
