"""A POST of 1.3 kB of JSON over loopback, by httpx, requests and aiohttp. The peer knows httpx only."""

from __future__ import annotations

from collections.abc import Iterator

from contenders import BARE, OURS, PEER, RECORD
from rounds import MODES, PER_CALL, Bench, Row, added, main, of


def posts(bench: Bench) -> Iterator[Row]:
    for client in ("httpx", "requests", "aiohttp"):
        args = (client, bench.url, bench.sizes.blocks, bench.sizes.posts)
        found = bench.measured("post.py", args, peer=client == "httpx")
        for mode in MODES:
            for name, (what, unit) in PER_CALL.items():
                bare, ours, peer = (of(found, contender, mode, name) for contender in (BARE, OURS, PEER))
                yield Row(f"{client} POST, {mode}: {what}", unit, bare, ours, peer)
                if mode == RECORD:
                    goal = 4.0 if client == "httpx" and name == "wall" else None
                    more, theirs = added(ours, bare), added(peer, bare)
                    yield Row(f"{client} POST, {mode}: {what} added", unit, (), more, theirs, peer_over=goal)


if __name__ == "__main__":
    main(__doc__, posts)
