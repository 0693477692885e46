"""Plants faults in agents, has bisect look for them, and says how often it was right.

    python -m bench.planted run --agent plain         # trials of one agent, into build/planted/plain.jsonl
    python -m bench.planted table [--write]           # the tables of all of them

A run that was cut off goes on where it was. `--drawn` draws the rates of rescued and spoiled probes anew in each trial,
from what the search expects of them; with `--breaks 0.2` one probe in five breaks down. `--write` puts the tables into
docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import msgspec
from bench.planted import faults, peer, table, trial
from bench.planted.agents import AGENTS
from bench.planted.provider import Dice
from bench.planted.trial import BUDGET, ONCE, OWN, Agent, Trial

_ROOT = Path(__file__).resolve().parent.parent.parent
_FOUND = _ROOT / "build" / "planted"


class Plan(msgspec.Struct, frozen=True):
    """How much is tried with an agent where nobody says: a probe of plain Python takes some 50 ms, one of a browser
    seconds."""

    steps: tuple[int, ...] = (8, 16)
    rescues: tuple[float, ...] = (0.0, 0.5)
    trials: int = 40


_PLANS = {
    "plain": Plan(faults.STEPS, faults.RESCUES, 200),
    "plain-quoting": Plan((8, 16, 52), (0.5,), 100),
    "langgraph": Plan(trials=200),
    "temporal": Plan(trials=200),
    "playwright": Plan((8,), trials=15),
    peer.NAME: Plan(trials=20),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="trials of one agent")
    run.add_argument("--agent", choices=[*AGENTS, peer.NAME], default="plain")
    run.add_argument("--steps", type=int, nargs="+", help="how long its runs are")
    run.add_argument("--rescue", type=float, nargs="+", help="how likely a probe that kept the fault ends well")
    run.add_argument("--spoil", type=float, default=0.0, help="how likely one that did not ends badly")
    run.add_argument("--breaks", type=float, default=0.0, help="how likely one breaks down")
    run.add_argument("--drawn", action="store_true", help="rates are drawn from what the search expects")
    run.add_argument("--trials", type=int, help="so many of each")
    run.add_argument("--first", type=int, default=0, help="number of the first one")
    run.add_argument(
        "--search", choices=[ONCE, BUDGET, OWN], nargs="+", help="how is searched; by default with a budget"
    )
    run.add_argument("--into", type=Path, help="file for what is found, a trial to a line")
    run.add_argument("--scratch", help="directory for the stores, best one in memory")
    shown = commands.add_parser("table", help="the tables")
    shown.add_argument("files", type=Path, nargs="*")
    shown.add_argument("--write", action="store_true", help="put them into docs/benchmarks.md")
    asked = parser.parse_args()
    if asked.command == "run":
        _run(asked)
    else:
        _table(asked.files or sorted(_FOUND.glob("*.jsonl")), asked.write)


def _run(asked: argparse.Namespace) -> None:
    plan = _PLANS.get(asked.agent, Plan())
    agent = AGENTS[asked.agent]() if asked.agent in AGENTS else None
    into: Path = asked.into or _FOUND / f"{asked.agent}.jsonl"
    into.parent.mkdir(parents=True, exist_ok=True)
    done = {_key(one) for one in read(into)}
    began = time.monotonic()
    for number in range(asked.first, asked.trials or plan.trials):
        for steps in asked.steps or plan.steps:
            wanted = [(dice, _ways(asked, dice)) for dice in _dice(asked, plan, steps, number)]
            about = (asked.agent, steps, number)
            wanted = [
                (dice, left) for dice, ways in wanted
                if (left := [way for way in ways if (*about, *_rates(dice), asked.drawn, way) not in done])
            ]  # fmt: skip
            if not wanted:
                continue
            made = [*_made(agent, steps, number, wanted, asked)]
            with into.open("ab") as file:
                file.writelines(msgspec.json.encode(each) + b"\n" for each in made)
            said = (f"{each.search}@{each.rescue:.2g} {'✓' if each.right else '✗'} {each.probes}" for each in made)
            print(f"{time.monotonic() - began:6.0f} s  trial {number}, n = {steps}: {' · '.join(said)}", flush=True)


def _dice(asked: argparse.Namespace, plan: Plan, steps: int, number: int) -> Sequence[Dice]:
    if asked.drawn:
        return [trial.drawn(f"{steps} {number}")]
    return [Dice(rescue, asked.spoil, asked.breaks) for rescue in asked.rescue or plan.rescues]


def _ways(asked: argparse.Namespace, dice: Dice) -> list[str]:
    if asked.agent == peer.NAME:
        return [ONCE]
    return asked.search or [*([ONCE] if not dice.rescue and not asked.drawn else []), BUDGET]


def _rates(dice: Dice) -> tuple[float, float, float]:
    return dice.rescue, dice.spoil, dice.breaks


def _key(one: Trial) -> tuple[object, ...]:
    return one.adapter, one.steps, one.number, one.rescue, one.spoil, one.breaks, one.drawn, one.search


def _made(
    agent: Agent | None, steps: int, number: int, wanted: Sequence[tuple[Dice, list[str]]], asked: argparse.Namespace
) -> Iterator[Trial]:
    if agent is None:
        yield from peer.trials(steps, number, [dice for dice, _ in wanted])
        return
    with tempfile.TemporaryDirectory(dir=asked.scratch) as folder:
        bad = trial.planted(agent, steps, number, f"{folder}/store.db")
        for dice, ways in wanted:
            for each in trial.searched(agent, bad, dice, ways):
                yield msgspec.structs.replace(each, drawn=asked.drawn)


def read(path: Path) -> list[Trial]:
    """The trials in a file; a last line that was cut off is none."""
    if not path.exists():
        return []
    return [msgspec.json.decode(line, type=Trial) for line in path.read_bytes().splitlines() if line.endswith(b"}")]


def _table(files: Sequence[Path], write: bool) -> None:
    shown = table.of_trials([one for path in files for one in read(path)])
    print(shown)
    if write:
        sys.path.insert(0, str(_ROOT / "bench"))
        import page

        page.write("planted", shown, _versions(), "python -m bench.planted")


def _versions() -> dict[str, str]:
    """Of the frameworks: two have environments of their own."""
    found = {name: version(name) for name in ("langgraph", "temporalio", "playwright")}
    for name, pins in (("autogen-agentchat", "autogen"), ("crewai", "crewai")):
        pinned = re.search(rf"^{name}==(\S+)", (_ROOT / f"constraints-{pins}.txt").read_text(), re.MULTILINE)
        if pinned is not None:
            found[name] = pinned[1]
    return found


if __name__ == "__main__":
    main()
