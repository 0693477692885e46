"""What stands between the program and `os.environ`: methods of its class that note first reads.

Each read of Python code ends in `__getitem__` (`get`, `in`, `pop`, `getenv`, `expandvars`) or begins with
`__iter__` (`dict()`, `copy`, `|`, `items`). A name that has been read once costs a look into a set; nothing
else of a mapping changes.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any

from lockstep.log.model import Value
from lockstep.session import sites
from lockstep.session.firsts import ENVIRON, Firsts
from lockstep.session.lanes import current
from lockstep.taps.environ import bound

NAMES = ""  # in the place of a name: all names, in order

_class: Any = type(os.environ)
_getitem = _class.__getitem__
_setitem = _class.__setitem__
_delitem = _class.__delitem__
_iter = _class.__iter__
_repr = _class.__repr__

# Modules in which a mapping's own methods are written.
_BETWEEN = frozenset({"os", "_collections_abc", "collections.abc"})

_now: Watch | Reading | None = None


def install() -> None:
    """Puts our methods into the class, once; without a session they cost one comparison."""
    if _class.__getitem__ is _getitem:
        _class.__getitem__ = _our_getitem
        _class.__setitem__ = _our_setitem
        _class.__delitem__ = _our_delitem
        _class.__iter__ = _our_iter
        _class.__repr__ = _our_repr


def watching(watch: Watch | Reading | None) -> Watch | Reading | None:
    """Begins to watch, or ends it; returns what watched until now."""
    global _now
    before, _now = _now, watch
    return before


def as_here() -> dict[str, str]:
    """The environment as this machine has it; nothing of this counts as the program's reading."""
    return {os.fsdecode(name): os.fsdecode(value) for name, value in os.environ._data.items()}  # type: ignore[attr-defined]


def as_seen() -> dict[str, str]:
    """The environment as the program sees it; likewise."""
    return as_here() if _now is None else _now.seen_by_program(as_here())


def _our_getitem(self: Any, key: Any) -> Any:
    watch = _now
    if watch is None or key in watch.seen:
        return _getitem(self, key)
    return watch.get(self, key)


def _our_setitem(self: Any, key: Any, value: Any) -> None:
    watch = _now
    if watch is None:
        _setitem(self, key, value)
    else:
        watch.set(self, key, value)


def _our_delitem(self: Any, key: Any) -> None:
    watch = _now
    if watch is None:
        _delitem(self, key)
    else:
        watch.delete(self, key)


def _our_iter(self: Any) -> Iterator[Any]:
    watch = _now
    return _iter(self) if watch is None else watch.names(self)


def _our_repr(self: Any) -> str:
    if _now is None:
        return _repr(self)  # type: ignore[no-any-return]
    return f"environ({{{', '.join(f'{key!r}: {value!r}' for key, value in self.items())}}})"


def _name(key: Any) -> str | None:
    if isinstance(key, str):
        return key
    return os.fsdecode(key) if isinstance(key, bytes) else None


