"""What one read of the clock, and one random draw, costs the program."""

from __future__ import annotations

from collections.abc import Iterator

from contenders import BARE, OURS, PEER, RECORD
from rounds import MODES, PER_CALL, Bench, Row, main, of


def reads(bench: Bench) -> Iterator[Row]:
    for source, title in (("clock", "time.time()"), ("random", "random.random()")):
        found = bench.measured("reads.py", (source, bench.sizes.blocks, bench.sizes.reads))
        for mode in MODES:
            for name in ("thread", "process"):
                what, unit = PER_CALL[name]
                bare, ours, peer = (of(found, contender, mode, name) for contender in (BARE, OURS, PEER))
                goal = 8.0 if (source, mode, name) == ("clock", RECORD, "process") else None
                yield Row(f"{title}, {mode}: {what}", unit, bare, ours, peer, peer_over=goal)


if __name__ == "__main__":
    main(__doc__, reads)
