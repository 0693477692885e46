"""Tells a signal sent to the whole process group from one sent to the supervisor alone.

The command is in the supervisor's group, so a signal to the group (`kill -- -PGID`, a CI runner's
cancel) has reached it already, and passing it on would interrupt it twice: in the middle of its own
clean-up after the first. A signal's sender does not say which it was. A process that blocks everything
and does nothing does: what is pending there was sent to the group.
"""

from __future__ import annotations

import os
import signal
import time

SETTLE = 0.002  # seconds: the kernel walks the group in one go, this only lets it finish


class Canary:
    """A process of our group in which signals stay pending. Without /proc it never claims to have got one."""

    def __init__(self) -> None:
        self._pid = 0
        self._alive = -1
        if os.path.exists("/proc/self/status"):
            self._hatch()

    def _hatch(self) -> None:
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
            os.close(write)
            for fd in (0, 1, 2):
                os.close(fd)  # a pipe's reader must not wait for us
            os.read(read, 1)  # ends with the supervisor, however that ends
            os._exit(0)
        os.close(read)
        self._pid, self._alive = pid, write

    def got(self, number: int) -> bool:
        """Whether the group was sent that signal since the last question."""
        if not self._pid:
            return False
        time.sleep(SETTLE)
        try:
            with open(f"/proc/{self._pid}/status", encoding="ascii") as status:
                pending = next(int(line[7:], 16) for line in status if line.startswith("ShdPnd:"))
        except (OSError, StopIteration):
            return False
        if not pending & (1 << (number - 1)):
            return False
        self.close()  # a pending signal can be taken by its owner only: a new one starts with none
        self._hatch()
        return True

    def close(self) -> None:
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            os.close(self._alive)
            self._pid = 0
