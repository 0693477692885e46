"""One start of an interpreter for many forks of a run: a process that has loaded all that a fork needs, and not a line
of the program, and becomes the program in a child of its own each time.

`Nursery` is the supervisor's side, `wait` that of the process. They talk by two pipes, a line each: the place where the
next one is to meet its supervisor, and back its process id and its status. Where several forks run at once the process
has as many beds, each a process that was forked from it and has two pipes of its own. One whose supervisor has ended,
in whatever way, ends what it has made.

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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from lockstep import launch
from lockstep.launch import child, meeting, supervise, trees

if TYPE_CHECKING:
    from lockstep.launch.outcome import Outcome
    from lockstep.launch.settings import Settings

VARIABLE = "LOCKSTEP_NURSERY"
_PATIENCE = 2.0  # seconds for a program to end once it was interrupted

_fork = os.fork if hasattr(os, "fork") else None  # before the taps, as are those that follow
_select = select.select
_pidfd: Callable[[int], int] | None = getattr(os, "pidfd_open", None)
_exit = os._exit


class Nursery:
    """Runs a command again and again. `run` takes what `launch.run` takes, and does what that does where the command is
    no Python program by itself, or another one than the first time.

    beds  how many forks may run at once, each for another process of ours, see `lie_in`
    """

    def __init__(self, beds: int = 1) -> None:
        self._listen = -1
        self._ended: Callable[[], bool] | None = None
        self._beds = beds
        self._pipes: list[tuple[int, int]] = []  # of each bed: for orders, for news
        self._own = os.getpid()  # whose child the process is
        self._asked: Any = None
        self._pid = 0
        self._ready = False
        self._place = ""  # where the process itself would meet us
        self._orders = self._news = -1
        self._heard = b""

    def lie_in(self, bed: int, listen: int, ended: Callable[[], bool]) -> None:
        """In a forked child of ours: uses that bed from now on, which nobody else does. One that has not begun begins
        by itself.

        listen  a pipe by which somebody may say, while a program runs, that it is to be ended at once
        ended   asked when there is something to read: whether it was that
        """
        self._listen, self._ended = listen, ended
        if self._pipes:
            self._orders, self._news = self._pipes[bed]
            for number, pipes in enumerate(self._pipes):
                for end in pipes if number != bed else ():
                    os.close(end)
            self._pipes = [self._pipes[bed]]
        self._beds = 1

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
        theirs: list[tuple[int, int]] = []
        for _ in range(self._beds):
            orders, ours = os.pipe()
            heard, news = os.pipe()
            theirs.append((orders, news))
            self._pipes.append((ours, heard))
        self._orders, self._news = self._pipes[0]
        ends = [end for pipes in theirs for end in pipes]
        try:
            meeting.put(self._place, "command", b"\0".join(os.fsencode(word) for word in command))
            environment = child.environment(
                mode=mode, meeting=self._place, run=name, store=store,
                nursery=" ".join(f"{orders},{news}" for orders, news in theirs), **how,
            )  # fmt: skip
            for end in ends:
                os.set_inheritable(end, True)
            mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
            with child.fixed_addresses():
                self._pid = supervise._start(list(command), environment, mask, stdout, stderr)
        except supervise.NotStarted:
            self._closed()  # `launch.run` will say so
        finally:
            for end in ends:
                os.close(end)

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
            if os.getpid() == self._own:
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
        if os.getpid() != self._own:
            self._closed()  # whose child it is will see to it
            return None
        status = os.waitstatus_to_exitcode(os.waitpid(self._closed(), 0)[1])
        if not said:
            return status
        meeting.remove(self._place)
        return None

    def _closed(self) -> int:
        for end in (end for pipes in self._pipes for end in pipes):
            os.close(end)
        self._pipes = []
        pid, self._pid = self._pid, 0
        return pid

    def _child(self, place: str) -> supervise.Ended | None:
        """Has a child made that meets us there, and waits for its end. None where there is nobody who could."""
        try:
            os.write(self._orders, os.fsencode(place) + b"\n")
        except BrokenPipeError:
            return None
        if self._ended is not None:
            return self._attended(self._ended)
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
                if not select.select([self._news], [], [], _PATIENCE)[0]:
                    os.kill(pid, signal.SIGINT)
                if not select.select([self._news], [], [], _PATIENCE)[0]:
                    trees.kill(pid)
                told = self._line()
        return supervise.Ended(int(told or -signal.SIGKILL), asked)

    def _attended(self, ended: Callable[[], bool]) -> supervise.Ended | None:
        """As the end of `_child`, for one who is told by a pipe: no signal comes between what is said and heard."""
        told = self._line()
        if not told:
            return None
        pid, asked = int(told), False
        while not asked and self._news not in (ready := select.select([self._news, self._listen], [], [])[0]):
            asked = self._listen in ready and ended()
        if asked:
            trees.kill(pid)
        return supervise.Ended(int(self._line() or -signal.SIGKILL), asked)

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
    beds = [tuple(int(number) for number in bed.split(",")) for bed in ours.get(VARIABLE).split()]
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
    pid = os.getpid()
    for orders, news in beds[1:]:
        if _fork() == 0:
            return _made(beds, orders, news, pid, before)
    orders, news = beds[0]
    return _made(beds, orders, news, pid, before)


def _made(beds: Iterable[tuple[int, ...]], orders: int, news: int, pid: int, before: Any) -> str:
    """Serves one bed: makes a child for each order. Returns in the child where it is to meet its supervisor; "" where
    there are no more orders."""
    assert _fork is not None
    for end in {end for bed in beds for end in bed} - {orders, news}:
        os.close(end)
    os.write(news, f"ready {pid}\n".encode())
    while place := _order(orders):
        child = _fork()
        if child == 0:
            signal.signal(signal.SIGINT, before)
            os.close(orders)
            os.close(news)
            return place
        os.write(news, f"{child}\n".encode())
        if _forsaken(orders, child):
            trees.kill(child)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.write(news, f"{status}\n".encode())
    return ""


def _order(orders: int) -> str:
    heard = b""
    while not heard.endswith(b"\n"):
        piece = os.read(orders, 4096)
        if not piece:
            return ""
        heard += piece
    return os.fsdecode(heard.rstrip(b"\n"))


def _forsaken(orders: int, child: int) -> bool:
    """Waits until a child has ended, or, where the system can say it, until nobody is there any more who would give
    orders. Whether that came first."""
    if _pidfd is None:
        return False
    try:
        ended = _pidfd(child)
    except OSError:
        return False
    try:
        # Nobody gives an order before the last is done: what comes by that pipe is its end.
        return ended not in _select([orders, ended], [], [])[0]
    finally:
        os.close(ended)
