"""Files of frameworks: which adapter makes a run of one, taking them into a store, and what is written of a run for its
framework."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from lockstep.errors import Code, StoreError

if TYPE_CHECKING:
    from lockstep.adapter.contract import Adapter
    from lockstep.log.store import Store

_HEAD = 4096
ENDING = ".json"  # of the files that are looked for in a folder


class Taken(msgspec.Struct, frozen=True):
    """A file that has become a run, by the adapter of that name; `events` are those of the run now."""

    file: str
    run: str
    adapter: str
    events: int


def reader_of(file: str) -> Adapter | None:
    """The adapter that makes a run of a file, told by its beginning; None where there is none. Raises StoreError LS201
    where it cannot be opened."""
    from lockstep.adapter import registry

    head = _read(file, _HEAD)
    return next((each for each in registry.installed() if each.reads is not None and each.reads(head)), None)


def found(places: Sequence[str]) -> list[str]:
    """The files that are meant: those that are named, and of folders all that an adapter reads, in order. Raises
    StoreError LS201 where a folder has none."""
    named: list[str] = []
    for place in places:
        if not os.path.isdir(place):
            named.append(place)
            continue
        inside = [file for file in _inside(place) if reader_of(file) is not None]
        if not inside:
            raise StoreError(Code.NOT_A_STORE, f"no file in {place} is one that an adapter makes a run of")
        named += inside
    return named


def take(store: Store, files: Sequence[str], run: str = "") -> list[Taken]:
    """Makes runs of files, those of one adapter in its order: they may belong together. Raises StoreError; what was
    taken by then stays."""
    for file in files:
        if os.path.exists(file) and os.path.samefile(file, store.path):
            # Closing any descriptor of an open database drops its locks.
            raise StoreError(Code.NOT_A_STORE, f"{file} is the store itself")
    taken = [_take(store, file, run) for file in sorted(files, key=_order)]
    return sorted(taken, key=lambda one: files.index(one.file))


def _order(file: str) -> tuple[str, str]:
    adapter = reader_of(file)
    if adapter is None or adapter.order is None:
        return "", ""
    return adapter.name, adapter.order(_read(file, _HEAD))


def _take(store: Store, file: str, run: str) -> Taken:
    adapter = reader_of(file)
    if adapter is None or adapter.imports is None:
        raise StoreError(
            Code.NOT_A_STORE,
            f"neither a tape nor a file that an installed adapter makes a run of: {file}. "
            "lockstep adapters lists those that are installed",
        )
    try:
        name = adapter.imports(store, _read(file), run)
    except StoreError as error:
        if error.code in (Code.BAD_FILE, Code.UNSUPPORTED, Code.DAMAGED):
            raise StoreError(error.code, f"{file}: {error.message}") from error
        raise
    events = sum(stream.events for stream in store.run(name).streams)
    return Taken(file, name, adapter.name, events)


class Given(msgspec.Struct, frozen=True):
    """A file that was written of a framework's own run, or of a step of it, in a format of its adapter."""

    run: str
    file: str
    format: str
    size: int


def give(store: str, address: str, file: str, format_: str, *, force: bool = False) -> Given:
    """Writes a run, a branch or a step as its framework's adapter has it. Raises StoreError LS215 where it has no such
    format, AddressError, and AdapterError LS408 where the adapter is not installed."""
    from lockstep.adapter import registry
    from lockstep.log import exchange, meta
    from lockstep.log.store import open_store
    from lockstep.log.timeline import resolve

    with open_store(store) as opened:
        place = resolve(opened, address)
        keeper = meta.keeper(place.timeline.reader.meta)
        exports = registry.get(keeper).exports if keeper else {}
        if format_ not in exports:
            known = ", ".join((*exchange.FORMATS, *exports))
            raise StoreError(Code.NO_FORMAT, f"{format_!r} is no format that {address} can be written in: {known}")
        content = exports[format_](place)
    return Given(str(place.address), file, format_, exchange.write(content, file, force=force))


def _read(file: str, most: int = -1) -> bytes:
    try:
        if not stat.S_ISREG(os.stat(file).st_mode):  # of a pipe the beginning could be had once only
            raise StoreError(Code.NOT_A_STORE, f"not a file: {file}")
        with open(file, "rb") as opened:
            return opened.read(most)
    except OSError as error:
        raise StoreError(Code.NOT_A_STORE, f"cannot read {file}: {error.strerror or error}") from error


def _inside(folder: str) -> Iterator[str]:
    for place, folders, names in os.walk(folder):
        folders.sort()
        yield from (os.path.join(place, name) for name in sorted(names) if name.endswith(ENDING))
