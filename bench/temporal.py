"""Temporal: what recording, importing, replaying, forking and bisecting a workflow takes.

    python bench/temporal.py [--quick] [--write]

`--write` puts the table into docs/benchmarks.md.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent))

import page
import tables
from contenders import WORKLOADS, run, told
from tables import Row


class Sizes(msgspec.Struct, frozen=True):
    """How much is done. `lengths`: activities of three histories, each twice as long as the one before; `runs`: on the
    server, of each sort."""

    rounds: int
    lengths: tuple[int, int, int]
    runs: int


FULL = Sizes(rounds=3, lengths=(500, 1000, 2000), runs=20)
QUICK = Sizes(rounds=1, lengths=(50, 100, 200), runs=3)


def _costs(*words: object, workload: str = "workflow_costs.py") -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder, "figures.json")
        run([sys.executable, WORKLOADS / workload, *words, figures])
        found: dict[str, float] = json.loads(figures.read_text())
        return found


def _histories(sizes: Sizes) -> Iterator[Row]:
    found = [[_costs("history", length) for _ in range(sizes.rounds)] for length in sizes.lengths]
    short, middle, long = sizes.lengths
    for what in ("import", "replay"):
        took = [[each[what] for each in rounds] for rounds in found]
        for length, seconds in zip(sizes.lengths, took, strict=True):
            yield Row(f"{what} of a history of {length:,} activities", "CPU ms", [each * 1e3 for each in seconds])
        # What an activity more takes, late and early: what is quadratic would double.
        growth = [
            ((last - between) / (long - middle)) / ((between - first) / (middle - short))
            for first, between, last in zip(*took, strict=True)
        ]
        title = f"{what}: an activity more, near {(middle + long) // 2:,} / near {(short + middle) // 2:,}"
        yield Row(title, "", growth, 1.4)
    sizes_of = [each["bytes"] / each["json"] for each in found[-1]]
    yield Row(f"file of {long:,} activities / its JSON", "", sizes_of)


_PLACES = (1, 20, 40)  # of the bad answer


def _bisects(sizes: Sizes) -> Iterator[Row]:
    rounds = [[_costs("bisect", place) for place in _PLACES] for _ in range(sizes.rounds)]
    for what, title, unit, most in (
        ("first", "the first one in a process", "s", 1.0), ("bisect", "each one after that", "s", 1.0),
        ("probes", "probes", "", 7), ("live", "live calls", "", None),
    ):  # fmt: skip
        worst = [max(each[what] for each in found) for found in rounds]
        yield Row(f"bisect of 40 activities, at the worst of {len(_PLACES)} places: {title}", unit, worst, most)
    yield Row("the same by the command line, whole command", "s", [_command() for _ in range(sizes.rounds)])


def _command() -> float:
    """`lockstep bisect` of a bad answer in the middle, in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        store, history, judge = Path(folder, "store.db"), Path(folder, "history.json"), Path(folder, "judge.py")
        made = "import measuring; print(measuring.history(40, {20: measuring.BAD}))"
        _, status, text = told([sys.executable, "-c", made])
        assert status == 0, text
        history.write_bytes(text)
        run([sys.executable, "-m", "lockstep", "import", "--store", store, history])
        # Asked eight times, a judge that loads Lockstep would be most of what is measured.
        judge.write_text(
            "import os, sqlite3, sys\n"
            "from lockstep.log.address import parse\n"
            "from lockstep.log.store import open_store\n"
            "place = parse(os.environ['LOCKSTEP_RUN'])\n"
            "with open_store(os.environ['LOCKSTEP_STORE']) as store:\n"
            "    reader = store.run(place.path, place.branch)\n"
            "    ends = [seq for seq, event in reader.heads(reader.main) if event.kind == 5]\n"
            "    sys.exit(reader.body(reader.main, ends[-1]) < 0)\n"
        )
        spent = run([
            sys.executable, "-m", "lockstep", "bisect", "--store", store, "measuring", "--bad",
            f"{sys.executable} {judge}", "--live", "measure", "--target", "measuring",
        ])  # fmt: skip
        return spent.wall / 1e3


def _server(sizes: Sizes) -> Iterator[Row]:
    found = [_costs(sizes.runs, workload="workflow_server.py") for _ in range(sizes.rounds)]
    for what, title in (
        ("fresh", "fresh run of 5 activities on the development server"), ("recorded", "the same, recorded"),
        ("fork", "fork of it with another first answer, no server: median of 50"),
    ):  # fmt: skip
        yield Row(title, "ms", [each[what] * 1e3 for each in found])
    yield Row("fork / fresh run", "", [each["fork"] / each["fresh"] for each in found], 0.2)


def measure(sizes: Sizes, show: Callable[[str], object]) -> list[Row]:
    """Measures all; each line is shown as it is known."""
    rows: list[Row] = []
    for part in (_server, _histories, _bisects):
        for row in part(sizes):
            rows.append(row)
            title, unit, shown, goal = row.cells()
            show(f"{title:<72}{unit:<7}{shown:>14}   {goal}".rstrip())
    return rows


def main() -> None:
    asked = page.asked(__doc__)
    rows = measure(QUICK if asked.quick else FULL, lambda text: print(text, flush=True))
    if asked.write:
        page.write("temporal", tables.of_rows(rows), {"temporalio": version("temporalio")})


if __name__ == "__main__":
    main()
