"""Export and import: a run as a file that can be sent to somebody, and such a file as a run of the store."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

import msgspec
import zstandard

from lockstep.errors import Code, StoreError
from lockstep.log import jsonl, seal
from lockstep.log.address import MAIN, called
from lockstep.log.model import RunState, Value
from lockstep.log.sqlite import stranger, tape
from lockstep.log.sqlite.store import SqliteStore
from lockstep.log.store import open_store
from lockstep.log.timeline import branch_of
from lockstep.log.verify import Trust, verify

TAPE, JSONL = "tape", "jsonl"
FORMATS = (TAPE, JSONL)
COMPRESSED = ".zst"
STDOUT = "-"

_LEVEL = 9  # a tape is mostly compressed already: little to do, and small ones gain half
_MAGIC = b"\x28\xb5\x2f\xfd"
# A compressed tape may grow this much: what is compressed twice does not shrink by more.
_RATIO = 200
_LEAST = 64 << 20
_WINDOW = 128 << 20
_PIECE = 1 << 20


class Exported(msgspec.Struct, frozen=True):
    """What was written. `open_end`: the run has no end, or had none yet. `branches`: those that are in it."""

    run: str
    file: str
    format: str
    size: int
    events: int
    open_end: bool
    branches: tuple[str, ...] = (MAIN,)


class Imported(msgspec.Struct, frozen=True):
    """One run that was taken over: its name here and in the file, and what is known of who wrote it."""

    run: str
    recorded_as: str
    events: int
    open_end: bool
    trust: Trust
    key: str
    command: tuple[str, ...]
    branches: tuple[str, ...] = (MAIN,)


def export(
    store: str,
    run: str,
    file: str,
    format_: str = "",
    *,
    force: bool = False,
) -> Exported:
    """Writes a run with its branches to a file, whole or not at all, while others may go on writing to the store. Of
    one branch (`RUN@BRANCH`), with what it shares, only lines are written.

    format_  `tape` or `jsonl`; "" goes by the file's name
    force    replaces a file that is there

    A name that ends in `.zst` is compressed; `-` is stdout, for jsonl only. Raises StoreError.
    """
    format_ = format_ or (JSONL if ".jsonl" in os.path.basename(file) or file == STDOUT else TAPE)
    with open_store(store) as opened:
        reader = branch_of(opened, run)
        info = reader.info
        if format_ == JSONL:
            with _out(file, force=force) as out:
                for line in jsonl.lines(reader):
                    out.write(line)
        elif reader.branch != MAIN:
            raise StoreError(
                Code.UNWRITABLE,
                f"a tape holds a whole run with all its branches: export {info.name}. To write {run} alone: "
                "--format jsonl",
            )
        elif file == STDOUT:
            raise StoreError(Code.UNWRITABLE, "a tape is a database, which cannot go to stdout: name a file")
        else:
            with _out(file, force=force) as out:
                _tape(store, info.name, out)
    size = os.path.getsize(file) if file != STDOUT else 0
    open_end = info.state in (RunState.GROWING, RunState.INTERRUPTED)
    counted = [info] if reader.branch != MAIN else list(info.branches)
    events = sum(stream.events for one in counted for stream in one.streams)
    names = (reader.branch,) if reader.branch != MAIN else tuple(one.name for one in info.branches)
    return Exported(called(info.name, reader.branch), file, format_, size, events, open_end, names)


def write(content: bytes, file: str, *, force: bool = False) -> int:
    """Writes a file whole or not at all, as `export` does; returns its size. Raises StoreError LS203."""
    with _out(file, force=force) as out:
        out.write(content)
    return os.path.getsize(file) if file != STDOUT else 0


def import_tape(store: str, file: str, origin: str = "") -> list[Imported]:
    """Takes the run (or runs) of a tape into a store, which may be new. Everything is checked before anything is
    added: what is not consistent, or not what the owner of the key here sealed, is refused with the place.

    origin  where the run came from, as is told of it; "": the file

    Raises StoreError.
    """
    key = seal.given()
    with uncompressed(file) as path:
        if not stranger.is_tape(path):
            raise StoreError(
                Code.NOT_A_STORE,
                f"not a tape: {file}. A store that is in use, or was not closed, is exported: "
                "lockstep export RUN --store STORE --output FILE",
            )
        with SqliteStore.open(path, create=False) as opened:
            runs = [opened.run(info.name) for info in opened.runs()]
            if not runs:
                raise StoreError(Code.NO_RUN, f"the tape holds no run: {file}")
            found = [verify(reader, key) for reader in runs]
            for checked in found:
                if checked.problems:
                    more = f" and {len(checked.problems) - 1} more" if len(checked.problems) > 1 else ""
                    raise StoreError(
                        Code.DAMAGED, f"nothing was imported, {file} is damaged: {checked.problems[0]}{more}"
                    )
            with open_store(store, create=True) as target:
                origin = origin or os.path.abspath(file).encode("utf-8", "backslashreplace").decode()
                if not isinstance(target, SqliteStore):
                    raise TypeError("runs are taken into files only")
                names = [tape.read(target, opened, reader.info, origin) for reader in runs]
            return [
                Imported(
                    name,
                    checked.run,
                    checked.events,
                    checked.open_end,
                    checked.trust,
                    checked.key,
                    _command(reader.meta),
                    tuple(one.name for one in reader.branches),
                )
                for name, checked, reader in zip(names, found, runs, strict=True)
            ]


def _command(meta: Value) -> tuple[str, ...]:
    command = meta.get("command") if isinstance(meta, dict) else None
    return tuple(str(word) for word in command) if isinstance(command, list) else ()


def _tape(store: str, run: str, out: BinaryIO) -> None:
    with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
        whole = os.path.join(folder, "tape")
        tape.write(store, run, whole)
        with open(whole, "rb") as made:
            shutil.copyfileobj(made, out, _PIECE)


@contextmanager
def _out(file: str, *, force: bool) -> Iterator[BinaryIO]:
    """A file to write, there under its name only when it is whole, and compressed if the name says so."""
    if file == STDOUT:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    if os.path.exists(file) and not force:
        raise StoreError(Code.UNWRITABLE, f"the file exists: {file}. To replace it: --force")
    part = f"{file}.{os.getpid()}.part"
    try:
        try:
            with open(part, "xb") as plain:
                if file.endswith(COMPRESSED):
                    squeezer = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)
                    with squeezer.stream_writer(plain, closefd=False) as squeezed:
                        yield squeezed
                else:
                    yield plain
            os.replace(part, file)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(part)
            raise
    except OSError as error:
        raise StoreError(Code.UNWRITABLE, f"cannot write {file}: {error.strerror or error}") from error


@contextmanager
def uncompressed(file: str) -> Iterator[str]:
    """The path of a tape's content: of a compressed one, that of a copy. Raises StoreError LS202, LS203."""
    if stranger.head(file)[:4] != _MAGIC:
        yield file
        return
    most = max(_LEAST, os.path.getsize(file) * _RATIO)
    with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
        path = os.path.join(folder, "tape")
        try:
            with open(file, "rb") as source, open(path, "xb") as out:
                reader = zstandard.ZstdDecompressor(max_window_size=_WINDOW).stream_reader(source)
                while piece := reader.read(_PIECE):
                    out.write(piece)
                    if out.tell() > most:
                        raise StoreError(Code.DAMAGED, f"no tape becomes so large when it is decompressed: {file}")
        except zstandard.ZstdError as error:
            raise StoreError(Code.DAMAGED, f"the file does not decompress ({error}): {file}") from error
        except OSError as error:
            raise StoreError(Code.UNWRITABLE, f"cannot decompress {file}: {error.strerror or error}") from error
        yield path
