"""The private directory in which a supervisor and the processes of its command meet.

    hello       one line a Python process that loaded us: pid, state, lane and executable, tabs between
    claim-…     one a lane, made by the process that is recorded or replayed as that lane (O_EXCL): its pid
    run         the name that the run got in the store
    report-…    one a followed process: its `Report`, msgspec JSON, whole or absent
    wanted-…    one a process that another waits for before it kills it
    board       memory that the followed processes share, see `session.board`
    superseded  the run of an image that gave way to the next one, see `launch.followed`
    trouble     why the first process could not be recorded or replayed, as "code message"
    plan        of a fork, see `session.tail`
    command     the command as given, NUL between its words

Imported in every process of the command before the program starts: needs nothing but `os`.
"""

from __future__ import annotations

import os
import zlib

# What a process said of itself in `hello`.
RECORDED = "recorded"  # holds the claim of its lane, or was forked as it
CHILD = "child"  # could not be followed
WITHIN = "within"  # belongs to an effect of the process that started it
SERVER = "server"  # one of multiprocessing's own processes: runs none of the program's code
LEFT = "left"  # becomes another program, whose path comes in place of the executable
EARLIER = "earlier"  # runs before the image that is recorded, see `launch.followed`
FOREIGN = "foreign"  # its interpreter cannot import lockstep

FIRST = "main"  # the lane of the command's first process

# What a session's notes call a Python process that was started but not recorded.
CHILD_PROCESS = "child process"

_urandom = os.urandom  # before the taps
_CLOEXEC = getattr(os, "O_CLOEXEC", 0)  # Windows inherits nothing unless asked to


def make() -> str:
    """Makes the directory, for this user only."""
    parent = os.environ.get("TMPDIR") or os.environ.get("TEMP") or "/tmp"
    path = os.path.join(parent, f"lockstep-{os.getpid()}-{_urandom(6).hex()}")
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


def hello(path: str, state: str, lane: str, executable: str) -> None:
    """Adds this process's line. One small write in append mode: whole lines also from several processes."""
    line = f"{os.getpid()}\t{state}\t{lane}\t{executable}\n".encode("utf-8", "surrogateescape")
    try:
        fd = os.open(os.path.join(path, "hello"), os.O_WRONLY | os.O_APPEND | os.O_CREAT | _CLOEXEC, 0o600)
    except OSError:
        return  # the supervisor has ended and taken the directory with it: nobody is left to tell
    try:
        os.write(fd, line)
    finally:
        os.close(fd)


class Heard:
    """What one process said: its pid, state, lane and executable."""

    __slots__ = ("executable", "lane", "pid", "state")

    def __init__(self, line: str) -> None:
        pid, self.state, self.lane, self.executable = line.split("\t", 3)
        self.pid = int(pid)


def heard(path: str) -> list[Heard]:
    """What all said so far, in that order."""
    return [Heard(line) for line in read(path, "hello").decode("utf-8", "surrogateescape").splitlines()]


def claim(path: str, lane: str) -> bool | None:
    """Whether this process is the first of its lane, and with that the one to follow; None where nobody can
    be any more: the supervisor has ended and taken the directory with it."""
    try:
        fd = os.open(_of("claim", path, lane), os.O_WRONLY | os.O_CREAT | os.O_EXCL | _CLOEXEC, 0o600)
    except FileExistsError:
        return False
    except OSError:
        return None
    try:
        os.write(fd, str(os.getpid()).encode())
    finally:
        os.close(fd)
    return True


def release(path: str, lane: str) -> None:
    """Gives the claim back: this process becomes another program before it has done anything."""
    os.unlink(_of("claim", path, lane))


def report(path: str, lane: str, data: bytes) -> None:
    """Leaves the report of the process that runs as `lane`."""
    put(path, os.path.basename(_of("report", path, lane)), data)


def reported(path: str, lane: str) -> bytes:
    """The report of a lane's process, empty as long as there is none."""
    return read(path, os.path.basename(_of("report", path, lane)))


def reports(path: str) -> list[bytes]:
    """All reports."""
    names = sorted(os.listdir(path)) if os.path.isdir(path) else []
    return [read(path, name) for name in names if name.startswith("report-") and "." not in name]


def want(path: str, lane: str) -> None:
    """Says that somebody waits for the process of this lane to come to the cut of its recording."""
    put(path, os.path.basename(_of("wanted", path, lane)), b"")


def wanted(path: str, lane: str) -> bool:
    return os.path.exists(_of("wanted", path, lane))


def _of(what: str, path: str, lane: str) -> str:
    # Lane names are as long as the program likes, and hold what no file name may.
    raw = lane.encode("utf-8", "surrogateescape")
    return os.path.join(path, f"{what}-{zlib.crc32(raw):08x}{zlib.adler32(raw):08x}{len(raw):x}")


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
