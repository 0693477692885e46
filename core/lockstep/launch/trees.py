"""Ends a process with all that it has started. Light: a nursery has it loaded before the program."""

from __future__ import annotations

import os
import signal


def kill(pid: int) -> None:
    """Kills a process and those below it, as far as the system says which these are."""
    found = [pid]
    for parent in found:
        found += _children(parent)
    for one in found:
        try:
            os.kill(one, signal.SIGKILL)
        except ProcessLookupError:
            continue  # it has ended by itself


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children") as file:
                found += [int(word) for word in file.read().split()]
    except OSError:
        pass  # it has ended meanwhile, or this system does not say
    return found
