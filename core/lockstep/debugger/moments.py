"""Whether a text or number in a run is that run's own clock: a moment within it, or a time it measured itself.

Two live runs never share those. A moment counts as the run's own where it falls into the run, in any time zone; a
duration where it is the difference of two of the lane's own recorded clock reads, to the digits given.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from lockstep.debugger.sides import Side
from lockstep.log.model import Kind
from lockstep.session import reads

_SLACK = 60.0  # seconds that another machine's clock may be off
_QUARTER = 900.0  # seconds: time zones differ by multiples of it
_ZONES = 14 * 3600.0
_UNITS = (1.0, 1e3, 1e6, 1e9)  # of an epoch number
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
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


class Moments:
    """The time that one run took."""

    def __init__(self, side: Side) -> None:
        self._side = side
        started = side.meta.get("started")
        self._known = isinstance(started, int)
        self._from = started / 1e9 if isinstance(started, int) else 0.0
        self._until = self._from + max((stream.ended for stream in side.streams), default=0) / 1e9
        self._clocks: dict[str, list[list[int]]] | None = None

    def within(self, word: str) -> bool:
        """Whether a date, time or epoch number is a moment of the run."""
        if not self._known:
            return False
        if word.replace(".", "", 1).isdigit():
            return self.number(float(word))
        iso = _ISO.fullmatch(word)
        if iso is not None:
            return self._iso(iso)
        clock = _CLOCK.fullmatch(word)
        if clock is not None:
            return self._of_day(clock)
        named = _NAMED.fullmatch(word)
        return named is not None and self._named(named)

    def number(self, value: float) -> bool:
        """Whether it is seconds (or ms, µs, ns) since 1970 at a moment of the run."""
        return self._known and any(self._near(value / unit) for unit in _UNITS)

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
        wanted, room = seconds * 1e9, max(precision * 1e9, 1.0)
        for values in self._read().get(lane, ()):
            for first in values:
                at = bisect_left(values, first + wanted - room)
                if at < len(values) and values[at] <= first + wanted + room:
                    return True
        return False

    def _near(self, seconds: float) -> bool:
        return self._from - _SLACK <= seconds <= self._until + _SLACK

    def _anywhere(self, seconds: float, room: float = 0.0) -> bool:
        """The same for a local time of no known zone."""
        low, high = self._from - _SLACK - seconds, self._until + _SLACK + room - seconds
        if high < -_ZONES or low > _ZONES:
            return False
        return high - low >= _QUARTER or (high // _QUARTER) * _QUARTER >= low

    def _iso(self, match: re.Match[str]) -> bool:
        year, month, day, hour, minute, second, part, zone = match.groups()
        try:
            moment = datetime(
                int(year), int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), tzinfo=UTC
            )
        except ValueError:
            return False
        seconds = moment.timestamp() + (float(f"0.{part}") if part else 0.0)
        if hour is None:
            return self._day(seconds)
        if zone is None:
            return self._anywhere(seconds, 0.0 if second else 60.0)
        return self._near(seconds - _offset(zone)) or (second is None and self._near(seconds - _offset(zone) + 60.0))

    def _named(self, match: re.Match[str]) -> bool:
        name = (match["m1"] or match["m2"])[:3].lower()
        if name not in _MONTHS:
            return False
        try:
            moment = datetime(
                int(match["year"]), _MONTHS.index(name) + 1, int(match["d1"] or match["d2"]), tzinfo=UTC
            )  # fmt: skip
        except ValueError:
            return False
        clock = _CLOCK.fullmatch((match["early"] or match["late"] or "").strip())
        if clock is None:
            return self._day(moment.timestamp())
        moment += timedelta(hours=int(clock[1]), minutes=int(clock[2]), seconds=int(clock[3] or 0))
        return self._near(moment.timestamp()) if match["zone"] else self._anywhere(moment.timestamp())

    def _day(self, midnight: float) -> bool:
        return midnight - _ZONES <= self._until and self._from <= midnight + 86400.0 + _ZONES

    def _of_day(self, match: re.Match[str]) -> bool:
        hour, minute, second, part = match.groups()
        if int(hour) > 23 or int(minute) > 59 or int(second or 0) > 59:
            return False
        of_day = int(hour) * 3600 + int(minute) * 60 + int(second or 0) + (float(f"0.{part}") if part else 0.0)
        midnight = self._from // 86400 * 86400
        room = 0.0 if second else 60.0
        return any(self._anywhere(midnight + day * 86400 + of_day, room) for day in (-1, 0, 1))

    def _read(self) -> dict[str, list[list[int]]]:
        """The clock reads of each lane, sorted, a list for each clock."""
        if self._clocks is None:
            found: dict[tuple[str, str], list[int]] = {}
            for stream, seq, event in self._side.heads(Kind.READS):
                source = event.what.removeprefix(reads.SOFT)
                if source.startswith(_CLOCKS):
                    found.setdefault((event.lane, event.what), []).extend(self._values(stream, seq))
            self._clocks = {}
            for (lane, _), values in found.items():
                if len(values) <= _READS:
                    self._clocks.setdefault(lane, []).append(sorted(values))
        return self._clocks

    def _values(self, stream: int, seq: int) -> Iterator[int]:
        body: Any = self._side.body(stream, seq)
        packed = body.get("values") if isinstance(body, dict) else None
        try:
            yield from reads.unpack(packed if isinstance(packed, bytes) else b"\0\0")
        except ValueError:
            return  # damaged: `verify` says so


def _offset(zone: str) -> float:
    if zone.upper() == "Z":
        return 0.0
    sign = -1 if zone[0] == "-" else 1
    return sign * (int(zone[1:3]) * 3600.0 + int(zone[-2:]) * 60.0)
