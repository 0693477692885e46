"""What it costs to compare two long runs: seconds, memory, and how many payloads are read.

    python bench/diff.py [--events 100000]

Two runs of so many events each, in one store: equal ones; with a few changed, added and removed calls among the equal
ones; with an answer that differs in every call by an id (payloads of all calls are read); and with nothing in common.
`peak` is what the comparison takes at most beside what the process had before it, `read` the payloads fetched. Each
comparison runs in a process of its own.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from lockstep.log.canonical import digest, key
from lockstep.log.model import Event, Kind, RunState, Status
from lockstep.log.store import open_store

type Call = tuple[str, Any, Any]  # name, arguments, answer

_AT_ONCE = 1000  # events of one commit


def same(count: int, _: str) -> Iterator[Call]:
    for number in range(count):
        yield "get_order", {"order": number % (count // 2)}, {"order": number, "total": 4000, "items": ["tea", "cup"]}


def few(count: int, side: str) -> Iterator[Call]:
    chance = random.Random(1)
    for number, (name, arguments, answer) in enumerate(same(count, side)):
        roll = chance.random()
        if side == "b" and roll < 0.001:
            answer = {**answer, "total": 450}
        elif side == "b" and roll < 0.002:
            arguments = {"order": -number}
        elif side == "b" and roll < 0.003:
            yield "get_policy", {"topic": f"number {number}"}, "a policy"
        elif side == "b" and roll < 0.004:
            continue
        yield name, arguments, answer


def ids(count: int, side: str) -> Iterator[Call]:
    chance = random.Random(side)
    for number in range(count):
        yield "open_case", {"order": number}, {"case": f"case_{chance.getrandbits(96):024x}", "order": number}


def nothing(count: int, side: str) -> Iterator[Call]:
    for number in range(count):
        yield "get_order", {"order": f"{side}{number}"}, {"total": number}


LOADS: dict[str, Callable[[int, str], Iterator[Call]]] = {
    "equal": same, "a few differ": few, "an id in each": ids, "nothing in common": nothing,
}  # fmt: skip


def write(store: Path, name: str, calls: Iterator[Call]) -> None:
    with open_store(store, create=True) as opened:
        appender = opened.stream(opened.create_run(name, {"seed": b"\0" * 32, "started": time.time_ns()}), "main")
        events = [Event(Kind.LANE, 1, 0, "", "main", "main"), Event(Kind.START, 2, 1, "main", body={})]
        pos = 2
        for tool, arguments, answer in calls:
            begin, pos = pos + 1, pos + 2
            body = {"request": {"arguments": arguments}, "site": "agent.py:12 in ask", "class": "mutating"}
            asked = key("tool", tool, {"arguments": arguments})
            events.append(Event(Kind.BEGIN, begin, begin * 1000, "main", "tool", tool, key=asked, body=body))
            got = digest(answer)[:16]
            events.append(Event(Kind.END, pos, pos * 1000, "main", Status.OK, of=begin, key=got, body=answer))
            if len(events) >= _AT_ONCE:
                appender.append(events)
                events = []
        events.append(Event(Kind.FINISH, pos + 1, pos * 1000 + 1, "main", "complete", body={"end": {"exit": 0}}))
        appender.append(events)
        appender.close(RunState.COMPLETE)


def peak() -> float:
    """Megabytes, the most that this process has held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def compare(store: str) -> None:
    import lockstep
    from lockstep.log.sqlite.read import SqliteRun

    fetched = 0
    real = SqliteRun.body

    def counted(self: SqliteRun, stream: int, seq: int) -> Any:
        nonlocal fetched
        fetched += 1
        return real(self, stream, seq)

    SqliteRun.body = counted  # type: ignore[method-assign]
    _ = lockstep.diff, lockstep.Diff  # what is imported for it
    before, began = peak(), time.perf_counter()
    found = lockstep.diff("a", "b", store=store)
    took = time.perf_counter() - began
    print(f"{took:8.2f} s  peak {peak() - before:6.0f} MB  read {fetched:8,}  {len(found.differences):7,} differences")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--events", type=int, default=100_000)
    options.add_argument("--compare", help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.compare:
        compare(asked.compare)
        return
    with tempfile.TemporaryDirectory() as place:
        for name, load in LOADS.items():
            store = Path(place) / f"{name}.db"
            for side in ("a", "b"):
                write(store, side, load(asked.events // 2, side))
            print(f"{name:20}", end="", flush=True)
            subprocess.run([sys.executable, __file__, "--compare", str(store)], check=True)


if __name__ == "__main__":
    main()
