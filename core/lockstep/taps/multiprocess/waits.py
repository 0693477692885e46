"""Looks at other processes: whether something came, who is ready, whether a child has ended.

What was seen is a read of the lane. In a replay the answer is the recorded one, and waits until it is
true: what was not there yet is not there, however early it comes now.
"""

from __future__ import annotations

import functools
from functools import partial
from types import ModuleType
from typing import Any

from lockstep.session import lanes, reads

READY = reads.ORDER + "connection.wait"
POLL = reads.ORDER + "Connection.poll"
ACTIVE = reads.ORDER + "active_children"
ENDED = reads.ORDER + "Process.exitcode"
_LIVE = -1
_MANY = 500  # objects whose readiness fits into one read
_RUNS = 1 << 16  # in place of an exit code
_LOOK = 0.25  # seconds


def install_connections(module: ModuleType) -> None:
    connection: Any = module._ConnectionBase
    wait, poll = module.wait, lanes.ours(connection.poll)

    @functools.wraps(wait)
    def wait_(object_list: Any, timeout: float | None = None) -> Any:
        lane = lanes.current()
        objects = list(object_list)
        if lane is None or not 0 < len(objects) <= _MANY:
            return wait(objects, timeout)
        session = lane.session
        if session.recording:
            ready = wait(objects, timeout)
            mask = sum(1 << number for number, each in enumerate(objects) if each in ready)
            reads.read(lane, READY, lambda: mask)
        else:
            mask = reads.read(lane, READY, lambda: _LIVE)
            if mask == _LIVE:
                return session.at_cut() if timeout is None else wait(objects, timeout)
            with session.standstill.blocking():
                for number, each in enumerate(objects):
                    while mask >> number & 1 and not wait([each], _LOOK):
                        if session.stopped:
                            session.raise_latched()
        return [each for number, each in enumerate(objects) if mask >> number & 1]

    def poll_(self: Any, timeout: float = 0.0) -> bool:
        lane = lanes.current()
        if lane is None:
            return poll(self, timeout)  # type: ignore[no-any-return]
        session = lane.session
        if session.recording:
            found = poll(self, timeout)
            reads.read(lane, POLL, lambda: int(found))
            return found  # type: ignore[no-any-return]
        told = reads.read(lane, POLL, lambda: _LIVE)
        if told == _LIVE:
            return poll(self, timeout)  # type: ignore[no-any-return]
        with session.standstill.blocking():
            while told and not poll(self, _LOOK):
                if session.stopped:
                    session.raise_latched()
        return bool(told)

    poll_.__name__, poll_.__doc__ = "poll", connection.poll.__doc__
    connection.poll = poll_
    module.__dict__["wait"] = wait_


def install_popen(module: ModuleType) -> None:
    popen: Any = module.Popen
    for name in ("poll", "wait"):
        if name in popen.__dict__:
            setattr(popen, name, _ending(popen.__dict__[name]))


def _ending(look: Any) -> Any:
    """A look at whether a child has ended, and how; one read, whether or not somebody has looked before."""
    real = lanes.ours(look)

    @functools.wraps(look)
    def told(self: Any, *args: Any, **kwargs: Any) -> int | None:
        lane = lanes.current()
        if lane is None:
            return look(self, *args, **kwargs)  # type: ignore[no-any-return]
        session = lane.session
        if session.recording:
            code = real(self, *args, **kwargs)
            reads.read(lane, ENDED, lambda: _RUNS if code is None else code)
            return code  # type: ignore[no-any-return]
        found = reads.read(lane, ENDED, lambda: _RUNS + 1)
        if found > _RUNS:
            return real(self, *args, **kwargs)  # type: ignore[no-any-return]
        if found == _RUNS:
            return None
        if found < 0 and session.want is not None:
            session.want(getattr(self, "_lockstep_lane", ""))  # nobody may come to kill it this time
        with session.standstill.blocking():
            lanes.ours(type(self).poll)(self, 0)
        self.returncode = found
        return found

    return told


_started: dict[int, Any] = {}  # replay: this process's children by number


def started(session: Any, process: Any, lane: Any) -> None:
    """A child was started, and runs as `lane`."""
    if not session.recording:
        _started[process._identity[-1]] = process
    if lane is not None and process._popen is not None:
        process._popen._lockstep_lane = lane.name


def forget() -> None:
    """In a child, whose children are its own."""
    _started.clear()


def install_process(module: ModuleType) -> None:
    look: Any = module.active_children
    real = lanes.ours(look)

    @functools.wraps(look)
    def active_children() -> list[Any]:
        lane = lanes.current()
        if lane is None:
            return look()  # type: ignore[no-any-return]
        if lane.session.recording:
            found = sorted(real(), key=lambda process: process._identity)
            numbers = [len(found), *(process._identity[-1] for process in found)]
            for number in numbers:
                reads.read(lane, ACTIVE, partial(int, number))
            return found
        count = reads.read(lane, ACTIVE, lambda: _LIVE)
        if count == _LIVE:
            return real()  # type: ignore[no-any-return]
        numbers = [reads.read(lane, ACTIVE, lambda: _LIVE) for _ in range(count)]
        return [_started[number] for number in numbers if number in _started]

    # When it finds that children have ended is no moment that the program chose.
    module.__dict__["_cleanup"] = lanes.ours(module._cleanup)
    module.__dict__["active_children"] = active_children
