"""A streamed answer of six events 100 ms apart, read by httpx: when its first event comes, and its end."""

from __future__ import annotations

from collections.abc import Iterator

from contenders import BARE, OURS, PEER, RECORD
from rounds import MODES, Bench, Row, added, main, of


def stream(bench: Bench) -> Iterator[Row]:
    found = bench.measured("stream.py", (bench.url, bench.sizes.streams))
    for mode in MODES:
        for name, what in (("first", "first event"), ("total", "to its end")):
            bare, ours, peer = (of(found, contender, mode, name) for contender in (BARE, OURS, PEER))
            yield Row(f"stream, {mode}: {what}", "wall ms", bare, ours, peer)
            if mode == RECORD and name == "first":
                yield Row(
                    f"stream, {mode}: {what} later by", "wall ms", (), added(ours, bare), added(peer, bare), most=5
                )


if __name__ == "__main__":
    main(__doc__, stream)
