"""What recording and replaying cost, side by side with lockstepd, the best tool of its kind that there was.

    python bench/compare.py [--quick] [--json] [--only WORD]

Every figure is from programs that know of neither tool, each in a fresh process, started by each tool's own
command line, in rounds that take turns. Shown is the median of the rounds, and half the distance between
the lowest and the highest of them. CPU figures bear a busy machine better than wall times.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent))

from contenders import BARE, OURS, PEER, RECORD, REPLAY, WORKLOADS, Contender, Spent, run, serving


class Sizes(msgspec.Struct, frozen=True):
    """How much is done."""

    rounds: int
    posts: int
    blocks: int
    reads: int
    streams: int
    stored: tuple[int, ...]
    events: int
    replays: int


FULL = Sizes(rounds=5, posts=60, blocks=5, reads=10_000, streams=3, stored=(12, 200, 2000), events=100_000, replays=20)
QUICK = Sizes(rounds=3, posts=30, blocks=2, reads=2_000, streams=1, stored=(12, 200), events=20_000, replays=5)


class Row(msgspec.Struct, frozen=True):
    """One line of the table: what each contender needed, in every round; none where it has no such thing."""

    title: str
    unit: str
    bare: list[float] = []
    ours: list[float] = []
    peer: list[float] = []


class Bench:
    """The rounds of the workloads, in a directory of their own."""

    def __init__(self, sizes: Sizes, url: str, room: Path) -> None:
        self.sizes = sizes
        self.url = f"{url}/v1/chat/completions"
        self._room = room
        self._rooms = 0

    def fresh(self) -> Path:
        self._rooms += 1
        room = self._room / str(self._rooms)
        room.mkdir()
        return room

    def rounds(self, peer: bool = True) -> Iterator[tuple[Contender, Path]]:
        """Who is next, and an empty directory for it."""
        contenders: list[Contender] = [BARE, OURS, PEER] if peer else [BARE, OURS]
        for turn in range(self.sizes.rounds):
            for contender in turned(contenders, turn):
                room = self.fresh()
                yield contender, room
                shutil.rmtree(room)

    def inside(
        self, title: str, script: str, args: tuple[object, ...], names: dict[str, tuple[str, str]], peer: bool = True
    ) -> Iterator[Row]:
        """A workload that measures itself. `names`: what a row is called and its unit, by the figure's name."""
        found: dict[tuple[str, str, str], list[float]] = {}
        for contender, room in self.rounds(peer):
            figures = room / "figures.json"
            for mode, act in contender.acts():
                act(room, [WORKLOADS / script, figures, *args])
                for name, values in json.loads(figures.read_text()).items():
                    found.setdefault((contender.name, mode, name), []).append(statistics.median(values))
                figures.unlink()
        for mode in (RECORD, REPLAY):
            for name, (what, unit) in names.items():
                bare = found[BARE.name, RECORD, name]
                ours, theirs = found[OURS.name, mode, name], found.get((PEER.name, mode, name), [])
                yield Row(f"{title}, {mode}: {what}", unit, bare, ours, theirs)

    def posts(self) -> Iterator[Row]:
        args = (self.url, self.sizes.blocks, self.sizes.posts)
        yield from self.inside("httpx POST of 1.3 kB", "post.py", args, PER_CALL)

    def stream(self) -> Iterator[Row]:
        names = {"first": ("first event", "wall ms"), "total": ("to its end", "wall ms")}
        yield from self.inside("stream, 6 x 100 ms", "stream.py", (self.url, self.sizes.streams), names)

    def reads(self) -> Iterator[Row]:
        names = {name: PER_CALL[name] for name in ("thread", "process")}
        for source, title in (("clock", "time.time()"), ("random", "random.random()")):
            yield from self.inside(title, "reads.py", (source, self.sizes.blocks, self.sizes.reads), names)

    def tool(self) -> Iterator[Row]:
        args = (self.sizes.blocks, self.sizes.posts * 4)
        yield from self.inside("@lockstep.tool, 200 B", "tool.py", args, PER_CALL, peer=False)

    def start(self) -> Iterator[Row]:
        found: dict[tuple[str, str], list[Spent]] = {}
        for contender, room in self.rounds():
            for mode, act in contender.acts():
                found.setdefault((contender.name, mode), []).append(act(room, [WORKLOADS / "empty.py"]))
        for mode in (RECORD, REPLAY):
            each = found[BARE.name, RECORD], found[OURS.name, mode], found[PEER.name, mode]
            for what, unit in WHOLE.items():
                values = [[float(getattr(spent, what)) for spent in spents] for spents in each]
                yield Row(f"empty program, {mode}: whole command", unit, *values)

    def stored(self) -> Iterator[Row]:
        for count in self.sizes.stored:
            sizes: list[list[float]] = []
            for contender in (OURS, PEER):
                room = self.fresh()
                contender.record(room, [WORKLOADS / "calls.py", self.url, count])
                sizes.append([contender.stored(room) / count])
            yield Row(f"stored, {count} model calls", "bytes a call", [], *sizes)

    def long(self) -> Iterator[Row]:
        count = self.sizes.events
        room = self.fresh()
        ours, theirs = (sys.executable, WORKLOADS / "long_run.py"), (PEER.python, WORKLOADS / "long_tape.py")
        run([*ours, "write", room / "run", count])
        run([*theirs, "write", room / "tape", count])
        readers: list[tuple[str, list[object]]] = [
            ("ours", [*ours, "read", room / "run", count]),
            ("whole", [*theirs, "read", room / "tape", count]),
            ("scan", [*theirs, "scan", room / "tape", count]),
        ]
        found: dict[tuple[str, str], list[float]] = {}
        for turn in range(self.sizes.rounds):
            for name, command in turned(readers, turn):
                run([*command, room / "figures.json"])
                for what, values in json.loads((room / "figures.json").read_text()).items():
                    found.setdefault((name, what), []).extend(values)
        for reader, title in (("whole", "open, read the middle"), ("scan", "the same, peer's streaming reader")):
            for what, unit in {"process": "CPU ms", "wall": "wall ms", "memory": "MB more"}.items():
                label = f"run of {count:,} events: {title}"
                yield Row(label, unit, [], found["ours", what], found[reader, what])

    def verify(self) -> Iterator[Row]:
        times = self.sizes.replays
        command = [WORKLOADS / "calls.py", self.url, 12]
        spent = []
        for contender in (OURS, PEER):
            room = self.fresh()
            contender.record(room, command)
            spent.append(contender.verify(room, command, times))
        bare = [BARE.record(room, command) for _ in range(3)]
        for what, unit in WHOLE.items():
            once = [getattr(each, what) for each in bare]
            per = [[getattr(each, what) / times] for each in spent]
            yield Row(f"verify x {times} of 12 calls: a replay", unit, once, *per)


