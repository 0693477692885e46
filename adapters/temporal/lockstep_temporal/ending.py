"""Whether Temporal's core was started in this process: what it runs on aborts an interpreter that ends too soon.

Threads of its runtime let go of Python objects a moment after a client, a server or a replay of the SDK is done with.
If the interpreter is being torn down by then, the process crashes (temporalio/sdk-python#300; seen with 1.27 and 1.35).
The command line ends without tearing down, by `core_started`. A program of the user's is left a moment by `settle`.
"""

from __future__ import annotations

import atexit
import sys
import time
from functools import cache
from pathlib import Path

MOMENT = 0.3  # seconds; 0.2 were enough in each try

_used = 0.0


def core_started() -> bool:
    """Whether its threads run here. Imports nothing of Temporal."""
    runtime = sys.modules.get("temporalio.runtime")
    if runtime is None:
        return False
    default = getattr(getattr(runtime, "_runtime_ref", None), "_default_runtime", None)
    return default is not None or _has_threads()


def settle() -> None:
    """Core is used by us now: if this process ends in the next moment, it waits until that is over."""
    global _used
    _used = time.monotonic()
    _at_exit()


@cache
def _at_exit() -> None:
    atexit.register(lambda: time.sleep(max(0.0, _used + MOMENT - time.monotonic())))


def _has_threads() -> bool:
    """A runtime of the user's own is no default one, but its threads have the same name; where the system says it."""
    try:
        return any("tokio" in task.read_text() for task in Path("/proc/self/task").glob("*/comm"))
    except OSError:
        return False
