"""The real clock and sleep, bound before any tap replaces them.

The log must neither record its own waiting nor wait on a replayed clock, so whatever waits in
`lockstep.log` or in the writer takes these. Import it before the taps are installed.
"""

from __future__ import annotations

import time

monotonic = time.monotonic
monotonic_ns = time.monotonic_ns
time_ns = time.time_ns
sleep = time.sleep
