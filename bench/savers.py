"""LangGraph's checkpointers and ours, side by side: the same graph, the same chat, each in a process of its own.

    python bench/savers.py [--quick] [--write]

`--write` puts the table into docs/benchmarks.md. It is no module called `langgraph`, which would hide the real one.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent))

import page
import tables
from contenders import WORKLOADS, run
from rounds import figure, turned

MEMORY, SQLITE, ASYNC_SQLITE, OURS, OURS_ASYNC = SAVERS = ("memory", "sqlite", "async-sqlite", "ours", "ours-async")
_PEERS = ("langgraph", "langgraph-checkpoint", "langgraph-checkpoint-sqlite")
_HEADS = ("InMemorySaver", "SqliteSaver", "AsyncSqliteSaver", "Lockstep", "Lockstep, async")

type Found = dict[str, dict[str, list[float]]]  # saver -> figure -> rounds


class Sizes(msgspec.Struct, frozen=True):
    """How much is done. `growing`: between which of these numbers of steps the growth is measured; `long`: a chat that
    only ours has, of which the last puts are compared with early ones."""

    rounds: int
    steps: int
    growing: tuple[int, int, int, int]
    long: int


FULL = Sizes(rounds=3, steps=500, growing=(400, 600, 900, 1100), long=5000)
QUICK = Sizes(rounds=1, steps=100, growing=(60, 100, 160, 240), long=300)


class Goal(msgspec.Struct, frozen=True):
    """A quotient of two figures, and its bound. `least`: at least that, else at most."""

    of: str
    to: str
    bound: float
    least: bool = False

    def text(self, figures: Mapping[str, Sequence[float]]) -> str:
        value = statistics.median(figures[self.of]) / statistics.median(figures[self.to])
        fine = value >= self.bound if self.least else value <= self.bound
        sign = "≥" if self.least else "≤"
        names = {OURS: "Lockstep", MEMORY: "InMemorySaver", SQLITE: "SqliteSaver"}
        what = f"{names.get(self.of, self.of)} / {names.get(self.to, self.to)}"
        return f"{what} {sign} {self.bound:g}: {value:.2f}, {'yes' if fine else 'NO'}"


class Row(msgspec.Struct, frozen=True):
    """One line of the table: a figure of each saver that has it, by name, in every round."""

    title: str
    unit: str
    figures: dict[str, list[float]]
    goals: tuple[Goal, ...] = ()

    def cells(self) -> tuple[str, ...]:
        shown = [figure(self.figures.get(saver, [])) for saver in SAVERS]
        return (self.title, self.unit, *shown, "<br>".join(goal.text(self.figures) for goal in self.goals))


def _over(bound: float) -> Goal:
    return Goal(SQLITE, OURS, bound, least=True)


def _upto(bound: float) -> Goal:
    return Goal(OURS, MEMORY, bound)


# (figure of the workload, title, unit, factor, goals)
_FIGURES: tuple[tuple[str, str, str, float, tuple[Goal, ...]], ...] = (
    ("run", "the whole run", "s", 1, ()),
    ("put", "put, median", "ms", 1e3, (_over(20), _upto(2))),
    ("put: CPU", "put, CPU of its thread, median", "ms", 1e3, ()),
    ("put_writes", "put_writes, median", "ms", 1e3, ()),
    ("latest", "latest state", "ms", 1e3, (_upto(2),)),
    ("list", "listing all checkpoints by metadata", "ms", 1e3, (_over(50),)),
    ("history", "whole state history", "ms", 1e3, (_over(5),)),
    ("bytes", "file, closed", "kB", 1e-3, (_over(50),)),
    ("latest, opened", "latest state, store just opened", "ms", 1e3, ()),
)


def _chat(saver: str, steps: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder, "figures.json")
        room = Path(folder, "room")
        room.mkdir()
        run([sys.executable, WORKLOADS / "saved_chat.py", saver, steps, room, figures])
        found: dict[str, float] = json.loads(figures.read_text())
        return found


def _side_by_side(sizes: Sizes) -> Iterator[Row]:
    found: Found = {saver: {} for saver in SAVERS}
    for turn in range(sizes.rounds):
        for saver in turned(SAVERS, turn):
            for name, value in _chat(saver, sizes.steps).items():
                found[saver].setdefault(name, []).append(value)
    for name, title, unit, factor, goals in _FIGURES:
        figures = {saver: [value * factor for value in each[name]] for saver, each in found.items() if name in each}
        if name == "bytes":
            del figures[MEMORY]
        yield Row(f"{sizes.steps} steps: {title}", unit, figures, goals if sizes is FULL else ())


def _growing(sizes: Sizes) -> Iterator[Row]:
    """What a step adds to the file, early and late in a chat."""
    sizes_of = {steps: _chat(OURS, steps)["bytes"] for steps in sizes.growing}
    early, late = (
        (sizes_of[last] - sizes_of[first]) / (last - first) for first, last in (sizes.growing[:2], sizes.growing[2:])
    )
    middle = [sum(pair) // 2 for pair in (sizes.growing[:2], sizes.growing[2:])]
    yield Row(f"a step more, near step {middle[0]}", "B", {OURS: [early]})
    figures = {OURS: [late], "late": [late], "early": [early]}
    yield Row(f"a step more, near step {middle[1]}", "B", figures, (Goal("late", "early", 1.2),))


def _long(sizes: Sizes) -> Iterator[Row]:
    found = _chat(OURS, sizes.long)
    early, late = found["put near step 50"] * 1e3, found["put at the end"] * 1e3
    yield Row("put near step 50", "ms", {OURS: [early]})
    figures = {OURS: [late], "late": [late], "early": [early]}
    yield Row(f"put near step {sizes.long:,}", "ms", figures, (Goal("late", "early", 2),))


def measure(sizes: Sizes, show: Callable[[str], object]) -> list[Row]:
    """Measures all; each line is shown as it is known."""
    rows: list[Row] = []
    show(_line(_HEAD))
    for part in (_side_by_side, _growing, _long):
        for row in part(sizes):
            rows.append(row)
            show(_line(row.cells()))
    return rows


_HEAD = ("", "unit", *_HEADS, "goal")


def _line(cells: Sequence[str]) -> str:
    title, unit, *figures, goal = cells
    return f"{title:<48}{unit:<5}{''.join(f'{each:>18}' for each in figures)}   {goal.replace('<br>', '; ')}".rstrip()


def markdown(rows: Sequence[Row]) -> str:
    ruler = ("---", "---", *("--:" for _ in _HEADS), "---")
    return tables.markdown(_HEAD, ruler, (row.cells() for row in rows))


def main() -> None:
    asked = page.asked(__doc__)
    rows = measure(QUICK if asked.quick else FULL, lambda text: print(text, flush=True))
    if asked.write:
        page.write("savers", markdown(rows), {name: version(name) for name in _PEERS})


if __name__ == "__main__":
    main()
