"""Requests that stand for recorded ones though some of their values are other ones in each run.

Which values may, the user says (`lockstep_playwright.volatile`). They are not dropped but renamed: where `4f1c` was
recorded and `88ab` is there now, `88ab` means `4f1c` from then on, wherever it stands, and nothing else does. So two
orders that become one, or one that becomes two, are a difference. Only moments (a time of the run, by any clock) may
come once or twice: two that were one may be apart now.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec
from msgspec.structs import replace

from lockstep.errors import Difference
from lockstep.log import untapped
from lockstep.log.model import Event, Value
from lockstep.session import coverage
from lockstep.session.native.serving import Serving
from lockstep.session.report import Coverage
from lockstep.session.tape import Recorded
from lockstep_playwright import volatile
from lockstep_playwright.layout import HTTP, SOCKET
from lockstep_playwright.network import requests
from lockstep_playwright.serving import missed
from lockstep_playwright.serving.pace import ORDER
from lockstep_playwright.volatile import Places, Rules

SOURCE = "volatile"

_KINDS = (HTTP, SOCKET)
_NOBODYS = b""  # a match key that no call has
_DISTINCT = 8  # characters from which on a value is the same one wherever it stands
_DAY = 86_400.0
_TICKS = (1, 1_000, 1_000_000, 1_000_000_000)  # of a second, in clocks that pages and programs read


class Apart(msgspec.Struct, frozen=True):
    """A request taken apart: what must match, and what may be another one."""

    name: str
    fixed: Places
    free: Places


class Stored(msgspec.Struct, frozen=True):
    """The same of a recorded one."""

    effect: Recorded
    apart: Apart


class Renaming:
    """Is `Alike`. Of all that is recorded of one run.

    rules  those of the user
    """

    def __init__(
        self, rules: Rules, servings: Sequence[Serving], began: float, note: Callable[[str, str], Any]
    ) -> None:
        """`began`: when the recording did, in seconds since 1970. `note` is told what goes out of its order."""
        self.rules = rules
        self._servings = servings
        self._began = began
        self._note = note
        self._taken: set[int] = set()
        self._is: dict[tuple[str, str], str] = {}  # what a recorded value is now, by where it is known
        self._was: dict[tuple[str, str], str] = {}
        self._drifted: set[str] = set()
        self._drifts: dict[tuple[str, str], int] = {}
        for serving in servings:
            serving.alike = self

    # What a `Serving` asks (`Alike`).

    def key(self, lane: str, kind: str, key: Value) -> bytes | None:
        """See `Alike.key`."""
        fitting = self._fitting(kind, key)
        if fitting is None:
            return None
        found = self._first(fitting, kind, key, lane)
        return found.begin.key if found is not None else _NOBODYS

    def told(self, found: Difference, kind: str, request: Value) -> Difference:
        """See `Alike.told`."""
        return missed.told(self.rules, self._servings, found, kind, request) if kind in _KINDS else found

    # Requests.

    def find(self, lane: str, kind: str, key: Value) -> Recorded | None:
        """The recorded call that this one stands for: one that is left, as long as there is one."""
        fitting = self._fitting(kind, key)
        return self._first(fitting, kind, key, lane) if fitting is not None else None

    def _fitting(self, kind: str, key: Value) -> list[Stored] | None:
        """Those that it may stand for; None where only an equal one may."""
        now = self._apart(kind, key, "") if self.rules.rules and kind in _KINDS else None
        if now is None or not (now.free or self._mentioned(now)):
            return None
        group = self._groups.get(self._digest(kind, self._renamed(now)))
        return None if group is None else [each for each in group if self._fits(each.apart.free, now.free)]

    def _first(self, fitting: list[Stored], kind: str, key: Value, lane: str) -> Recorded | None:
        now = self._apart(kind, key, "")
        left = [each for each in fitting if each.effect.begin.pos not in self._taken]
        if not left:
            return fitting[-1].effect if fitting else None
        return min(left, key=lambda each: self._rank(each, now, lane)).effect

    def took(self, kind: str, key: Value, effect: Recorded) -> None:
        """A call is answered by this recorded one, whose values have other names from here on."""
        now = self._apart(kind, key, "") if self.rules.rules and kind in _KINDS else None
        if now is None:
            return
        self._taken.add(effect.begin.pos)
        stored = self._stored.get(effect.begin.pos) if now.free else None
        if stored is None:
            return
        drifts = False
        for (path, was), (_, is_) in zip(stored.apart.free, now.free, strict=False):
            drifts = self._bind(stored.apart.name, path, was, is_) or drifts
        if drifts and self._is_overtaken(kind, stored):
            self._note(ORDER, f"{stored.apart.name} came before one that was asked earlier in the record")

    def same_frame(self, url: str, recorded: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
        """Whether what a page says on a WebSocket is the recorded frame but for what may be another one."""
        declared = self.rules.declared("GET", url) if self.rules.rules else ()
        was, is_ = (self._split(url, volatile.of_frame(each), declared) for each in (recorded, now))
        if was.fixed != self._renamed(is_).fixed or not self._fits(was.free, is_.free):
            return False
        for (path, before), (_, after) in zip(was.free, is_.free, strict=True):
            self._bind(was.name, path, before, after)
        return True

    def differing(self) -> Iterator[Coverage]:
        """What was let differ, for a report."""
        for (name, path), count in sorted(self._drifts.items()):
            yield Coverage(SOURCE, coverage.DIFFERS, count, f"{name}  {path}: a rule says that it may")

    # Names.

    def _bind(self, name: str, path: str, was: Value, is_: Value) -> bool:
        """Whether the value is another one."""
        if not self._is_moment(was, is_):
            before, after = _text(was), _text(is_)
            self._is[_scope(path, before)], self._was[_scope(path, after)] = after, before
        if was == is_:
            return False
        place = volatile.general(path)
        self._drifted.add(place)
        self._drifts[name, place] = self._drifts.get((name, place), 0) + 1
        return True

    def _fits(self, recorded: Places, now: Places) -> bool:
        """Whether no value stands for another one already."""
        for (path, was), (_, is_) in zip(recorded, now, strict=False):
            before, after = _text(was), _text(is_)
            known = self._is.get(_scope(path, before), after) == after
            if not (known and self._was.get(_scope(path, after), before) == before) and not self._is_moment(was, is_):
                return False
        return [path for path, _ in recorded] == [path for path, _ in now]

    def _rank(self, each: Stored, now: Apart, lane: str) -> tuple[int, bool, int]:
        """Those that are known by their names come first, then equal ones, then the others in the recorded order. Where
        values have turned out to be other ones, an equal one is so by chance."""
        pairs = [
            (path, _text(was), _text(is_)) for (path, was), (_, is_) in zip(each.apart.free, now.free, strict=True)
        ]
        begin = each.effect.begin
        if pairs and all(self._is.get(_scope(path, was)) == is_ for path, was, is_ in pairs):
            place = 0
        elif all(was == is_ and volatile.general(path) not in self._drifted for path, was, is_ in pairs):
            place = 1
        else:
            place = 2
        return place, begin.lane != lane, begin.pos

    def _is_overtaken(self, kind: str, stored: Stored) -> bool:
        """Whether one that was recorded later in the same lane has been asked for already."""
        begin = stored.effect.begin
        group = self._groups[self._digest(kind, stored.apart)]
        return any(
            each.effect.begin.pos > begin.pos and each.effect.begin.lane == begin.lane
            and each.effect.begin.pos in self._taken
            for each in group
        )  # fmt: skip

    def _mentioned(self, now: Apart) -> bool:
        """Whether a value that has another name stands anywhere in it."""
        return self._renamed(now) is not now

    def _renamed(self, now: Apart) -> Apart:
        """With the recorded names in the place of those that are unmistakable."""
        names = [(is_, was) for (scope, is_), was in self._was.items() if not scope and is_ != was]
        fixed = [(path, _replaced(value, names)) for path, value in now.fixed] if names else now.fixed
        return now if fixed == now.fixed else replace(now, fixed=fixed)

    def _is_moment(self, was: Value, is_: Value) -> bool:
        """Whether both are a time of their run."""
        return self._is_near(was, self._began) and (
            self._is_near(is_, untapped.time_ns() / 1e9) or self._is_near(is_, self._began)
        )

    def _is_near(self, value: Value, when: float) -> bool:
        if isinstance(value, bool):
            return False
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError):
            return isinstance(value, str) and abs(_date(value) - when) < _DAY
        return any(abs(number / ticks - when) < _DAY for ticks in _TICKS)

    # What is recorded.

    @cached_property
    def _stored(self) -> dict[int, Stored]:
        """By position."""
        found: dict[int, Stored] = {}
        for serving in self._servings:
            for lane in serving.tape.lanes.values():
                for effect in (each for each in lane.effects if each.begin.what in _KINDS):
                    request = serving.secrets.reveal(serving.tape.request(effect).get("request"))
                    begin: Event = effect.begin
                    key = requests.key_of(begin.what, request)
                    found[begin.pos] = Stored(effect, self._apart(begin.what, key, begin.name))
        return found

    @cached_property
    def _groups(self) -> dict[bytes, list[Stored]]:
        """By what must match of them."""
        found: dict[bytes, list[Stored]] = {}
        for each in self._stored.values():
            found.setdefault(self._digest(each.effect.begin.what, each.apart), []).append(each)
        return found

    def _apart(self, kind: str, key: Value, name: str) -> Apart:
        return self._split(name, volatile.places(key), self.rules.declared(*volatile.address(key)))

    def _split(self, name: str, every: Places, declared: Sequence[str]) -> Apart:
        free = [(path, value) for path, value in every if declared and volatile.within(path, declared)]
        fixed = [(path, None if declared and volatile.within(path, declared) else value) for path, value in every]
        return Apart(name, fixed, free)

    def _digest(self, kind: str, apart: Apart) -> bytes:
        told: Value = [[path, value] for path, value in apart.fixed]
        return self._servings[0].secrets.asked(kind, "", told, told)[2]


def _scope(path: str, text: str) -> tuple[str, str]:
    """Where a value is the same one: everywhere, or, as a small number, in its place."""
    return ("" if len(text) >= _DISTINCT else volatile.general(path)), text


def _text(value: Value) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def _replaced(value: Value, names: Sequence[tuple[str, str]]) -> Value:
    if isinstance(value, bytes):
        for now, was in names:
            value = value.replace(now.encode(), was.encode())
        return value
    if isinstance(value, str):
        for now, was in names:
            value = value.replace(now, was)
    return value


def _date(text: str) -> float:
    """Seconds since 1970 of a date with a time; 0 for what is none."""
    try:
        found = datetime.datetime.fromisoformat(text)
    except ValueError:
        return 0.0
    return found.replace(tzinfo=found.tzinfo or datetime.UTC).timestamp()
