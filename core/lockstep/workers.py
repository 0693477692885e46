"""Several probes at once, on this machine: a process of ours for each job, which performs orders one after another.

For commands it is forked from this process, and has a bed of the nursery for itself. For targets it is started anew,
since what it imports may have threads, which a fork does not take along; and where a probe in it becomes needless, it
is killed with it, so that what the probe has left is told from one that ended. The two sides talk in frames, by two
pipes. A worker whose supervisor has ended, in whatever way, ends too, and what it runs with it.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterable
from typing import Any, Self

import msgspec

from lockstep import errors
from lockstep.debugger import orders as ordering
from lockstep.debugger.orders import Order
from lockstep.debugger.probes import Made
from lockstep.errors import Code, EditError, LockstepError, TargetError
from lockstep.launch import trees
from lockstep.launch.nursery import Nursery
from lockstep.performing import perform

_LENGTH = struct.Struct("<I")
_PATIENCE = 2.0  # seconds for a worker to end what it runs
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


class Workers:
    """A `debugger.conduct.Maker`: makes the probes of one bisect.

    store    path of the store
    order    what all probes have in common
    output   file descriptor for what commands print
    nursery  of a command: has a bed for each job
    """

    def __init__(
        self, store: str, order: Order, jobs: int, *, output: int | None = None, nursery: Nursery | None = None
    ) -> None:
        self.jobs = jobs
        self._store = store
        self.order = order
        self._output = output
        self._nursery = nursery
        self._all: list[_Worker] = []
        self._at: dict[int, _Worker] = {}

    def __enter__(self) -> Self:
        # What takes long to load does so while the search begins.
        for _ in range(self.jobs if self.order.target else 0):
            self._all.append(self._started())
        return self

    def __exit__(self, *error: object) -> None:
        for worker in self._all:
            worker.stop()
        for worker in self._all:
            worker.close()
        self._all, self._at = [], {}

    def begin(self, number: int, order: Order) -> None:
        idle = [worker for worker in self._all if worker not in self._at.values()]
        if not idle:
            idle = [self._started()]
            self._all += idle
        # One that is still loading has the order wait.
        worker = next((one for one in idle if one.is_ready()), idle[0])
        self._at[number] = worker
        worker.send({"number": number, "order": ordering.encode(order)})

    def end(self, number: int) -> None:
        self._at[number].end(number)

    def next(self) -> tuple[int, Made | EditError | None]:
        while True:
            by_news = {worker.news: number for number, worker in self._at.items()}
            heard = select.select([*by_news], [], [])[0]
            for news in heard:
                number = by_news[news]
                worker = self._at[number]
                told = worker.hear()
                if told is not None and "ready" in told:
                    continue
                del self._at[number]
                if told is None:
                    self._all.remove(worker)
                    status = worker.close()
                    if worker.ended:
                        if self.order.target:
                            self._all.append(self._started())
                        return number, None
                    raise TargetError(Code.BAD_TARGET, f"a process that made a probe has ended: {_how(status)}")
                ended, worker.ended = worker.ended, False
                return number, None if ended and "made" not in told else _outcome(told)

    def _started(self) -> _Worker:
        if self.order.target:
            return _spawned(self._store, self.order)
        others = [end for worker in self._all for end in (worker.orders, worker.news)]
        return _forked(self._store, len(self._all), self._output, self._nursery, others)


class _Worker:
    """One of the processes. `ended`: its probe is needless, and it was told so."""

    def __init__(self, pid: int, orders: int, news: int, process: subprocess.Popen[bytes] | None) -> None:
        self.pid = pid
        self.news = news
        self.ended = False
        self.orders = orders
        self._process = process
        self._ready = process is None

    def send(self, told: dict[str, Any]) -> None:
        _tell(self.orders, told)  # one that has died says so by its silence

    def hear(self) -> dict[str, Any] | None:
        """What it says; None where it has ended."""
        told = _heard(self.news)
        self._ready = self._ready or told is not None
        return told

    def is_ready(self) -> bool:
        if not self._ready and select.select([self.news], [], [], 0)[0]:
            self.hear()
        return self._ready

    def end(self, number: int) -> None:
        """Has it end the probe of that number, if that is what it is still at."""
        self.ended = True
        if self._process is None:
            self.send({"end": number})
        self.stop()

    def stop(self) -> None:
        if self._process is not None:
            trees.kill(self.pid)
        else:
            # For a command that it has started by itself: that hears what its supervisor does.
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)

    def close(self) -> int:
        """Waits for its end, which comes when nobody is there who would give orders. As `subprocess` tells it, its
        status."""
        os.close(self.orders)
        try:
            if self._process is not None:
                return self._process.wait()
            until = time.monotonic() + _PATIENCE
            while True:
                done, status = os.waitpid(self.pid, os.WNOHANG)
                if done:
                    return os.waitstatus_to_exitcode(status)
                if time.monotonic() > until:
                    trees.kill(self.pid)
                time.sleep(0.005)
        finally:
            os.close(self.news)


def _forked(
    store: str, bed: int, output: int | None, nursery: Nursery | None, others: Iterable[int]
) -> _Worker:  # fmt: skip
    orders, ours = os.pipe()
    heard, news = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    above = os.getpid()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            # An end that somebody else holds too is never seen to be closed.
            for end in (ours, heard, *others):
                os.close(end)
            _leash(signal.SIGTERM, above)
            _serve(store, orders, news, output, nursery, bed)
            status = 0
        finally:
            # Nothing of what it has from its parent is its own to close.
            os._exit(status)
    os.close(orders)
    os.close(news)
    return _Worker(pid, ours, heard, None)


def _spawned(store: str, order: Order) -> _Worker:
    orders, ours = os.pipe()
    heard, news = os.pipe()
    told = json.dumps({"path": sys.path, "argv": sys.argv, "store": store, "run": order.run, "target": order.target})
    process = subprocess.Popen(
        [
            sys.executable, "-c",
            "import json, sys; told = json.loads(sys.argv[1]); sys.path[:] = told['path']; "
            f"from lockstep import workers; workers.main(told, {orders}, {news}, {os.getpid()})",
            told,
        ],
        # Its stdout is not for what a program prints: there may be JSON to come.
        pass_fds=(orders, news), stdout=2, cwd=order.directory or None,
    )  # fmt: skip
    os.close(orders)
    os.close(news)
    return _Worker(process.pid, ours, heard, process)


def _outcome(told: dict[str, Any]) -> Made | EditError:
    if "made" in told:
        return msgspec.convert(told["made"], Made)
    if "unexpected" in told:
        raise RuntimeError(told["unexpected"])
    if "asked" in told:
        raise KeyboardInterrupt  # somebody else wanted it to end: no other is to follow
    kind = getattr(errors, told["error"], LockstepError)
    error: LockstepError = kind(Code(told["code"]), told["message"])
    if isinstance(error, EditError):
        return error
    raise error


def _how(status: int) -> str:
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"


# In the worker.


def main(told: dict[str, str], orders: int, news: int, above: int) -> None:
    """The program of a worker that was started anew: loads the target, then makes probes of it."""
    sys.argv[:] = told["argv"]
    _leash(signal.SIGKILL, above)
    from lockstep import inprocess_target

    # Where it cannot be loaded, the first probe says why.
    with contextlib.suppress(LockstepError):
        inprocess_target.load_for(told["store"], told["run"], told["target"])
    _tell(news, {"ready": True})
    _serve(told["store"], orders, news, None, None)


def _serve(store: str, orders: int, news: int, output: int | None, nursery: Nursery | None, bed: int = 0) -> None:
    """Performs one order after another, until nobody gives one any more."""
    busy = -1

    def ended() -> bool:
        # While one is at work it is told of ends alone: of what it is at, or of what it had done by then.
        told = _heard(orders)
        return told is None or told.get("end") == busy

    # Whoever is asked to end by a signal is the program, and this process when its supervisor has ended.
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    if nursery is not None:
        nursery.lie_in(bed, orders, ended)
    while (told := _heard(orders)) is not None:
        if "order" not in told:
            continue
        busy = told["number"]
        try:
            made = perform(store, ordering.decode(told["order"]), output=output, nursery=nursery)
            answer: dict[str, Any] = {"made": msgspec.to_builtins(made)}
        except KeyboardInterrupt:
            answer = {"asked": True}
        except LockstepError as error:
            answer = {"error": type(error).__name__, "code": str(error.code), "message": error.message}
        except BaseException as error:
            answer = {"unexpected": f"{type(error).__name__}: {error}"}
        _tell(news, answer)
    if nursery is not None:
        nursery.close()


def _leash(number: int, above: int) -> None:
    """Has the system send this process that signal once its parent has ended, in whatever way; where it can."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
        if os.getppid() != above:
            os._exit(1)


def _tell(news: int, told: dict[str, Any]) -> None:
    with contextlib.suppress(BrokenPipeError):
        _write(news, msgspec.msgpack.encode(told))


def _write(to: int, frame: bytes) -> None:
    left = memoryview(_LENGTH.pack(len(frame)) + frame)
    while left:
        left = left[os.write(to, left) :]


def _heard(pipe: int) -> dict[str, Any] | None:
    """What is told next; None at the end."""
    head = _exactly(pipe, _LENGTH.size)
    frame = _exactly(pipe, _LENGTH.unpack(head)[0]) if head is not None else None
    return msgspec.msgpack.decode(frame, type=dict[str, Any]) if frame is not None else None


def _exactly(pipe: int, size: int) -> bytes | None:
    found = b""
    while len(found) < size:
        piece = os.read(pipe, size - len(found))
        if not piece:
            return None
        found += piece
    return found
