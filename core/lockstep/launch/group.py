"""Tells a signal sent to the whole process group from one sent to the supervisor alone.

The command is in the supervisor's group, so a signal to the group (`kill -- -PGID`, a CI runner's
cancel) has reached it already, and passing it on would interrupt it twice: in the middle of its own
clean-up after the first. A signal's sender does not say which it was. A process in the group that
nobody signals by itself does: what is pending there was sent to the group.
"""

from __future__ import annotations

import os
import signal
import time
from typing import NoReturn

SETTLE = 0.005  # seconds: the kernel signals a group's members in one go, this lets it finish


class Canary:
    """A process of our group in which signals stay pending until we have it take them."""

    def __init__(self) -> None:
        asked, self._ask = os.pipe()
        self._answer, answers = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._ask)
            _wait(asked, answers)
        os.close(asked)
        os.close(answers)
        self._merged: set[int] = set()

    def got(self, number: int) -> bool:
        """Whether the signal that this process has just taken went to the whole group."""
        merged = number in self._merged
        self._merged.discard(number)
        pending = self._pending(number)
        until = time.monotonic() + SETTLE
        while not (pending or merged) and time.monotonic() < until:
            time.sleep(SETTLE / 10)
            pending = self._pending(number)
        if pending:
            os.write(self._ask, bytes([number]))
            os.read(self._answer, 1)
            # One that came meanwhile may have merged with the one that was just taken there; it is still to
            # be taken here.
            if number in signal.sigpending():
                self._merged.add(number)
        return pending or merged

    def _pending(self, number: int) -> bool:
        try:
            with open(f"/proc/{self._pid}/status", encoding="ascii") as status:
                mask = next(int(line[7:], 16) for line in status if line.startswith("ShdPnd:"))
        except (OSError, StopIteration):
            return False  # no /proc: every signal is passed on
        return bool(mask & (1 << (number - 1)))

    def close(self) -> None:
        """Ends it."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._ask)
        os.close(self._answer)


def _wait(asked: int, answers: int) -> NoReturn:
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    for fd in (0, 1, 2):
        os.close(fd)  # a pipe's reader must not wait for us
    while number := os.read(asked, 1):  # nothing: the supervisor has ended, however that was
        signal.sigtimedwait({number[0]}, 0)
        os.write(answers, b".")
    os._exit(0)