WHOLE = {"cpu": "CPU ms", "wall": "wall ms"}
PER_CALL = {
    "thread": ("agent's thread", "CPU µs"),
    "process": ("all threads", "CPU µs"),
    "wall": ("time", "wall µs"),
}


def turned[T](items: list[T], turn: int) -> list[T]:
    """The items in another order each time, so that none always comes after the same."""
    at = turn % len(items)
    return items[at:] + items[:at]


WORK: dict[str, Callable[[Bench], Iterator[Row]]] = {
    "post": Bench.posts,
    "stream": Bench.stream,
    "reads": Bench.reads,
    "tool": Bench.tool,
    "start": Bench.start,
    "stored": Bench.stored,
    "long": Bench.long,
    "verify": Bench.verify,
}


def figure(values: list[float]) -> str:
    if not values:
        return "-"
    middle = statistics.median(values)
    digits = 3 if middle < 1 else 2 if middle < 10 else 1 if middle < 100 else 0
    shown = f"{middle:,.{digits}f}"
    if len(values) == 1 or not middle:
        return shown
    return f"{shown} ±{(max(values) - min(values)) / 2 / middle:3.0%}"


def ratio(of: list[float], to: list[float]) -> str:
    if not of or not to or not statistics.median(to):
        return "-"
    found = statistics.median(of) / statistics.median(to)
    return f"{found:.2f}" if found < 10 else f"{found:,.0f}"


COLUMNS = f"{'':<62}{'unit':<13}{'bare':>13}{'ours':>13}{'peer':>13}{'ours:bare':>11}{'peer:ours':>11}"


def line(row: Row) -> str:
    shown = "".join(f"{figure(values):>13}" for values in (row.bare, row.ours, row.peer))
    return f"{row.title:<62}{row.unit:<13}{shown}{ratio(row.ours, row.bare):>11}{ratio(row.peer, row.ours):>11}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small run: shows that it works, and the order of size")
    parser.add_argument("--json", action="store_true", help="every round's figures, as one object on stdout")
    parser.add_argument("--only", choices=WORK, action="append", help="one workload (may be repeated)")
    asked = parser.parse_args()
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, serving() as url:
        bench = Bench(QUICK if asked.quick else FULL, url, Path(folder))
        if not asked.json:
            print(COLUMNS)
        for contender in (OURS, PEER):  # both have their bytecode compiled before anything is measured
            room = bench.fresh()
            command = [WORKLOADS / "post.py", room / "figures.json", bench.url, 1, 1]
            contender.record(room, command)
            contender.replay(room, command)
        for name in asked.only or WORK:
            for row in WORK[name](bench):
                rows.append(row)
                if not asked.json:
                    print(line(row), flush=True)
    if asked.json:
        print(msgspec.json.encode({"peer": "lockstepd 0.2.0b0", "rows": rows}).decode())


if __name__ == "__main__":
    main()
