"""Runs and branches as bytes, carried to a store elsewhere and taken in there.

What is carried is a compressed tape. That of a recording holds one branch with those that it comes from; that of a
branch only what the branch wrote itself, for a store that has the rest. Everything is checked before it is taken in.
Secrets are not in it: they stand in the log as placeholders, and their values stay in the vault.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b

import msgspec
import zstandard

from lockstep.errors import Code, StoreError
from lockstep.log import exchange, seal
from lockstep.log.address import called
from lockstep.log.model import BranchInfo
from lockstep.log.sqlite import stranger, tape
from lockstep.log.sqlite.store import SqliteStore
from lockstep.log.store import RunReader, open_store
from lockstep.log.verify import verify_branch

_LEVEL = 3  # most of a tape is compressed already
_encode = msgspec.msgpack.Encoder().encode


def identity(reader: RunReader) -> str:
    """What a branch holds with all that it comes from, as a digest in hex: the same for the same events, in any
    store."""
    by_name = {one.name: one for one in reader.branches}
    path = [by_name[reader.branch]]
    while path[-1].parent:
        path.append(by_name[path[-1].parent])
    heads = [
        (one.name, stream.process, reader.stored.head(stream.id, stream.events))
        for one in path for stream in one.streams
    ]  # fmt: skip
    content = _encode((reader.info.name, *reader.header(), heads))
    return blake2b(content, digest_size=16, person=b"lockstep.carried").hexdigest()


def recording(reader: RunReader, store: str) -> bytes:
    """A branch of a store's run, with those that it comes from."""
    return _packed(store, reader.info.name, reader.branch)


def branch(store: str, run: str, name: str) -> bytes:
    """What a branch wrote itself. Raises StoreError LS205, AddressError LS206."""
    return _packed(store, run, name, alone=True)


def _packed(store: str, run: str, name: str, *, alone: bool = False) -> bytes:
    with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
        path = os.path.join(folder, "tape")
        tape.write(store, run, path, name, alone=alone)
        with open(path, "rb") as file:
            return zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True).compress(file.read())


def receive(store: str, content: bytes, origin: str) -> str:
    """Takes a recording into a store, which may be new; returns the run's name there. `origin`: where it came from, as
    is told of it. Raises StoreError."""
    with _unpacked(content) as path:
        return exchange.import_tape(store, path, origin)[0].run


def take(store: str, run: str, content: bytes) -> str:
    """Takes a branch into a run that has what it shares; returns its name, which it keeps. Raises StoreError: LS202
    for what is no such branch, or was changed, LS203 where there is a branch of that name."""
    with _unpacked(content) as path, open_store(store) as opened, SqliteStore.open(path, create=False) as carried:
        if not isinstance(opened, SqliteStore):
            raise TypeError("branches are taken into files only")
        found = _only(carried)
        taken = carried.run(carried.names()[0])
        problems = verify_branch(taken, found, opened.run(run, found.parent), seal.given())
        if problems:
            raise StoreError(Code.DAMAGED, f"{called(run, found.name)} was not taken in: {problems[0].what}")
        tape.read_branch(opened, carried, opened.run(run).info, found)
        return found.name


def _only(carried: SqliteStore) -> BranchInfo:
    """The branch that wrote something, of those of a tape."""
    runs = carried.runs()
    if len(runs) != 1:
        raise StoreError(Code.DAMAGED, "what was received holds no run, or more than one")
    wrote = [one for one in runs[0].branches if one.streams]
    if len(wrote) != 1 or not wrote[0].parent:
        raise StoreError(Code.DAMAGED, "what was received holds no branch, or more than one")
    return wrote[0]


@contextmanager
def _unpacked(content: bytes) -> Iterator[str]:
    """The path of a tape."""
    with tempfile.TemporaryDirectory(prefix="lockstep-") as folder:
        path = os.path.join(folder, "carried")
        with open(path, "wb") as file:
            file.write(content)
        with exchange.uncompressed(path) as plain:
            if not stranger.is_tape(plain):
                raise StoreError(Code.DAMAGED, "what was received is no tape")
            yield plain
