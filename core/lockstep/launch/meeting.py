"""The private directory in which a supervisor and the processes of its command meet.

    hello       one line a Python process that loaded us: "pid state executable"
    claim       made by the one process that is recorded or replayed (O_EXCL): its pid
    run         the name that its run got in the store
    report      its `Report`, msgspec JSON, whole or absent
    superseded  the run of an image that gave way to the next one, see `bootstrap`
    trouble     why it could not be recorded or replayed, as "code message"
    command     the command as given, NUL between its words

Imported in every process of the command before the program starts: needs nothing but `os`.
"""

from __future__ import annotations

import os

# What a process said of itself in `hello`.
RECORDED = "recorded"  # holds the claim
CHILD = "child"  # came after it
SERVER = "server"  # one of multiprocessing's own processes: runs none of the program's code
EARLIER = "earlier"  # runs before the image that is recorded, see `bootstrap`
FOREIGN = "foreign"  # its interpreter cannot import lockstep

# What a session's notes call a Python process that was started but not recorded.
CHILD_PROCESS = "child process"

_CLOEXEC = getattr(os, "O_CLOEXEC", 0)  # Windows inherits nothing unless asked to


def make() -> str:
    """Makes the directory, for this user only."""
    parent = os.environ.get("TMPDIR") or os.environ.get("TEMP") or "/tmp"
    path = os.path.join(parent, f"lockstep-{os.getpid()}-{os.urandom(6).hex()}")
    os.mkdir(path, 0o700)
    return path


def remove(path: str) -> None:
    """Removes the directory and what is in it; a process that still writes there keeps its files open."""
    try:
        for name in os.listdir(path):
            os.unlink(os.path.join(path, name))
        os.rmdir(path)
    except OSError:
        return  # a late child may be writing: an orphaned directory harms nobody


def hello(path: str, state: str, executable: str) -> None:
    """Adds this process's line. One small write in append mode: whole lines also from several processes."""
    line = f"{os.getpid()} {state} {executable}\n".encode("utf-8", "surrogateescape")
    try:
        fd = os.open(os.path.join(path, "hello"), os.O_WRONLY | os.O_APPEND | os.O_CREAT | _CLOEXEC, 0o600)
    except OSError:
        return  # the supervisor has ended and taken the directory with it: nobody is left to tell
    try:
        os.write(fd, line)
    finally:
        os.close(fd)


def heard(path: str) -> list[tuple[int, str, str]]:
    """All lines so far, as (pid, state, executable)."""
    found = []
    for line in read(path, "hello").decode("utf-8", "surrogateescape").splitlines():
        pid, state, executable = line.split(" ", 2)
        found.append((int(pid), state, executable))
    return found


def claim(path: str) -> bool:
    """Whether this process is the first of the command, and with that the one to record or replay."""
    try:
        fd = os.open(os.path.join(path, "claim"), os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOEXEC, 0o600)
    except OSError:
        return False  # taken, or the supervisor and its directory are gone
    try:
        os.write(fd, str(os.getpid()).encode())
    finally:
        os.close(fd)
    return True


def release(path: str) -> None:
    """Gives the claim back: this process becomes another program before it has done anything."""
    os.unlink(os.path.join(path, "claim"))


def put(path: str, name: str, data: bytes) -> None:
    """Writes a file that a reader sees whole or not at all."""
    part = os.path.join(path, f"{name}.{os.getpid()}")
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _CLOEXEC, 0o600)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(fd, view) :]
    finally:
        os.close(fd)
    os.replace(part, os.path.join(path, name))


def read(path: str, name: str) -> bytes:
    """The file's content, empty where nobody wrote it."""
    try:
        fd = os.open(os.path.join(path, name), os.O_RDONLY | _CLOEXEC)
    except FileNotFoundError:
        return b""
    try:
        pieces = []
        while piece := os.read(fd, 65536):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(fd)


def words(command: bytes) -> list[str | bytes]:
    """The words of `command`; one that is not UTF-8 stays bytes, so that it can be stored and run again."""
    found: list[str | bytes] = []
    for word in command.split(b"\0"):
        try:
            found.append(word.decode())
        except UnicodeDecodeError:
            found.append(word)
    return found
