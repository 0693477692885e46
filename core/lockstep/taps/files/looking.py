"""Looks at files without opening them: `os.stat`, `os.lstat`, `os.listdir`, `os.scandir`, and all that stands on
these (`os.path`, `os.walk`, `glob`, `pathlib`).

They come from libraries at moments of their own as well (a cache that is warm, a traceback that is
printed), so one more or fewer is no difference: a look that was not recorded is a look at the real file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Self

from lockstep.session.lanes import ours
from lockstep.session.looks import ABSENT
from lockstep.taps.files import area as files
from lockstep.taps.files.area import LISTING, STAT, Area, asked, of, raise_recorded
from lockstep.taps.patches import Patches, stand_in

_real_stat = os.stat
_real_lstat = os.lstat
_real_listdir = os.listdir
_real_scandir = os.scandir

# Fields of a stat result that are stored, beside the first seven and the three times in nanoseconds.
_MORE = ("st_blksize", "st_blocks", "st_rdev")


def install(patches: Patches) -> dict[Any, Any]:
    """Patches; returns which original each stand-in stands for."""
    made: dict[Any, Any] = {}
    for function, real in (
        (_stat, _real_stat),
        (_lstat, _real_lstat),
        (_listdir, _real_listdir),
        (_scandir, _real_scandir),
    ):
        made[real] = stand_in(function, real, "os")
        patches.set(os, real.__name__, made[real])
    return made


def tap_glob(module: ModuleType) -> None:
    """`glob` may have been imported before us: it keeps functions of `os` in a class."""
    for kept in vars(module).values():
        for name, real in (("scandir", _real_scandir), ("lstat", _real_lstat)):
            if isinstance(kept, type) and getattr(vars(kept).get(name), "__func__", None) is real:
                setattr(kept, name, staticmethod(getattr(os, name)))


def leave_out_sources(module: ModuleType) -> None:
    """`linecache` reads sources for tracebacks: that is the interpreter's business."""
    for name in ("updatecache", "checkcache"):
        real = getattr(module, name)
        if not hasattr(real, "__wrapped__"):
            setattr(module, name, ours(real))


# -- stat


