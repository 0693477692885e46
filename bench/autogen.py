"""AutoGen: what recording a team's run takes and stores, beside saving the team's state at each turn.

    python bench/autogen.py [--quick] [--write]

`--write` puts the table into docs/benchmarks.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent))

import page
import tables
from contenders import WORKLOADS, run
from tables import Row

TITLES = {"bare": "not recorded", "dumped": "its state saved at each turn", "recorded": "recorded"}
WAYS = (*TITLES,)

type Found = dict[str, list[dict[str, float]]]


class Sizes(msgspec.Struct, frozen=True):
    """How much is done."""

    rounds: int
    turns: int


FULL = Sizes(rounds=5, turns=200)
QUICK = Sizes(rounds=2, turns=40)


@contextmanager
def _model() -> Iterator[str]:
    """A model in a process of its own; its URL."""
    command = [sys.executable, "-m", "lockstep.testing.provider", "--script", f"{WORKLOADS / 'words.py'}:answer"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def _talk(way: str, turns: int, url: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder, "figures.json")
        run([sys.executable, WORKLOADS / "team_talk.py", way, turns, url, figures])
        found: dict[str, float] = json.loads(figures.read_text())
        return found


def _rounds(sizes: Sizes, url: str) -> Found:
    """The ways in turns. `url`: the model's, "-" for one in the team's own process that takes no time."""
    found: Found = {way: [] for way in WAYS}
    for turn in range(sizes.rounds):
        for way in (*WAYS[turn % 3 :], *WAYS[: turn % 3]):
            found[way].append(_talk(way, sizes.turns, url))
    return found


def measure(sizes: Sizes, show: Callable[[str], object]) -> list[Row]:
    """Measures all; each line is shown at the end."""
    with _model() as url:
        rows = [*_rows(sizes, _rounds(sizes, url))]
    rows += _ratios(f"{sizes.turns} turns with a model that takes no time", _rounds(sizes, "-"), None)
    for row in rows:
        title, unit, shown, goal = row.cells()
        show(f"{title:<84}{unit:<7}{shown:>14}   {goal}".rstrip())
    return rows


def _rows(sizes: Sizes, found: Found) -> Iterator[Row]:
    many = f"{sizes.turns} turns"
    for way, title in TITLES.items():
        yield Row(f"{many}, {title}", "CPU s", [each["cpu"] for each in found[way]])
        yield Row(f"{many}, {title}", "wall s", [each["wall"] for each in found[way]])
    yield from _ratios(many, found, 1.5)
    for way in ("dumped", "recorded"):
        yield Row(f"{many}, {TITLES[way]}: stored", "kB", [each["bytes"] / 1e3 for each in found[way]])
    share = [ours["bytes"] / theirs["bytes"] for ours, theirs in zip(found["recorded"], found["dumped"], strict=True)]
    yield Row("recorded / saved states: stored", "", share, 0.1)


def _ratios(many: str, found: Found, most: float | None) -> Iterator[Row]:
    """Both times have the goal: how long a run takes is the wall's, and that of a busy machine says less."""
    for what, unit in (("cpu", "CPU"), ("wall", "wall")):
        for way in ("dumped", "recorded"):
            ratio = [one[what] / bare[what] for one, bare in zip(found[way], found["bare"], strict=True)]
            goal = most if way == "recorded" else None
            yield Row(f"{many}, {TITLES[way]} / not recorded", unit, ratio, goal)


def main() -> None:
    asked = page.asked(__doc__)
    rows = measure(QUICK if asked.quick else FULL, lambda text: print(text, flush=True))
    if asked.write:
        page.write("autogen", tables.of_rows(rows), {"autogen-agentchat": version("autogen-agentchat")})


if __name__ == "__main__":
    main()
