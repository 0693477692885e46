"""The real clock, sleep and locks, bound before any tap replaces them.

The log must neither record its own waiting nor wait on a replayed clock or a gated lock, so whatever waits
in `lockstep.log` or in the writer takes these. Import it before the taps are installed.
"""

from __future__ import annotations

import _thread
import os
import time

monotonic = time.monotonic
monotonic_ns = time.monotonic_ns
time_ns = time.time_ns
sleep = time.sleep

allocate_lock = _thread.allocate_lock
RLock = _thread.RLock
start_new_thread = _thread.start_new_thread

urandom = os.urandom
open = os.open
write = os.write
close = os.close
_listdir = os.listdir


def threads() -> int:
    """How many threads the system sees in this process; 0 where it does not tell."""
    try:
        return len(_listdir("/proc/self/task"))
    except OSError:
        return 0
