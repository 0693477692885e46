"""Clock reads, then random draws.    reads.py FIGURES SOURCE BLOCKS CALLS"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from given import arguments
from meter import Figures


def main(path: str, source: str, blocks: int, calls: int) -> None:
    figures = Figures(path)
    # Bound as late as a program would that looks the attribute up each time, without measuring the look-up.
    read: Callable[[], float] = {"clock": time.time, "random": random.random}[source]
    for _ in range(calls // 10):
        read()
    for _ in range(blocks):
        with figures.block(calls):
            for _ in range(calls):
                read()
    figures.write()


if __name__ == "__main__":
    main(*arguments(str, str, int, int))  # type: ignore[arg-type]
