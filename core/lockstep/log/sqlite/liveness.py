"""Whether a stream's writer lives: an OS lock on a file of its own, freed by the system at kill -9.

The files stand in `<store>.locks/`, never beside a descriptor of the store itself (see `connection`).
flock and not POSIX record locks: those die when the program opens and closes the same file elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import sys

from lockstep.log import untapped

CHECKPOINT = "checkpoint"

_REFUSED = 3  # times, half a millisecond apart, until a lock is believed to be another's
_PATIENCE = 2.0  # seconds, with those who look whether a lock is held: each has it for microseconds, if it may run


def folder(path: str) -> str:
    """Where the lock files of a store are."""
    return path + ".locks"


class Lock:
    """A held lock."""

    def __init__(self, name: str, descriptor: int) -> None:
        self._name = name
        self._descriptor = descriptor

    def release(self, *, remove: bool = True) -> None:
        """Frees the lock, and removes its file where it will not be needed again."""
        if self._descriptor < 0:
            return
        if remove:
            with contextlib.suppress(OSError):
                os.unlink(self._name)
        self.drop()

    def drop(self) -> None:
        """Closes this process's descriptor: in a forked child the parent goes on holding the lock."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def hold(path: str, name: str) -> Lock | None:
    """Takes a lock without waiting; None where another holds it. Raises OSError."""
    os.makedirs(folder(path), exist_ok=True)
    file = os.path.join(folder(path), name)
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
    if not _try(descriptor, shared=False):
        os.close(descriptor)
        return None
    return Lock(file, descriptor)


def take(path: str, name: str) -> Lock | None:
    """As `hold`, of a lock that one after the other may have: its file goes away in between, and whoever only asks
    whether it is held is not in the way. Raises OSError."""
    os.makedirs(folder(path), exist_ok=True)
    file = os.path.join(folder(path), name)
    deadline = untapped.monotonic() + _PATIENCE
    refused = 0
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        if not _try(descriptor, shared=False):
            held = not _try(descriptor, shared=True)
            os.close(descriptor)
            refused += held
            # Whoever takes the file of a lock away holds it meanwhile, which is over at once.
            if refused >= _REFUSED or untapped.monotonic() > deadline:
                return None
        elif _is_file(descriptor, file):
            return Lock(file, descriptor)
        else:  # whoever had it has taken the file away since it was opened here
            os.close(descriptor)
        untapped.sleep(0.0005)


def _is_file(descriptor: int, file: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(file))
    except FileNotFoundError:
        return False


def is_held(path: str, name: str) -> bool:
    """Whether a living process (this one included) holds the lock."""
    try:
        descriptor = os.open(os.path.join(folder(path), name), os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return False
    try:
        # Shared, so that two that ask at once do not take each other for the writer.
        return not _try(descriptor, shared=True)
    finally:
        os.close(descriptor)


def sweep(path: str, keep: set[str]) -> int:
    """Removes the files of writers that died, and returns how many there were. Only inside a write transaction:
    nobody makes new ones then."""
    swept = 0
    try:
        names = os.listdir(folder(path))
    except OSError:
        return swept
    for name in names:
        if name not in keep and name != CHECKPOINT:
            with contextlib.suppress(OSError):
                # Held while it is taken away: whoever takes it at this moment sees that, and makes a new file.
                lock = hold(path, name)
                if lock is not None:
                    lock.release(remove=True)
                    swept += 1
    return swept


if sys.platform == "win32":
    import msvcrt

    def _try(descriptor: int, *, shared: bool) -> bool:
        # Windows has no shared byte locks here: two that ask at once may see a living writer.
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True
else:
    import fcntl

    def _try(descriptor: int, *, shared: bool) -> bool:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
