"""What the run does to files other than by opening them: it happens again in a replay, with the recorded result.

A replay often runs where its recording has been: what was made is there already, what was moved or removed
is gone. Where the recorded call went well and what it was to bring about is so, it has gone well. Where the
recorded call failed, it fails, and nothing is done.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable
from typing import Any

from lockstep.taps.files import area as files
from lockstep.taps.files import opening
from lockstep.taps.files.area import CHANGE, OWN, Area, asked, of, raise_recorded
from lockstep.taps.patches import Patches, stand_in

_exists = os.path.lexists
_real_lstat = os.lstat


def install(patches: Patches) -> dict[Any, Any]:
    """Patches; returns which original each stand-in stands for."""
    made: dict[Any, Any] = {}
    for name, done in _DONE.items():
        real = getattr(os, name)
        made[real] = stand_in(_one(real, done), real, "os")
    for name in ("rename", "replace"):
        real = getattr(os, name)
        made[real] = stand_in(_two(real), real, "os")
    for real in (os.truncate, os.link, os.symlink):
        made[real] = stand_in(_makes(real), real, "os")
    for name in ("chdir", "fchdir"):
        real = getattr(os, name, None)
        if real is not None:
            made[real] = stand_in(_moves(real), real, "os")
    for real, ours in made.items():
        patches.set(os, real.__name__, ours)
    return made


def _one(real: Callable[..., Any], done: Callable[[Any], bool]) -> Callable[..., Any]:
    def change(_: object, path: Any, *args: Any, dir_fd: int | None = None, **options: Any) -> Any:
        found = asked(path) if files.now is not None and dir_fd is None else None
        if found is None:
            if dir_fd is not None:
                options["dir_fd"] = dir_fd
            return real(path, *args, **options)
        area, lane, name = found
        tried = of(lane, CHANGE)
        place = f"{real.__name__} {name}"
        number = tried.next(place)
        recorded = None if area.recording else tried.served(place, number)
        if isinstance(recorded, dict) and recorded:
            if real is _mkdir and recorded["error"] == errno.EEXIST and not _exists(path):
                real(path, *args, **options)  # it was there, and is to be
            raise_recorded(recorded, path)
        try:
            real(path, *args, **options)
        except OSError as error:
            if area.recording:
                tried.found(place, number, ("error", error.errno), files.failed(error))
            if area.recording or not done(path) or _of_tempfile():
                raise
        else:
            if area.recording:
                tried.succeeded(place, number)
        if done is not _never:
            area.changed[name] = OWN
        return None

    return change


def _two(real: Callable[..., Any]) -> Callable[..., Any]:
    def change(_: object, src: Any, dst: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> Any:
        plain = files.now is not None and src_dir_fd is None and dst_dir_fd is None
        found = asked(src) if plain else None
        target = asked(dst) if plain else None
        if found is None or target is None:
            real(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
            for one in (found, target):
                if one is not None:
                    one[0].changed[one[2]] = OWN
            return
        area, lane, name = found
        tried = of(lane, CHANGE)
        place = f"{real.__name__} {name} {target[2]}"
        number = tried.next(place)
        if not area.recording:
            raise_recorded(tried.served(place, number), src, dst)
        try:
            real(src, dst)
        except OSError as error:
            if area.recording:
                tried.found(place, number, ("error", error.errno), files.failed(error))
            if area.recording or _exists(src) or not _moved_before(area, lane, name, dst):
                raise
        else:
            if area.recording:
                tried.succeeded(place, number)
        area.changed[name] = area.changed[target[2]] = OWN

    return change


def _moved_before(area: Area, lane: Any, name: str, dst: Any) -> bool:
    """Replay: the file is not there to be moved, since the recording moved it. What it held comes to its new place
    if the run had read it; else what is at that place now is taken for it."""
    data = opening.last_read(area, lane, name)
    if data is None:
        return _exists(dst)
    with opening.real_open(dst, "wb") as file:
        file.write(data)
    return True


def _makes(real: Callable[..., Any]) -> Callable[..., Any]:
    """For calls whose last path is of the run's own making from then on."""

    def change(_: object, *args: Any, **options: Any) -> Any:
        made = real(*args, **options)
        path = args[0] if real is _truncate else args[1] if len(args) > 1 else None
        found = asked(path) if files.now is not None and path is not None else None
        if found is not None:
            found[0].changed[found[2]] = OWN
        return made

    return change


def _moves(real: Callable[..., Any]) -> Callable[..., Any]:
    def change(_: object, path: Any) -> None:
        real(path)
        if files.now is not None:
            files.now.places.moved()

    return change


def _is_directory(path: Any) -> bool:
    try:
        return stat.S_ISDIR(_real_lstat(path).st_mode)
    except OSError:
        return False


def _never(path: Any) -> bool:
    return False


def _is_gone(path: Any) -> bool:
    return not _exists(path)


def _of_tempfile() -> bool:
    """It tries one name after the other, and a name that is taken is not its own."""
    frame = sys._getframe(2)
    return frame.f_globals.get("__name__") == "tempfile"


# Calls with one path, and when what they were to bring about is so already. The last two change no content:
# `Path.touch` makes a file only where it cannot set its time.
_DONE: dict[str, Callable[[Any], bool]] = {
    "mkdir": _is_directory, "remove": _is_gone, "unlink": _is_gone, "rmdir": _is_gone, "utime": _never, "chmod": _never,
}  # fmt: skip
_mkdir = os.mkdir
_truncate = os.truncate
