"""What starting a process and reading its output costs: bare, recording, replaying.

    python bench/processes.py [--quick]

Medians of some rounds, each in this process. `true` is started and waited for; then 200 MB of zeros come through
a pipe, read in pieces of 64 KiB, and as many random bytes, which no store can make smaller.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from lockstep.log import untapped
from lockstep.session.session import finish, start_recording, start_replay

PIECE = 1 << 16


def starts(count: int) -> Callable[[], None]:
    def program() -> None:
        for _ in range(count):
            subprocess.run(["true"], check=True)

    return program


def stream(source: str, megabytes: int) -> Callable[[], None]:
    def program() -> None:
        command = ["head", "-c", str(megabytes << 20), source]
        with subprocess.Popen(command, stdout=subprocess.PIPE, bufsize=0) as process:
            assert process.stdout is not None
            while os.read(process.stdout.fileno(), PIECE):
                pass

    return program


def measure(title: str, program: Callable[[], None], each: int, unit: str, rounds: int) -> None:
    """Prints one line. `each`: what the time is divided by."""
    spent: dict[str, list[float]] = {"bare": [], "recording": [], "replaying": []}
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as room:
            store = str(Path(room) / "store.db")
            for kind, times in spent.items():
                begin = {"recording": start_recording, "replaying": start_replay}.get(kind)
                session = None
                if begin is start_recording:
                    session = start_recording(store, "run", {})
                elif begin is start_replay:
                    session = start_replay(store, "run")
                began = untapped.monotonic()
                program()
                times.append((untapped.monotonic() - began) / each)
                if session is not None:
                    report = finish(session, None, None)
                    assert kind == "recording" or report.identical, report.difference
                    assert not report.faults, report.faults
    figures = "  ".join(f"{kind} {statistics.median(times) * 1000:9.2f}" for kind, times in spent.items())
    print(f"{title:34}{figures}  ms {unit}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, 20 MB")
    quick = parser.parse_args().quick
    rounds, count, megabytes = (3, 20, 20) if quick else (5, 100, 200)
    measure("start and wait for `true`", starts(count), count, "each", rounds)
    for name, source in (("zeros", "/dev/zero"), ("random bytes", "/dev/urandom")):
        measure(f"{megabytes} MB of {name} through a pipe", stream(source, megabytes), 1, "in all", rounds)


if __name__ == "__main__":
    main()
