"""`verify --times`: what one more replay of a recorded program costs."""

from __future__ import annotations

from collections.abc import Iterator

from contenders import BARE, OURS, PEER, WORKLOADS
from rounds import WHOLE, Bench, Row, main


def replays(bench: Bench) -> Iterator[Row]:
    times = bench.sizes.replays
    command = [WORKLOADS / "calls.py", bench.url, 12]
    spent = []
    for contender in (OURS, PEER):
        room = bench.fresh()
        contender.record(room, command)
        spent.append(contender.verify(room, command, times))
    bare = [BARE.record(room, command) for _ in range(3)]
    for what, unit in WHOLE.items():
        once = [getattr(each, what) for each in bare]
        per = [[getattr(each, what) / times] for each in spent]
        yield Row(f"verify x {times} of 12 calls: a replay", unit, once, per[0], per[1])


if __name__ == "__main__":
    main(__doc__, replays)
