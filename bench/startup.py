"""An empty program: what starting it under either tool costs."""

from __future__ import annotations

from collections.abc import Iterator

from contenders import BARE, OURS, PEER, RECORD, WORKLOADS, Spent
from rounds import MODES, WHOLE, Bench, Row, added, main


def startup(bench: Bench) -> Iterator[Row]:
    found: dict[tuple[str, str], list[Spent]] = {}
    for contender, room in bench.rounds():
        for mode, act in contender.acts():
            found.setdefault((contender.name, mode), []).append(act(room, [WORKLOADS / "empty.py"]))
    for mode in MODES:
        spents = found[BARE.name, RECORD], found[OURS.name, mode], found[PEER.name, mode]
        for what, unit in WHOLE.items():
            bare, ours, peer = ([float(getattr(spent, what)) for spent in each] for each in spents)
            yield Row(f"empty program, {mode}: whole command", unit, bare, ours, peer)
            yield Row(f"empty program, {mode}: added", unit, (), added(ours, bare), added(peer, bare))


if __name__ == "__main__":
    main(__doc__, startup)