def _stat(_: object, path: Any, *, dir_fd: int | None = None, follow_symlinks: bool = True) -> os.stat_result:
    found = asked(path) if files.now is not None and dir_fd is None else None
    if found is None:
        return _real_stat(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
    area, lane, name = found
    return _looked(area, lane, name, path, _real_stat if follow_symlinks else _real_lstat, follow_symlinks)


def _lstat(_: object, path: Any, *, dir_fd: int | None = None) -> os.stat_result:
    found = asked(path) if files.now is not None and dir_fd is None else None
    if found is None:
        return _real_lstat(path, dir_fd=dir_fd)
    area, lane, name = found
    return _looked(area, lane, name, path, _real_lstat, False)


def _looked(
    area: Area, lane: Any, name: str, path: Any, real: Callable[[Any], os.stat_result], follow: bool
) -> os.stat_result:
    looks = of(lane, STAT)
    place = name if follow else f"link {name}"
    number = looks.next(place)
    if area.serves(looks, place, number):
        state = looks.served(place, number)
        if state is ABSENT or state == {"own": True}:
            return real(path)
        raise_recorded(state, path)
        return _appended(area, name, path, state) if "base" in state else _unpacked(state["stat"])
    try:
        found = real(path)
    except OSError as error:
        looks.found(place, number, ("error", error.errno), files.failed(error))
        raise
    try:
        base = area.changed.get(name)
        if base == files.OWN:
            looks.found(place, number, base, {"own": True})
        else:
            fields = _packed(found)
            state = {"stat": fields, "base": base} if type(base) is int else {"stat": fields}
            looks.found(place, number, (base, *fields), state)
    except Exception as error:
        area.session.fault(f"stat of {name}", error)
    return found


def _packed(found: os.stat_result) -> list[int]:
    times = (found.st_atime_ns, found.st_mtime_ns, found.st_ctime_ns)
    return [*found[:7], *times, *(getattr(found, name, 0) for name in _MORE)]


def _unpacked(fields: list[int]) -> os.stat_result:
    times = fields[7:10]
    more: dict[str, Any] = dict(zip(_MORE, fields[10:], strict=False))
    for name, ns in zip(("st_atime", "st_mtime", "st_ctime"), times, strict=True):
        seconds, rest = divmod(ns, 1_000_000_000)
        more[name] = seconds + 1e-9 * rest  # as CPython derives it
        more[f"{name}_ns"] = ns
    return os.stat_result((*fields[:7], *(ns // 1_000_000_000 for ns in times)), more)


def _appended(area: Area, name: str, path: Any, state: Any) -> os.stat_result:
    """A file that the run appends to: as long as the recorded one was, and what this run has appended."""
    before = area.changed.get(name)
    fields = list(state["stat"])
    if type(before) is int:
        try:
            fields[6] = state["base"] + _real_stat(path).st_size - before
        except OSError:
            fields[6] = state["base"]
    return _unpacked(fields)


# -- listings


def _listdir(_: object, path: Any = None) -> list[Any]:
    found = asked("." if path is None else path) if files.now is not None else None
    if found is None or isinstance(path, bytes):
        return _real_listdir(path)
    area, lane, name = found
    return [entry[0] for entry in _listing(area, lane, name, path, lambda: [(n, "") for n in _real_listdir(path)])]


def _scandir(_: object, path: Any = None) -> Any:
    found = asked("." if path is None else path) if files.now is not None else None
    if found is None or isinstance(path, bytes):
        return _real_scandir(path)
    area, lane, name = found
    there: dict[str, os.DirEntry[str]] = {}

    def scan() -> list[tuple[str, str]]:
        with _real_scandir(path) as entries:
            there.update((entry.name, entry) for entry in entries)
        return [(name, _sort(entry)) for name, entry in there.items()]

    listed = _listing(area, lane, f"{name}/", path, scan)
    directory = os.fspath(path) if path is not None else "."
    return _Scan([
        there[entry] if entry in there and _sort(there[entry]) == sort else Entry(directory, entry, sort)
        for entry, sort in listed
    ])  # fmt: skip


def _listing(
    area: Area, lane: Any, place: str, path: Any, real: Callable[[], list[tuple[str, str]]]
) -> list[tuple[str, str]]:
    """Names in a directory, each with its sort where the caller wants that, in the order in which they came."""
    looks = of(lane, LISTING)
    number = looks.next(place)
    below = place.rstrip("/")
    prefix = "" if below == "." else f"{below}/"
    if not area.serves(looks, place, number):
        try:
            entries = real()
        except OSError as error:
            looks.found(place, number, ("error", error.errno), files.failed(error))
            raise
        try:
            own = [name for name, _ in entries if f"{prefix}{name}" in area.changed]
            if looks.changed(place, (tuple(entries), tuple(own))):
                names, sorts = [name for name, _ in entries], "".join(sort for _, sort in entries)
                looks.store(place, number, {"names": names, "sorts": sorts, "own": own})  # type: ignore[dict-item]
        except Exception as error:
            area.session.fault(f"listing of {place}", error)
        return entries
    state = looks.served(place, number)
    if state is ABSENT:
        return real()
    raise_recorded(state, path)
    try:
        present = dict(real())
    except OSError:
        present = {}
    # Of the run's own files those are there that this run has made; all others are as they were.
    mine = {name: sort for name, sort in present.items() if f"{prefix}{name}" in area.changed}
    were = frozenset(state["own"])
    sorted_ = state["sorts"] or [""] * len(state["names"])
    listed = [
        (name, sort) for name, sort in zip(state["names"], sorted_, strict=True) if name not in were or name in mine
    ]
    known = {name for name, _ in listed}
    return listed + [(name, sort) for name, sort in mine.items() if name not in known]


def _sort(entry: os.DirEntry[str]) -> str:
    """d directory, f file, o something else; upper case for a link to one."""
    try:
        sort = "d" if entry.is_dir() else "f" if entry.is_file() else "o"
    except OSError:
        sort = "o"
    return sort.upper() if entry.is_symlink() else sort


class _Scan:
    """What `os.scandir` returns: an iterator that may be closed."""

    def __init__(self, entries: list[Any]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._entries)

    def close(self) -> None:
        self._entries = iter(())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Entry:
    """Replay: stands for an `os.DirEntry` of a file that is not there now, or is of another sort."""

    __slots__ = ("_sort", "name", "path")

    def __init__(self, directory: str, name: str, sort: str) -> None:
        self.name = name
        self.path = os.path.join(directory, name)
        self._sort = sort

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        return (self._sort.lower() if follow_symlinks else self._sort) == "d"

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return (self._sort.lower() if follow_symlinks else self._sort) == "f"

    def is_symlink(self) -> bool:
        return self._sort.isupper()

    def is_junction(self) -> bool:
        return False

    def inode(self) -> int:
        return self.stat(follow_symlinks=False).st_ino

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        return os.stat(self.path, follow_symlinks=follow_symlinks)

    def __fspath__(self) -> str:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"
