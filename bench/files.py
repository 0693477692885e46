"""What it costs a program that its files and variables are recorded, and served.

    python bench/files.py [--times 2000]

Microseconds of the program's own time for a call: bare, with the taps in place and no session, recording and
replaying. `unchanged`: the file is what it was; `served`: it has other content now, so the recorded one stands in.
Each figure is the best of several rounds in one process.
"""

from __future__ import annotations

import argparse
import builtins
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from lockstep.log import untapped
from lockstep.session.session import finish, start_recording, start_replay

ROUNDS = 7

_open, _stat, _listdir = builtins.open, os.stat, os.listdir  # before the taps


def _read() -> None:
    with open("small.txt") as file:
        file.read()


def _bare_read() -> None:
    with _open("small.txt") as file:
        file.read()


CALLS: Mapping[str, tuple[Callable[[], object], Callable[[], object]]] = {
    "open, read 200 bytes, close": (_bare_read, _read),
    "os.stat": (lambda: _stat("small.txt"), lambda: os.stat("small.txt")),
    "os.stat outside of the project": (lambda: _stat("/"), lambda: os.stat("/")),
    "os.listdir of 20 names": (lambda: _listdir("names"), lambda: os.listdir("names")),
    "os.environ.get": (lambda: os.environ.get("HOME"), lambda: os.environ.get("HOME")),
}


def best(call: Callable[[], object], times: int) -> float:
    """Microseconds a call."""
    found = []
    for _ in range(ROUNDS):
        began = untapped.monotonic_ns()
        for _ in range(times):
            call()
        found.append((untapped.monotonic_ns() - began) / times / 1000)
    return min(found)


def measure(times: int) -> dict[str, list[float]]:
    """For each call: bare, inert, recording, replaying unchanged, replaying served."""
    found = {name: [best(bare, times)] for name, (bare, _) in CALLS.items()}

    def round_(session: object = None) -> None:
        for name, (_, call) in CALLS.items():
            found[name].append(best(call, times))
        if session is not None:
            finish(session, None, None)  # type: ignore[arg-type]

    finish(start_recording("../files.db", "warm", {}), None, None)
    round_()
    round_(start_recording("../files.db", "files", {}))
    round_(start_replay("../files.db", "files"))
    Path("small.txt").write_text("y" * 200)
    os.rename("names", "gone")
    round_(start_replay("../files.db", "files"))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=2000)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        project = Path(directory, "project")
        (project / "names").mkdir(parents=True)
        (project / "small.txt").write_text("x" * 200)
        for number in range(20):
            (project / "names" / f"{number}.txt").touch()
        os.chdir(project)
        found = measure(asked.times)
        os.chdir("/")
    columns = ("bare", "inert", "recording", "unchanged", "served")
    print(f"{'µs a call':34}" + "".join(f"{column:>11}" for column in columns))
    for name, figures in found.items():
        print(f"{name:34}" + "".join(f"{figure:11.2f}" for figure in figures))


if __name__ == "__main__":
    main()
