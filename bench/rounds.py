"""Rounds of measurements that take turns, and the lines of the table that come of them.

Every figure is from programs that know of neither tool, each in a fresh process, started by each tool's own
command line. Shown is the median of the rounds and half the distance between the lowest and the highest of
them. CPU figures bear a busy machine better than wall times.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
from contenders import BARE, OURS, PEER, RECORD, REPLAY, WORKLOADS, Contender, run, serving


class Sizes(msgspec.Struct, frozen=True):
    """How much is done."""

    rounds: int
    posts: int
    blocks: int
    tools: int
    reads: int
    streams: int
    stored: tuple[int, ...]
    peer_chat: int  # of growing chats the peer stores the whole history each time: no more calls than this
    tapes: tuple[int, ...]
    peer_tape: int
    replays: int
    bisects: int


FULL = Sizes(
    rounds=5, posts=60, blocks=5, tools=1000, reads=10_000, streams=2, stored=(50, 500, 2000), peer_chat=500,
    tapes=(100_000, 1_000_000), peer_tape=100_000, replays=20, bisects=3,
)  # fmt: skip
QUICK = Sizes(
    rounds=2, posts=30, blocks=3, tools=300, reads=3_000, streams=1, stored=(50, 500), peer_chat=50,
    tapes=(100_000,), peer_tape=100_000, replays=5, bisects=1,
)  # fmt: skip


class Row(msgspec.Struct, frozen=True):
    """One line of the table: what each contender needed, in every round; none where it has no such thing.

    peer_over   goal: the peer's figure divided by ours is at least this
    most        goal: our figure is at most this
    """

    title: str
    unit: str
    bare: Sequence[float] = ()
    ours: Sequence[float] = ()
    peer: Sequence[float] = ()
    peer_over: float | None = None
    most: float | None = None


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

    def rounds(self, contenders: Sequence[Contender] = (BARE, OURS, PEER)) -> Iterator[tuple[Contender, Path]]:
        """Who is next, and an empty directory for it."""
        for turn in range(self.sizes.rounds):
            for contender in turned(contenders, turn):
                room = self.fresh()
                yield contender, room
                shutil.rmtree(room)

    def measured(self, script: str, args: Sequence[object], peer: bool = True) -> Figures:
        """A workload that measures itself: what it says, by contender, mode and name of the figure."""
        found: Figures = {}
        for contender, room in self.rounds((BARE, OURS, PEER) if peer else (BARE, OURS)):
            figures = room / "figures.json"
            for mode, act in contender.acts():
                act(room, [WORKLOADS / script, figures, *args])
                for name, values in json.loads(figures.read_text()).items():
                    found.setdefault((contender.name, mode, name), []).append(statistics.median(values))
                figures.unlink()
        return found

    def alone(self, command: Sequence[object], room: Path) -> dict[str, list[float]]:
        """A program that measures itself and runs under nobody."""
        figures = room / "figures.json"
        run([*command, figures])
        found: dict[str, list[float]] = json.loads(figures.read_text())
        figures.unlink()
        return found


type Figures = dict[tuple[str, str, str], list[float]]  # (contender, mode, figure) -> rounds
type Part = Callable[[Bench], Iterator[Row]]


def of(found: Figures, contender: Contender, mode: str, name: str) -> list[float]:
    """A contender's rounds of a figure; the bare program is only ever recorded, by nobody."""
    return found.get((contender.name, RECORD if contender is BARE else mode, name), [])


def added(of: Sequence[float], to: Sequence[float]) -> list[float]:
    """What `of` takes beyond `to`, round by round."""
    return [mine - bare for mine, bare in zip(of, to, strict=True)] if of else []


def turned[T](items: Sequence[T], turn: int) -> list[T]:
    """The items in another order each time, so that none always comes after the same."""
    at = turn % len(items)
    return [*items[at:], *items[:at]]


