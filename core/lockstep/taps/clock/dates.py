"""`datetime.now`, `datetime.utcnow` and `date.today`, without touching what a datetime is.

Their C code reads the clock itself, so module attributes do not reach them, and a subclass in their
place breaks identity, pickling, C consumers and, with some of them, the interpreter. So the entries
in the type's own dict are replaced: the classes stay the same objects. A static type's dict is
read-only by its proxy only; CPython's type cache must be told of each change.

Tried on CPython 3.12, 3.13 and 3.14.
"""

from __future__ import annotations

import ctypes
import datetime as module
import gc
import time
from collections.abc import Callable
from typing import Any
from warnings import warn

from lockstep.session import current as active
from lockstep.session.lanes import current
from lockstep.taps.clock.readers import wall
from lockstep.taps.patches import disguise

_date = module.date
_datetime = module.datetime
_real_gmtime = time.gmtime
_real_time_ns = time.time_ns

# As CPython words it: nobody should see that it is not C that warns.
DEPRECATED = (
    "datetime.datetime.utcnow() is deprecated and scheduled for removal in a future version. Use timezone-aware "
    "objects to represent datetimes in UTC: datetime.datetime.now(datetime.UTC)."
)

# The descriptors as C made them.
_now: Any = vars(_datetime)["now"]
_today: Any = vars(_date)["today"]
_fromtimestamp: Any = vars(_datetime)["fromtimestamp"]
_plain_now: Callable[..., module.datetime] = _datetime.now
_plain_fromtimestamp: Callable[..., module.datetime] = _datetime.fromtimestamp

CAPTURABLE = ((_datetime, "now"), (_datetime, "utcnow"), (_datetime, "today"), (_date, "today"))


def now(cls: type[module.datetime], tz: module.tzinfo | None = None) -> module.datetime:
    lane = None if active.session is None else current()
    if lane is None:
        return _plain_now(tz) if cls is _datetime else _now.__get__(None, cls)(tz)
    # In whole microseconds, which a float holds exactly: rounding it again changes nothing.
    seconds = wall(lane, "datetime.now") // 1000 / 1e6
    if cls is _datetime:
        return _plain_fromtimestamp(seconds, tz)
    # Past a subclass's own fromtimestamp, which `now` does not call either.
    return _fromtimestamp.__get__(None, cls)(seconds, tz)  # type: ignore[no-any-return]


def utcnow(cls: type[module.datetime]) -> module.datetime:
    # Not by the C function even without a session: it would name our line as the deprecated one.
    warn(DEPRECATED, DeprecationWarning, stacklevel=2)
    lane = current()
    microseconds = (_real_time_ns() if lane is None else wall(lane, "datetime.utcnow")) // 1000
    day = _real_gmtime(microseconds // 1_000_000)
    return cls(*day[:6], microseconds % 1_000_000, None)


def today(cls: type[module.date]) -> module.date:
    lane = None if active.session is None else current()
    # C asks `time.time` by its name: what the program has put there (a mock) is the program's own.
    if lane is None or time.time is not _tapped_time:
        return _today.__get__(None, cls)()  # type: ignore[no-any-return]
    # What C does, through a subclass's own fromtimestamp; datetime inherits it.
    source = "datetime.today" if issubclass(cls, _datetime) else "date.today"
    return cls.fromtimestamp(wall(lane, source) / 1e9)


_ENTRIES = (
    (_datetime, "now", now, _now),
    (_datetime, "utcnow", utcnow, vars(_datetime)["utcnow"]),
    (_date, "today", today, _today),
)
_installed: dict[tuple[type, str], Any] = {}
_tapped_time: Any = None


def install(tapped_time: Any) -> None:
    """Puts ours into the types' dicts; does nothing where they are there. `tapped_time` stands for `time.time`."""
    global _tapped_time
    _tapped_time = tapped_time
    for owner, name, ours, theirs in _ENTRIES:
        if (owner, name) in _installed:
            continue
        disguise(ours, theirs, owner.__module__, name)
        ours.__qualname__ = f"{owner.__name__}.{name}"
        entry = _installed[(owner, name)] = classmethod(ours)
        _write(owner, name, entry)


def uninstall() -> list[str]:
    """Puts C's back; returns what others have replaced meanwhile and that stays."""
    kept: list[str] = []
    for owner, name, _, theirs in _ENTRIES:
        entry = _installed.pop((owner, name), None)
        if entry is None:
            continue
        if vars(owner)[name] is entry:
            _write(owner, name, theirs)
        else:
            kept.append(f"{owner.__name__}.{name}")
    return kept


def _write(owner: type, name: str, entry: Any) -> None:
    names = next(found for found in gc.get_referents(vars(owner)) if type(found) is dict)
    names[name] = entry
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(owner))