def _caller() -> FrameType | None:
    """The code that asks, past the methods of mappings."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if module == "posixpath" and frame.f_code.co_name == "expandvars":
            frame = frame.f_back  # it puts values into the program's own text
        elif module in _BETWEEN or module == __name__:
            frame = frame.f_back
        else:
            return frame
    return None


def _ours(frame: FrameType | None) -> bool:
    return frame is not None and str(frame.f_globals.get("__name__")).partition(".")[0] == "lockstep"


class Watch:
    """A session that records. `seen`: names whose first read is over, as text and as bytes."""

    def __init__(self, session: Any) -> None:
        self.seen: set[Any] = set()
        self._firsts = Firsts(session, ENVIRON)
        self._session = session
        self._set: set[str] = set()
        self._listed = False

    def goes_on(self, session: Any) -> None:
        """In a forked child: what its parent has read needs no reading again."""
        self._firsts = Firsts(session, ENVIRON)
        self._session = session

    def note(self, name: str, value: str | None) -> None:
        """The program was told this at its first read."""
        self.seen.update((name, os.fsencode(name)))
        if name.startswith(bound.OURS):
            return
        try:
            (value or "").encode()
            self._firsts.note(name, value)
        except UnicodeEncodeError:
            self._firsts.note(name, os.fsencode(value or ""))

    def get(self, environ: Any, key: Any) -> Any:
        name = _name(key)
        if name is None or current() is None or _ours(_caller()):
            return _getitem(environ, key)
        try:
            value = _getitem(environ, key)
        except KeyError:
            self.note(name, None)
            raise
        self.note(name, os.fsdecode(value))
        return value

    def set(self, environ: Any, key: Any, value: Any) -> None:
        _setitem(environ, key, value)
        self._changed(_name(key))

    def delete(self, environ: Any, key: Any) -> None:
        if key not in self.seen:
            self.get(environ, key)  # whether it is there to be deleted is a read
        _delitem(environ, key)
        self._changed(_name(key))

    def _changed(self, name: str | None) -> None:
        # From now on it is the program's own, if it had not been read before.
        if name is not None and current() is not None:
            self.seen.update((name, os.fsencode(name)))
            self._set.add(name)

    def seen_by_program(self, variables: dict[str, str]) -> dict[str, str]:
        return variables

    def names(self, environ: Any) -> Iterator[Any]:
        found = list(_iter(environ))
        if not self._listed and current() is not None and not _ours(_caller()):
            self._listed = True
            listed = (os.fsdecode(name) for name in found)
            self._firsts.note(NAMES, [name for name in listed if name not in self._set])
        return iter(found)


class Reading:
    """A session that replays: the values are in place, but for those of variables that belong to the machine.

    masked  name -> (recorded value, this machine's), where these are not the same
    names   all that there were, in order, where the program went through them: what else there is here stays
            for C code and children, and no Python code sees it
    """

    def __init__(
        self, session: Any, told: Mapping[str, Value], masked: dict[str, tuple[str | None, str | None]],
        names: list[str] | None,
    ) -> None:  # fmt: skip
        self._session = session
        self._firsts = Firsts(session, ENVIRON) if session.resumes else None  # what the tail of a fork asks first
        self._masked = masked
        self._view: dict[str, str | None] = {name: recorded for name, (recorded, _) in masked.items()}
        self._names = names
        self._new: set[str] = set()
        if names is not None:
            there = {os.fsdecode(name) for name in os.environ._data}  # type: ignore[attr-defined]
            self._new = {name for name in there - set(names) - told.keys() if not bound.is_bound(name)}
            # Their values were not looked at.
            self._view.update({name: "" for name in names if name not in there and name not in told})
        self._unrecorded: set[str] = set()
        plain = [name for name in told if name not in masked]
        self.seen: set[Any] = {*plain, *map(os.fsencode, plain)}

    def knows(self, name: str) -> bool:
        """Whether the program has been told this variable."""
        return name in self.seen or name in self._view

    def goes_on(
        self, session: Any, told: Mapping[str, Value], masked: dict[str, tuple[str | None, str | None]]
    ) -> None:  # fmt: skip
        """In a forked child: `told` and `masked` are what it was told beside."""
        self._session = session
        self._masked.update(masked)
        self._view.update({name: recorded for name, (recorded, _) in masked.items()})
        for name in told.keys() - masked.keys():
            self.seen.update((name, os.fsencode(name)))

    def get(self, environ: Any, key: Any) -> Any:
        name = _name(key)
        if name is None or current() is None:
            return _getitem(environ, key)
        caller = _caller()
        if name in self._new and not _ours(caller):
            raise KeyError(key)
        if name not in self._view:
            self.seen.update((name, os.fsencode(name)))
            if self._firsts is not None and not _ours(caller):
                return self._first(environ, name, key)
            if not _ours(caller) and not bound.is_bound(name):
                self._unrecorded.add(name)
                told = f"not recorded, so as they are here: {', '.join(sorted(self._unrecorded))}"
                self._session.differs["environment"] = told
            return _getitem(environ, key)
        if caller is None or not sites.users(caller.f_code.co_filename):
            return _getitem(environ, key)
        value = self._view[name]
        if value is None:
            raise KeyError(key)
        return os.fsencode(value) if isinstance(key, bytes) else value

    def _first(self, environ: Any, name: str, key: Any) -> Any:
        assert self._firsts is not None
        try:
            value = _getitem(environ, key)
        except KeyError:
            self._firsts.note(name, None)
            raise
        self._firsts.note(name, os.fsdecode(value))
        return value

    def set(self, environ: Any, key: Any, value: Any) -> None:
        name = _name(key)
        if name is None or name not in self._masked or not isinstance(value, (str, bytes)):
            _setitem(environ, key, value)
            if name is not None:
                self.seen.update((name, os.fsencode(name)))
                self._new.discard(name)
                self._view.pop(name, None)
            return
        text = os.fsdecode(value)
        here = self._here(name, text) or ""
        _setitem(environ, key, os.fsencode(here) if isinstance(value, bytes) else here)
        self._view[name] = text

    def delete(self, environ: Any, key: Any) -> None:
        name = _name(key)
        if name in self._new and current() is not None:
            raise KeyError(key)
        if name is None or name not in self._view:
            _delitem(environ, key)
            return
        if self._view[name] is None:
            raise KeyError(key)
        self._view[name] = None
        data = environ._data
        if environ.encodekey(key) in data:
            _delitem(environ, key)

    def names(self, environ: Any) -> Iterator[Any]:
        found = list(_iter(environ))
        caller = _caller()
        if self._names is None or current() is None or caller is None or _ours(caller):
            return iter(found)
        shown = [name for name in found if os.fsdecode(name) not in self._new]
        if not sites.users(caller.f_code.co_filename):
            return iter(shown)
        known = set(self._names)
        there = {os.fsdecode(name) for name in found}
        shown = [name for name in shown if os.fsdecode(name) in known or not bound.is_bound(os.fsdecode(name))]
        gone = [name for name in self._names if name not in there and self._view.get(name) is not None]
        shown += gone if environ is os.environ else map(os.fsencode, gone)
        place = {name: number for number, name in enumerate(self._names)}
        return iter(sorted(shown, key=lambda name: place.get(os.fsdecode(name), len(place))))

    def seen_by_program(self, variables: dict[str, str]) -> dict[str, str]:
        seen: dict[str, str | None] = {**variables, **self._view, **dict.fromkeys(self._new)}
        return {name: value for name, value in seen.items() if value is not None}

    def for_children(self, env: dict[Any, Any]) -> None:
        """Gives an environment that the program has made from its own what this machine has in place of it."""
        for name in self._masked:
            for key in (name, os.fsencode(name)):
                value = env.get(key)
                if not isinstance(value, (str, bytes)):
                    continue
                here = self._here(name, os.fsdecode(value))
                if here is None:
                    del env[key]
                else:
                    env[key] = os.fsencode(here) if isinstance(value, bytes) else here

    def _here(self, name: str, value: str) -> str | None:
        """What a value of a variable that belongs to the machine is on this one."""
        recorded, real = self._masked[name]
        if recorded is None or recorded not in value:
            return value
        return real if value == recorded else value.replace(recorded, real or "")
