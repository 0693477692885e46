"""`open`, `io.open` and `os.open`: what a program reads of its files.

The file object stays the one that Python makes. While recording, the content is taken through its own
descriptor, so it is what the program gets even if somebody changes the file meanwhile. In a replay a file
that is what it was is opened as ever; else the recorded bytes stand in for it, by `opener`: name, type,
encoding and buffering are those of the call.
"""

from __future__ import annotations

import builtins
import io
import os
from collections.abc import Callable
from itertools import permutations
from typing import Any

from lockstep.errors import Code
from lockstep.session.lanes import Lane
from lockstep.taps.files import area as files
from lockstep.taps.files import contents
from lockstep.taps.files.area import CHANGE, FILE, OWN, UPDATED, Area, asked, of, raise_recorded
from lockstep.taps.host import pids
from lockstep.taps.patches import Patches, stand_in
from lockstep.taps.processes.descriptors import elsewhere

real_open = builtins.open
_real_os_open = os.open
_fstat = os.fstat
_close = os.close

_WRITES = os.O_WRONLY | os.O_RDWR
# A mode of `open` -> what it does, the rest of it left out.
_HOW = {
    "".join(order): letter + ("+" if "+" in extra else "")
    for letter in "rwax"
    for extra in ("", "b", "t", "+", "b+", "t+")
    for order in permutations(letter + extra)
}


def install(patches: Patches) -> dict[Any, Any]:
    """Patches; returns which original each stand-in stands for."""
    opening = stand_in(_open, real_open, "io")
    patches.set(builtins, "open", opening)
    patches.set(io, "open", opening)
    os_opening = stand_in(_os_open, _real_os_open, "os")
    patches.set(os, "open", os_opening)
    return {real_open: opening, _real_os_open: os_opening}


def _open(
    _: object, file: Any, mode: Any = "r", buffering: Any = -1, encoding: Any = None, errors: Any = None,
    newline: Any = None, closefd: Any = True, opener: Any = None,
) -> Any:  # fmt: skip
    found = asked(file) if files.now is not None and opener is None and type(mode) is str else None
    how = _HOW.get(mode, "") if found is not None else ""
    if found is None or not how:
        if type(file) is str and file.startswith("/proc/"):
            file = pids.in_proc(file)
        elif type(file) is int:
            elsewhere(file, "open")
        return real_open(file, mode, buffering, encoding, errors, newline, closefd, opener)

    def really(opener: Any = None) -> Any:
        return real_open(file, mode, buffering, encoding, errors, newline, closefd, opener)

    area, lane, name = found
    if how == "r":
        return _read(area, lane, name, file, really, _descriptor_of)
    return _write(area, lane, name, file, how, really)


