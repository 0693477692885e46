"""The seams in module `os`: reads and writes of the pipes' descriptors, and `waitpid`.

asyncio, `communicate` and programs that wait for several pipes use these and not the file objects.
"""

from __future__ import annotations

import os
from typing import Any

from lockstep.errors import Code
from lockstep.session import current, exceptions, lanes
from lockstep.taps.host import pids
from lockstep.taps.patches import stand_in
from lockstep.taps.processes.pipes import Pipe, dry
from lockstep.taps.processes.process import Process

_read, _write, _waitpid = os.read, os.write, os.waitpid
_pidfd_open = getattr(os, "pidfd_open", None)

_pipes: dict[int, Pipe] = {}
_processes: dict[int, Process] = {}
_exits: dict[int, tuple[Process, os.stat_result]] = {}  # descriptors that tell of a process's exit

# Pipes, sockets and terminals of the program's own that processes write to, by device and inode.
_foreign: set[tuple[int, int]] = set()
_MASTER = os.makedev(5, 2)  # of every pseudo-terminal, on Linux

_STATE = "state"
NOTE = "process output"


def know(process: Process, pipes: list[Pipe]) -> None:
    """Takes the calls of `os` on this process and its pipes for the session's."""
    _processes[process.pid] = process
    for pipe in pipes:
        _pipes[pipe.fd] = pipe


def know_as(process: Process, recorded: int) -> None:
    """Replay: the program knows it by its recorded number."""
    _processes[recorded] = process
    pids.stands_for(recorded, process.pid)


def any_known() -> bool:
    """Whether there are pipes that may be asked for."""
    return bool(_pipes)


def forget() -> None:
    """Everything is the system's again."""
    _pipes.clear()
    _processes.clear()
    _exits.clear()
    _foreign.clear()


def know_foreign(fd: int) -> None:
    """A process writes to this descriptor of the program's own."""
    about = os.fstat(fd)
    _foreign.add((about.st_dev, about.st_ino))
    if os.isatty(fd):
        _foreign.add((0, _MASTER))


def _refuse_foreign(fd: int) -> None:
    """Nothing is recorded of what comes there, and in a replay nothing will come."""
    session: Any = current.session
    if session.recording or session.stopped:
        return
    about = os.fstat(fd)
    if (about.st_dev, about.st_ino) in _foreign or (0, about.st_rdev) in _foreign:
        session.diverge(
            Code.NOT_COVERED, "the program reads what a process wrote into a pipe or terminal of its own",
            kind="process", name="read",
        )  # fmt: skip


def pipe_of(fd: int) -> Any:
    """The pipe behind a descriptor, None if it is no known one."""
    pipe = _pipes.get(fd)
    if pipe is None or pipe.open():
        return pipe
    if current.session is pipe.process.session and pipe.process.on():
        _pipes.pop(fd, None)
    return None


def process_of(pid: int) -> Any:
    process = _processes.get(pid)
    return process if process is not None and process.on() else None


def exit_of(fd: int) -> Any:
    """The process of whose exit a descriptor tells, None if of none."""
    found = _exits.get(fd)
    if found is None:
        return None
    process, about = found
    try:
        now = os.fstat(fd)
    except OSError:
        now = None
    if now is None or (now.st_dev, now.st_ino) != (about.st_dev, about.st_ino):
        del _exits[fd]
        return None
    return process if process.on() else None


def read(_: object, fd: int, length: int, /) -> Any:
    pipe = pipe_of(fd) if _pipes and current.session is not None else None
    if pipe is None:
        if _foreign and current.session is not None:
            _refuse_foreign(fd)
        return _read(fd, length)
    if pipe.process.live:
        return pipe.read(lambda: _read(fd, length))
    return dry(pipe.read(length))


def write(_: object, fd: int, data: Any, /) -> Any:
    pipe = pipe_of(fd) if _pipes and current.session is not None else None
    if pipe is None:
        return _write(fd, data)
    if pipe.process.live:
        return pipe.write(lambda: _write(fd, data), data)
    return dry(pipe.write(data))


def waitpid(_: object, pid: int, options: int, /) -> Any:
    process = process_of(pid) if _processes and current.session is not None else None
    if process is None:
        return _waitpid(pid, options)
    number = process.number(_STATE)
    if process.live:
        try:
            got, status = learn(process, options)
        except BaseException as error:
            # Its status was taken already, by another way (asyncio before 3.13 does that to itself), or Ctrl-C.
            process.cause(_STATE, number, exceptions.encode(error))
            raise
        if got == 0 or not over(status):
            process.cause(_STATE, number, [got, status])
        return got, status
    found, body = process.cause(_STATE, number)
    if isinstance(body, dict):
        raise exceptions.revive(body, process.call)
    if found:
        got, status = body
        return pid if got else 0, status
    return pid, wait_status(process.ended())


def learn(process: Any, options: int) -> tuple[int, int]:
    """Recording: asks the system how a process is; whoever is told that it is over is the first to know."""
    got, status = _waitpid(process.pid, options)
    if got == process.pid and over(status):
        process.ended(status)
    return got, status


def over(status: int) -> bool:
    return os.WIFEXITED(status) or os.WIFSIGNALED(status)


def wait_status(status: int) -> int:
    """An exit status as `waitpid` has it."""
    return status << 8 if status >= 0 else -status


def pidfd_open(_: object, pid: int, flags: int = 0) -> int:
    fd: int = _pidfd_open(pid, flags)  # type: ignore[misc]
    process = process_of(pid)
    if process is not None:
        _exits[fd] = process, os.fstat(fd)
    return fd


def elsewhere(fd: Any, way: str) -> None:
    """A descriptor goes another way, on which nothing of what passes is seen: a process's pipe is named."""
    session = current.session
    if not _pipes or session is None or type(fd) is not int or lanes.inside() is not None:
        return
    pipe = pipe_of(fd)
    if pipe is not None:
        session.note(NOTE, f"{pipe.channel} of {pipe.process.call.name} is used by {way}")


def _noting(name: str, real: Any) -> Any:
    def call(_: object, *args: Any, **options: Any) -> Any:
        for fd in args[:2]:
            elsewhere(fd, f"os.{name}")
        return real(*args, **options)

    return stand_in(call, real, "posix")


def install() -> None:
    """Puts the seams in place."""
    module: Any = os
    for ours, theirs in ((read, _read), (write, _write), (waitpid, _waitpid)):
        setattr(module, theirs.__name__, stand_in(ours, theirs, "posix"))
    for name in ("dup", "dup2", "readv", "writev", "sendfile", "splice"):
        if hasattr(os, name):
            setattr(module, name, _noting(name, getattr(os, name)))
    if _pidfd_open is not None:
        module.pidfd_open = stand_in(pidfd_open, _pidfd_open, "posix")
