"""Bytes that a model call takes: on disk, and in an export; with a system prompt that all share, in a chat that
grows, and through a real client.

The same calls are given to both tools' own writers; text is runs of words from a small vocabulary, which
compresses as language does. Through a client come headers and ids of the provider, and the text is hexadecimal:
the hard case.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from contenders import OURS, PEER, WORKLOADS, run
from rounds import Bench, Row, main


def stored(bench: Bench) -> Iterator[Row]:
    for load, title in (("calls", "model calls, 1.4 kB request"), ("chat", "growing chat, 2 kB a call")):
        for count in bench.sizes.stored:
            room = bench.fresh()
            run([sys.executable, WORKLOADS / "stored_run.py", room / "store.db", load, count])
            ours = _size(room / "store.db")
            theirs: list[float] = []
            if load == "calls" or count <= bench.sizes.peer_chat:
                run([PEER.python, WORKLOADS / "stored_tape.py", room / "tape.gz", load, count])
                theirs = [_size(room / "tape.gz") / count]
            goal = 354 if (load, count) == ("calls", 2000) else None
            yield Row(f"{count} {title}: store", "B a call", (), [ours / count], theirs, most=goal)
            yield Row(f"{count} {title}: store", "B an event", (), [ours / count / 2], [each / 2 for each in theirs])
            OURS.export(room / "store.db", "bench", room / "run.tape")
            exported = _size(room / "run.tape")
            yield Row(f"{count} {title}: export", "B a call", (), [exported / count], theirs, most=goal)
    for count in bench.sizes.stored:
        sizes: list[list[float]] = []
        for contender in (OURS, PEER):
            room = bench.fresh()
            contender.record(room, [WORKLOADS / "calls.py", bench.url, count])
            sizes.append([contender.stored(room) / count])
        yield Row(f"{count} httpx calls of hexadecimal text: store", "B a call", (), sizes[0], sizes[1])


def _size(path: Path) -> int:
    # Not `-shm`, which is memory that processes share.
    beside = (path, path.with_name(path.name + "-wal"))
    return sum(each.stat().st_size for each in beside if each.exists())


if __name__ == "__main__":
    main(__doc__, stored)
