"""Tool calls recorded and replayed, with answers of 200 bytes and 5 kB that differ.

The peer has no decorator: it gets the two events of a call by its own session's methods, as its own executor
for tools does it. `whole` is what a call adds to the whole command, so with what was still to be written at the
end, or was read at the start: the peer loads all of its tape first. The other figures are the program's own.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from contenders import BARE, OURS, PEER, RECORD, WORKLOADS, Contender, Spent
from rounds import MODES, PER_CALL, WHOLE, Bench, Row, main, of


def tools(bench: Bench) -> Iterator[Row]:
    for size, shown in ((200, "200 B"), (5000, "5 kB")):
        spents = commands(bench, size)
        for mode in MODES:
            for what, unit in WHOLE.items():
                ours, peer = (per_call(spents, each, mode, what, bench) for each in (OURS, PEER))
                goal = 2.0 if mode == RECORD else 1.5
                yield Row(f"tool call of {shown}, {mode}: whole", f"{unit[:-2]}µs", (), ours, peer, peer_over=goal)
                if what == "wall":
                    rates = [[1e6 / statistics.median(each)] for each in (ours, peer)]
                    yield Row(f"tool call of {shown}, {mode}: whole", "calls/s", (), rates[0], rates[1])
        found = bench.measured("tool.py", (bench.sizes.blocks, bench.sizes.tools, size))
        for mode in MODES:
            for name, (what, unit) in PER_CALL.items():
                bare, ours, peer = (of(found, contender, mode, name) for contender in (BARE, OURS, PEER))
                yield Row(f"tool call of {shown}, {mode}: {what}", unit, bare, ours, peer)


type Spents = dict[tuple[str, str, int], list[Spent]]  # (contender, mode, blocks) -> rounds


def commands(bench: Bench, size: int) -> Spents:
    """Whole commands, with many calls and with none."""
    found: Spents = {}
    for contender, room in bench.rounds((OURS, PEER)):
        for blocks in (0, 2 * bench.sizes.blocks):
            inner = room / str(blocks)
            inner.mkdir()
            for mode, act in contender.acts():
                spent = act(inner, [WORKLOADS / "tool.py", inner / "figures.json", blocks, bench.sizes.tools, size])
                found.setdefault((contender.name, mode, blocks), []).append(spent)
    return found


def per_call(spents: Spents, contender: Contender, mode: str, what: str, bench: Bench) -> list[float]:
    """µs that a call adds, round by round."""
    blocks = 2 * bench.sizes.blocks
    pairs = zip(spents[contender.name, mode, blocks], spents[contender.name, mode, 0], strict=True)
    calls = blocks * bench.sizes.tools
    return [(getattr(many, what) - getattr(none, what)) * 1e3 / calls for many, none in pairs]


if __name__ == "__main__":
    main(__doc__, tools)
