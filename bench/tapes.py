"""A long run: opened and read in its middle, and verified. Time and memory beyond that of the process before.

The peer's loading reads and checks the whole tape; its streaming reader stands beside it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from contenders import PEER, WORKLOADS, run
from rounds import Bench, Row, main, turned

_FIGURES = {"process": "CPU ms", "wall": "wall ms", "memory": "MB more"}


def tapes(bench: Bench) -> Iterator[Row]:
    for count in bench.sizes.tapes:
        room = bench.fresh()
        ours, theirs = (sys.executable, WORKLOADS / "long_run.py"), (PEER.python, WORKLOADS / "long_tape.py")
        run([*ours, "write", room / "run", count])
        readers: dict[str, list[object]] = {"read": [*ours, "read", room / "run", count]}
        if count <= bench.sizes.peer_tape:
            run([*theirs, "write", room / "tape", count])
            readers["whole"] = [*theirs, "read", room / "tape", count]
            readers["scan"] = [*theirs, "scan", room / "tape", count]
        found: dict[tuple[str, str], list[float]] = {}

        def take(name: str, command: list[object]) -> None:
            for what, values in bench.alone(command, room).items():  # noqa: B023 - used in this round only
                found.setdefault((name, what), []).extend(values)  # noqa: B023

        for turn in range(bench.sizes.rounds):
            for name in turned([*readers], turn):
                take(name, readers[name])
        for _ in range(3 if count <= bench.sizes.peer_tape else 1):
            take("verify", [*ours, "verify", room / "run", count])
        for reader, title in (("whole", "open, read the middle"), ("scan", "the same, peer's streaming reader")):
            if reader == "scan" and reader not in readers:
                continue
            for what, unit in _FIGURES.items():
                peer = found.get((reader, what), ())
                first = reader == "whole" and bool(peer)
                yield Row(
                    f"{count:,} events: {title}", unit, (), found["read", what], peer,
                    peer_over=50 if first and what == "wall" else None,
                    most=15 if first and what == "memory" else None,
                )  # fmt: skip
        for what, unit in _FIGURES.items():
            peer = found.get(("whole", what), ())
            yield Row(f"{count:,} events: verify (peer: load)", unit, (), found["verify", what], peer)


if __name__ == "__main__":
    main(__doc__, tapes)
