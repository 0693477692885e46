"""Supervision without `sigwaitinfo`: what the standard library offers on every system.

A terminal's interrupt reaches the command by itself, so it is ignored here; a termination that is sent
to the supervisor alone is passed on. An interrupt that is sent to the supervisor alone is not: nothing
tells the two apart.
"""

from __future__ import annotations

import signal
import subprocess
from typing import Any

from lockstep.launch.supervise import Ended, NotStarted


def run(
    command: list[str], environment: dict[str, str], *, stdout: int | None = None, stderr: int | None = None
) -> Ended:
    """As `supervise.run`."""
    asked = False
    process: subprocess.Popen[bytes] | None = None

    def interrupted(_number: int, _frame: Any) -> None:
        nonlocal asked
        asked = True

    def terminated(_number: int, _frame: Any) -> None:
        nonlocal asked
        asked = True
        if process is not None:
            process.terminate()

    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, interrupted),
        signal.SIGTERM: signal.signal(signal.SIGTERM, terminated),
    }
    try:
        process = subprocess.Popen(command, env=environment, stdout=stdout, stderr=stderr)
        return Ended(process.wait(), asked)
    except (OSError, ValueError) as error:
        raise NotStarted(command[0]) from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
