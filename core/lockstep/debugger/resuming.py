"""What a bisect was asked, kept beside the store while it lasts, so that one that was interrupted can go on.

    <store>.bisects/<time>-<process>.json       directory 0700, file 0600

Probes need none of it: they are branches, found by what they are. A note is only so that nobody has to say again what
he asked for. It is locked while its bisect lives, and removed when that has its answer.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator

import msgspec

from lockstep.errors import AddressError, Code

SUFFIX = ".bisects"


class Asked(msgspec.Struct, frozen=True):
    """A bisect as it was asked for on the command line.

    run        its address
    directory  where
    ignored    of one that makes all probes again: the branches that there were before it
    token      likewise: what tells it from others, "" for one that makes none again
    """

    run: str
    directory: str
    command: tuple[str, ...] = ()
    bad: str = ""
    good: str = ""
    live: tuple[str, ...] = ()
    tail: str = ""
    target: str = ""
    ignored: tuple[str, ...] | None = None
    confidence: float | None = None
    max_probes: int | None = None
    shrink: bool = False
    workers: str = ""
    trust: bool = False
    isolate: bool = False
    jobs: int = 1
    token: str = ""


@contextlib.contextmanager
def noted(store: str, asked: Asked) -> Iterator[None]:
    """Keeps a note while the block runs, and after it where that did not come to its end. An older note of the same
    question is not needed any more."""
    folder = store + SUFFIX
    os.makedirs(folder, mode=0o700, exist_ok=True)
    place = os.path.join(folder, f"{time.time_ns():020d}-{os.getpid()}.json")
    file = os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        _lock(file)
        os.write(file, msgspec.json.encode(asked))
        for other, theirs in _interrupted(folder):
            if other != place and theirs == asked:
                _remove(other)
        yield
        _remove(place)
    finally:
        os.close(file)
        with contextlib.suppress(OSError):
            os.rmdir(folder)  # where nothing is left in it


def newest(store: str, run: str) -> Asked:
    """What the newest interrupted bisect of a run was asked. Raises AddressError LS206 where there is none."""
    found = [asked for _, asked in _interrupted(store + SUFFIX) if asked.run == run]
    if not found:
        raise AddressError(
            Code.NO_ADDRESS,
            f"no bisect of {run} was interrupted, so there is none to go on with: lockstep bisect {run}",
        )
    return found[-1]


def _interrupted(folder: str) -> list[tuple[str, Asked]]:
    """The notes of bisects that have ended without an answer, the oldest first."""
    try:
        names = sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    found: list[tuple[str, Asked]] = []
    for name in names:
        place = os.path.join(folder, name)
        with contextlib.suppress(FileNotFoundError, msgspec.DecodeError), open(place, "rb") as file:
            if _lock(file.fileno()):
                # One that was cut off while it was written is no JSON: nothing had begun.
                found.append((place, msgspec.json.decode(file.read(), type=Asked)))
    return found


def _lock(file: int) -> bool:
    """Takes the lock of a note; it is free where its bisect has ended, in whatever way."""
    try:
        import fcntl
    except ImportError:  # not on Windows: there a bisect that still runs is taken for an interrupted one
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove(place: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(place)