def number(value: float) -> str:
    digits = 3 if abs(value) < 1 else 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:,.{digits}f}"


def figure(values: Sequence[float]) -> str:
    if not values:
        return "-"
    middle = statistics.median(values)
    shown = number(middle)
    if len(values) == 1 or not middle:
        return shown
    return f"{shown} ±{(max(values) - min(values)) / 2 / abs(middle):.0%}"


def quotient(of: Sequence[float], to: Sequence[float]) -> float | None:
    if not of or not to or statistics.median(to) <= 0:
        return None
    return statistics.median(of) / statistics.median(to)


def ratio(of: Sequence[float], to: Sequence[float]) -> str:
    found = quotient(of, to)
    return "-" if found is None else f"{found:.2f}" if found < 10 else f"{found:,.0f}"


def reached(row: Row) -> bool | None:
    """Whether a line reaches its goal; None without one."""
    if row.peer_over is not None:
        found = quotient(row.peer, row.ours)
        # What costs no more than the bare program has no ratio, and needs none.
        return found >= row.peer_over if found is not None else statistics.median(row.ours) <= 0 < len(row.peer)
    if row.most is not None:
        return statistics.median(row.ours) <= row.most
    return None


def goal(row: Row) -> str:
    found = reached(row)
    if found is None:
        return ""
    wanted = f"peer/ours ≥ {row.peer_over:g}" if row.peer_over is not None else f"≤ {row.most:g}"
    return f"{wanted}: {'yes' if found else 'NO'}"


_HEAD = ("", "unit", "bare", "ours", "peer", "ours/bare", "peer/ours", "goal")
_WIDTHS = (64, 12, 13, 13, 14, 10, 10, 22)


def cells(row: Row) -> tuple[str, ...]:
    figures = (figure(row.bare), figure(row.ours), figure(row.peer))
    return (row.title, row.unit, *figures, ratio(row.ours, row.bare), ratio(row.peer, row.ours), goal(row))


def line(texts: Sequence[str]) -> str:
    first, unit, *rest = texts
    shown = "".join(f"{text:>{width}}" for text, width in zip(rest, _WIDTHS[2:], strict=True))
    return f"{first:<{_WIDTHS[0]}}{unit:<{_WIDTHS[1]}}{shown}".rstrip()


def markdown(rows: Sequence[Row]) -> str:
    lines = [_HEAD, ("---", "---", "--:", "--:", "--:", "--:", "--:", "---"), *map(cells, rows)]
    return "\n".join(f"| {' | '.join(each)} |" for each in lines)


def measure(parts: Sequence[Part], quick: bool, show: Callable[[str], object]) -> list[Row]:
    """Runs parts one after the other; each line is shown as it is known."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, serving() as url:
        bench = Bench(QUICK if quick else FULL, url, Path(folder))
        for contender in (OURS, PEER):  # both have their bytecode compiled before anything is measured
            room = bench.fresh()
            command = [WORKLOADS / "post.py", room / "figures.json", "httpx", bench.url, 1, 1]
            contender.record(room, command)
            contender.replay(room, command)
        show(line(_HEAD))
        for part in parts:
            for row in part(bench):
                rows.append(row)
                show(line(cells(row)))
    return rows


def main(description: str | None, *parts: Part) -> None:
    """The command line of a part that is run alone."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small run: shows that it works, and the order of size")
    parser.add_argument("--json", action="store_true", help="every round's figures, as one object on stdout")
    asked = parser.parse_args()
    rows = measure(parts, asked.quick, (lambda _: None) if asked.json else (lambda text: print(text, flush=True)))
    if asked.json:
        print(msgspec.json.encode(rows).decode())


PER_CALL = {"thread": ("agent's thread", "CPU µs"), "process": ("all threads", "CPU µs"), "wall": ("time", "wall µs")}
WHOLE = {"cpu": "CPU ms", "wall": "wall ms"}  # of a command
MODES = (RECORD, REPLAY)