def _os_open(_: object, path: Any, flags: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> Any:
    found = asked(path) if files.now is not None and dir_fd is None else None
    if found is None or type(flags) is not int:
        return _real_os_open(path, flags, mode, dir_fd=dir_fd)
    area, lane, name = found

    def really(opener: Any = None) -> int:
        return _real_os_open(path, flags, mode) if opener is None else opener(path, flags)

    if not flags & (_WRITES | os.O_CREAT | os.O_TRUNC):
        return _read(area, lane, name, path, really, int)
    if flags & os.O_TRUNC or flags & os.O_EXCL:
        how = "w"
    else:
        how = "a" if flags & os.O_APPEND else "r+" if flags & os.O_RDWR else "touch"
    return _write(area, lane, name, path, how, really)


def _descriptor_of(file: Any) -> int:
    return file.fileno()  # type: ignore[no-any-return]


# -- reading


def _read(area: Area, lane: Lane, name: str, path: Any, really: Callable[..., Any], fileno: Any) -> Any:
    seen = of(lane, FILE)
    number = seen.next(name)
    if area.serves(seen, name, number):
        return _served(area, lane, name, path, number, really)
    try:
        opened = really()
    except OSError as error:
        seen.found(name, number, ("error", error.errno), files.failed(error))
        raise
    try:
        record(area, lane, name, number, fileno(opened))
    except Exception as error:
        area.session.fault(f"file {name}", error)
    return opened


def record(area: Area, lane: Lane, name: str, number: int, fd: int) -> None:
    """Recording: stores what the lane's look `number` at a file has found, if it is something new."""
    seen = of(lane, FILE)
    if area.own(name):
        seen.found(name, number, OWN, {"own": True})
        return
    found = _fstat(fd)
    if not contents.regular(found):
        seen.found(name, number, "other", {"other": True})
        return
    digest, data = area.digest(found, fd)
    base = area.changed.get(name)
    if not seen.changed(name, (digest, base)):
        return
    state: dict[str, Any] = {}
    stored = area.stored.get(digest)
    if found.st_size > contents.LIMIT:
        state.update(size=found.st_size, hash=digest)
    elif stored is not None:
        state["as"] = stored
    else:
        state["content"] = contents.read(fd, found.st_size) if data is None else data
    if type(base) is int:
        state["base"] = base
    elif base == UPDATED:
        state["updated"] = True
    position = seen.store(name, number, state)
    if "content" in state:
        area.stored[digest] = position


def _served(area: Area, lane: Lane, name: str, path: Any, number: int, really: Callable[..., Any]) -> Any:
    seen = of(lane, FILE)
    event = seen.which(name, number)
    if event is None:
        files.unread(area, lane, name)
        return really()
    if area.is_as_recorded(event, path):
        return really()
    state = seen.served(name, number)
    raise_recorded(state, path)
    data = recorded_bytes(area, state)
    if data is None:
        if "hash" in state:
            _compare_big(area, name, path, state)
        return really()
    there = _bytes_there(area, event, path, data)
    if there == data:
        return really()
    base, before = state.get("base"), area.changed.get(name)
    if type(base) is int and type(before) is int and there is not None:
        # What it began with is the recording's; what was appended since is this run's own doing.
        data = data[:base] + there[before:]
    if state.get("updated"):
        area.session.note(FILE, f"{name} is changed in place by the run: it reads it as it was when recorded")
    return really(opener=lambda *_: contents.standing_in(data))


def _bytes_there(area: Area, event: int, path: Any, recorded: bytes) -> bytes | None:
    """What is in the file now; None where it is none."""
    fd = contents.present(path)
    if fd is None:
        return None
    try:
        found = _fstat(fd)
        if not contents.regular(found):
            return None
        there = contents.read(fd, found.st_size)
        if there == recorded and contents.settled(found):
            area.as_recorded[event] = contents.signature(found)
        return there
    finally:
        _close(fd)


def recorded_bytes(area: Area, state: Any) -> bytes | None:
    """The content that a look found; None where it is not stored: a file of the run's own, a big one, a pipe."""
    if "as" in state:
        seq = area.session.tape.positions.get(state["as"])
        state = area.session.secrets.reveal(area.session.tape.body(seq)) if seq is not None else {}
    data = state.get("content")
    return data if isinstance(data, bytes) else None


def last_read(area: Area, lane: Lane, name: str) -> bytes | None:
    """Replay: the content that the lane was last given of a file; None where it has read none."""
    state = of(lane, FILE).last(name)
    return recorded_bytes(area, state) if isinstance(state, dict) else None


def _compare_big(area: Area, name: str, path: Any, state: Any) -> None:
    fd = contents.present(path)
    same = False
    if fd is not None:
        try:
            size = _fstat(fd).st_size
            same = size == state["size"] and area.digest(_fstat(fd), fd)[0] == state["hash"]
        finally:
            _close(fd)
    if not same:
        was = "gone" if fd is None else "another one now"
        area.session.note(FILE, f"{name} ({state['size']} bytes) was too big to be stored, and is {was}")


# -- writing


def _write(area: Area, lane: Lane, name: str, path: Any, how: str, really: Callable[..., Any]) -> Any:
    tried = of(lane, CHANGE)
    place = f"write {name}"
    number = tried.next(place)
    size = _size(path) if how[0] not in "wx" else None
    reads = how in ("r+", "a+")
    seen = of(lane, FILE).next(name) if reads else 0
    if not area.recording:
        raise_recorded(tried.served(place, number), path)
        if reads:
            _compare_updated(area, lane, name, path, seen)
    try:
        opened = really()
    except OSError as error:
        if area.recording:
            tried.found(place, number, ("error", error.errno), files.failed(error))
        elif isinstance(error, FileExistsError) and how[0] == "x":
            _exists(area, lane, name)
        raise
    if area.recording:
        tried.succeeded(place, number)
        if reads:
            _record_updated(area, lane, name, seen, opened, size)
    _changed(area, name, how, size)
    return opened


def _record_updated(area: Area, lane: Lane, name: str, number: int, opened: Any, size: int | None) -> None:
    try:
        if size is None:
            of(lane, FILE).found(name, number, "new", {"new": True})
        else:
            record(area, lane, name, number, opened if type(opened) is int else opened.fileno())
    except Exception as error:
        area.session.fault(f"file {name}", error)


def _compare_updated(area: Area, lane: Lane, name: str, path: Any, number: int) -> None:
    """Replay: a file that is opened to be read and changed in place is the real one, so it must be what it was."""
    seen = of(lane, FILE)
    event = seen.which(name, number)
    if event is None:
        files.unread(area, lane, name)
        return
    state = seen.served(name, number)
    data = b"" if "new" in state else recorded_bytes(area, state)
    if data is not None and (_bytes_there(area, event, path, data) or b"") != data:
        area.session.note(FILE, f"{name} is opened to be changed in place, and is another one than when recorded")


def _exists(area: Area, lane: Lane, name: str) -> None:
    area.session.diverge(
        Code.ENVIRONMENT, f"{name} exists here, and did not when this was recorded: move it away", lane=lane,
        kind="read", name=FILE, path=name, expected="(no such file)", actual="a file",
    )  # fmt: skip


def _changed(area: Area, name: str, how: str, size: int | None) -> None:
    before = area.changed.get(name)
    if how[0] in "wx":
        area.changed[name] = OWN
    elif before is None:
        if how[0] == "a":
            area.changed[name] = size or 0
        else:
            area.changed[name] = OWN if size is None else UPDATED


def _size(path: Any) -> int | None:
    try:
        return files.real_stat(path).st_size
    except (OSError, ValueError):
        return None
