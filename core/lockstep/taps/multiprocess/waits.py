"""Looks at other processes: whether something came, who is ready, whether a child has ended.

What was seen is a read of the lane. In a replay the answer is the recorded one, and waits until it is
true: what was not there yet is not there, however early it comes now.
"""

from __future__ import annotations

import functools
import os
from types import ModuleType
from typing import Any

from lockstep.session import lanes, reads

READY = reads.ORDER + "connection.wait"
POLL = reads.ORDER + "Connection.poll"
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
    poll = popen.__dict__["poll"]

    def poll_(self: Any, flag: int = os.WNOHANG) -> int | None:
        lane = lanes.current()
        if lane is None:
            return poll(self, flag)  # type: ignore[no-any-return]
        session = lane.session
        if session.recording:
            code = lanes.ours(poll)(self, flag)
            reads.read(lane, ENDED, lambda: _RUNS if code is None else code)
            return code  # type: ignore[no-any-return]
        told = reads.read(lane, ENDED, lambda: _RUNS + 1)
        if told > _RUNS:
            return lanes.ours(poll)(self, flag)  # type: ignore[no-any-return]
        if told == _RUNS:
            return None
        with session.standstill.blocking():
            lanes.ours(poll)(self, 0)
        self.returncode = told
        return told

    poll_.__name__ = "poll"
    popen.poll = poll_
