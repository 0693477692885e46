"""The environment: which variables the program reads, and what it finds in them.

A variable's value at its first read, before the program has set it, is recorded. A replay puts those values
into the real environment before the program begins, and takes out what was absent: reading, setting and
reading again, copies, `|`, C code and children then come right by themselves. Variables that the recorded
program never read stay the machine's own.

What says where things are on a machine (`PATH`, `HOME`, …, see `bound`) is not put back: code that finds its
files by it would break on another machine. The program's own code is told the recorded value of such a
variable; libraries, C code and children get the real one.

Not seen: `os.environ._data`, C code's own reads of variables that no Python code reads, `os.reload_environ`.
"""

from __future__ import annotations

import os
from typing import Any

from lockstep.launch import inherit
from lockstep.log.model import Value
from lockstep.session import firsts
from lockstep.taps.environ import bound
from lockstep.taps.environ.watch import NAMES, Reading, Watch, install, watching

__all__ = ["install", "start", "stop"]

# What C code asks before a line of Python has run, and what people set to change what programs print.
_ALWAYS = (
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_COLLATE",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_MONETARY",
    "LC_NUMERIC",
    "LC_TIME",
)

_before: dict[str, str | None] = {}  # replay: what was in the place of what was put back


def start(session: Any, facts: Value = None) -> Value:
    """Recording: notes what is read from now on. Replay: puts back what was read, first."""
    install()
    _before.clear()
    if session.recording:
        watch = Watch(session)
        for name in _ALWAYS:
            watch.note(name, os.environ.get(name))
        watching(watch)
        return None
    told = dict(firsts.recorded(session, firsts.ENVIRON))
    names: Any = told.pop(NAMES, None)
    names = [str(name) for name in names] if isinstance(names, list) else None
    masked = _restore(told)
    if names is not None:
        _order(names)
    reading = Reading(session, told, masked, names)
    inherit.translations.append(reading.for_children)
    watching(reading)
    return None


def _restore(told: dict[str, Value]) -> dict[str, tuple[str | None, str | None]]:
    """Puts values where they were; returns what is only told to the program."""
    masked: dict[str, tuple[str | None, str | None]] = {}
    for name, value in told.items():
        was, text = os.environ.get(name), _text(value)
        if was == text:
            continue
        if bound.is_bound(name):
            masked[name] = (text, was)
        else:
            _put(name, text)
    return masked


def forked(session: Any) -> None:
    """The child has its parent's environment, and what it reads first itself is in its own record."""
    watch = watching(None)
    if isinstance(watch, Watch):
        watch.goes_on(session)
    elif watch is not None:
        told = {
            name: value for name, value in firsts.recorded(session, firsts.ENVIRON).items() if not watch.knows(name)
        }
        told.pop(NAMES, None)
        watch.goes_on(session, told, _restore(told))
    watching(watch)


def stop(session: Any) -> None:
    """The environment is the machine's again, but for what the program itself has set beside."""
    watch = watching(None)
    if isinstance(watch, Reading):
        inherit.translations[:] = [each for each in inherit.translations if each != watch.for_children]
    while _before:
        _set(*_before.popitem())


def _put(name: str, value: str | None) -> None:
    _before.setdefault(name, os.environ.get(name))
    _set(name, value)


def _set(name: str, value: str | None) -> None:
    if value is not None:
        os.environ[name] = value
    else:
        os.environ.pop(name, None)


def _text(value: Value) -> str | None:
    return os.fsdecode(value) if isinstance(value, (str, bytes)) else None


def _order(names: list[str]) -> None:
    """The program went through all names: they come in the order in which they came."""
    data: dict[Any, Any] = os.environ._data  # type: ignore[attr-defined]
    place = {os.environ.encodekey(name): number for number, name in enumerate(names)}
    ordered = sorted(data.items(), key=lambda item: place.get(item[0], len(place)))
    data.clear()
    data.update(ordered)
