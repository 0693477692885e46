"""One start of an interpreter for many forks of a run: a process that has loaded all that a fork needs, and not a line
of the program, and becomes the program in a child of its own each time.

`Nursery` is the supervisor's side, `wait` that of the process. They talk by two pipes, a line each: the place where the
next one is to meet its supervisor, and back its process id and its status.

A child differs from a process that was started by where its objects lie in memory. Where that shows, in a set of
objects that hash by their address, the part served diverges: such a fork is to be run again in a process that was
started.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from lockstep import launch
from lockstep.launch import child, meeting, supervise

if TYPE_CHECKING:
    from lockstep.launch.outcome import Outcome
    from lockstep.launch.settings import Settings

VARIABLE = "LOCKSTEP_NURSERY"
_PATIENCE = 2.0  # seconds for a program to end once it was interrupted

_fork = os.fork if hasattr(os, "fork") else None  # before the taps
_exit = os._exit


class Nursery:
    """Runs a command again and again. `run` takes what `launch.run` takes, and does what that does where the command is
    no Python program by itself, or another one than the first time."""

    def __init__(self) -> None:
        self._asked: Any = None
        self._pid = 0
        self._ready = False
        self._place = ""  # where the process itself would meet us
        self._orders = self._news = -1
        self._heard = b""

    def begin(
        self, command: Sequence[str], mode: str, store: str, name: str = "", *, stdout: int | None = None,
        stderr: int | None = None, isolate: bool = False, **how: Any,
    ) -> None:  # fmt: skip
        """Starts the process, if that has not been done, and does not wait for it."""
        if self._asked is not None:
            return
        self._asked = (tuple(command), mode, store, name, stdout, stderr, isolate, how, os.getcwd())
        if isolate or how.get("images") or how.get("foreign") or sys.platform != "linux" or not _is_python(command[0]):
            return
        self._place = meeting.make()
        orders, self._orders = os.pipe()
        self._news, news = os.pipe()
        try:
            meeting.put(self._place, "command", b"\0".join(os.fsencode(word) for word in command))
            environment = child.environment(
                mode=mode, meeting=self._place, run=name, store=store, nursery=f"{orders},{news}", **how
            )
            for end in (orders, news):
                os.set_inheritable(end, True)
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
            with child.fixed_addresses():
                self._pid = supervise._start(list(command), environment, mask, stdout, stderr)
        except supervise.NotStarted:
            self._closed()  # `launch.run` will say so
        finally:
            os.close(orders)
            os.close(news)

    def run(
        self, command: Sequence[str], mode: str, store: str, name: str = "", *, plan: bytes = b"",
        stdout: int | None = None, stderr: int | None = None, isolate: bool = False, **how: Any,
    ) -> Outcome:  # fmt: skip
        from lockstep.launch import outcome

        self.begin(command, mode, store, name, stdout=stdout, stderr=stderr, isolate=isolate, **how)
        asked = (tuple(command), mode, store, name, stdout, stderr, isolate, how, os.getcwd())
        if self._pid and not self._ready:
            status = self._settled()
            if status is not None:
                try:
                    return outcome.read(self._place, command, mode, supervise.Ended(status, False))
                finally:
                    meeting.remove(self._place)
        if not self._pid or asked != self._asked:
            return launch.run(
                command, mode, store, name, plan=plan, stdout=stdout, stderr=stderr, isolate=isolate, **how
            )
        place = meeting.make()
        try:
            meeting.put(place, "plan", plan)
            meeting.put(place, "command", b"\0".join(os.fsencode(word) for word in command))
            ended = self._child(place)
            if ended is not None:
                return outcome.read(place, command, mode, ended)
        finally:
            meeting.remove(place)
        self.close()  # somebody has ended it
        return launch.run(command, mode, store, name, plan=plan, stdout=stdout, stderr=stderr, isolate=isolate, **how)

    def close(self) -> None:
        """Ends the process."""
        if self._pid:
            pid = self._closed()
            os.waitpid(pid, 0)
            meeting.remove(self._place)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _settled(self) -> int | None:
        """Waits for the process. The status of one that ended without a word: it never loaded us. None where it is
        ready, or where it is another one, a child of the command: then there is none."""
        said = self._line()
        if said == f"ready {self._pid}":
            self._ready = True
            return None
        status = os.waitstatus_to_exitcode(os.waitpid(self._closed(), 0)[1])
        if not said:
            return status
        meeting.remove(self._place)
        return None

    def _closed(self) -> int:
        os.close(self._orders)
        os.close(self._news)
        pid, self._pid = self._pid, 0
        return pid

    def _child(self, place: str) -> supervise.Ended | None:
        """Has a child made that meets us there, and waits for its end. None where there is nobody who could."""
        try:
            os.write(self._orders, os.fsencode(place) + b"\n")
        except BrokenPipeError:
            return None
        with _asked_to_end():
            told = self._line()
            if not told:
                return None
            pid, asked = int(told), False
            try:
                told = self._line()
            except KeyboardInterrupt:
                # From a terminal the program has got it too; from elsewhere we are the only one.
                asked = True
                for number in (signal.SIGINT, signal.SIGKILL):
                    if select.select([self._news], [], [], _PATIENCE)[0]:
                        break
                    os.kill(pid, number)
                told = self._line()
        return supervise.Ended(int(told or -signal.SIGKILL), asked)

    def _line(self) -> str:
        """The next line of the process; "" where it has ended."""
        while b"\n" not in self._heard:
            piece = os.read(self._news, 4096)
            if not piece:
                return ""
            self._heard += piece
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode()


@contextmanager
def _asked_to_end() -> Iterator[None]:
    """Whoever asks us to end means the program too, which is not ours to be told of by the system."""

    def asked(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    ours = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, asked) for number in (signal.SIGTERM, signal.SIGHUP) if ours}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _is_python(word: str) -> bool:
    """Whether a command is an interpreter, or a script that names one as its first line does."""
    import shutil

    path = shutil.which(word)
    if path is None:
        return False
    if os.path.basename(os.path.realpath(path)).startswith("python"):
        return True
    with open(path, "rb") as file:
        first = file.readline(256)
    return first.startswith(b"#!") and b"python" in first


# In the process itself.


def wait(settings: Settings) -> None:
    """Loads what a fork needs, then forks for each order. Returns in the children, which go on as if started; whatever
    else happens, this process ends here: it must not become the program."""
    try:
        place = _child_of(settings)
    except BaseException:
        _exit(2)
    if not place:
        _exit(0)
    assert settings.ours is not None
    settings.meeting = place
    settings.ours.set("LOCKSTEP_REPORT", place)


def _child_of(settings: Settings) -> str:
    """Where a child is to meet its supervisor, in that child; "" in this process once there are no more orders."""
    # Before the taps: what a session waits and measures with must be the real thing.
    from lockstep.session import session  # noqa: F401  # isort: skip
    from lockstep import taps
    from lockstep.log.sqlite import store  # noqa: F401
    from lockstep.session import forking, tail  # noqa: F401

    ours = settings.ours
    assert ours is not None and _fork is not None
    orders, news = (int(number) for number in ours.get(VARIABLE).split(","))
    ours.set(VARIABLE, "")
    taps.install()
    # What a session loads when it begins, and a program that uses us.
    for name in ("zstandard", "logging", "lockstep.session.following", "lockstep.launch.attaching", "lockstep.tools"):
        import_module(name)
    # A child's collections need not look at what was here before, nor make pages its own by that. Their moments are
    # nobody's call (`taps.collector`).
    gc.freeze()
    # What interrupts the program is no order to us.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.write(news, f"ready {os.getpid()}\n".encode())
    with os.fdopen(orders, "rb") as lines:
        for line in lines:
            pid = _fork()
            if pid == 0:
                signal.signal(signal.SIGINT, before)
                os.close(news)
                return os.fsdecode(line.rstrip(b"\n"))
            os.write(news, f"{pid}\n".encode())
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            os.write(news, f"{status}\n".encode())
    return ""
