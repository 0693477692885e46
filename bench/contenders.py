"""The three ways to run a workload: bare, under `lockstep`, under the peer; each as its users do."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

import msgspec

ROOT = Path(__file__).resolve().parent.parent
WORKLOADS = ROOT / "bench" / "workloads"

# Nobody's program starts without its bytecode: where that is never written, every start would measure the compiler.
_LEFT_OUT = ("LOCKSTEP_", "PYTHONHASH", "PYTHONDONTWRITEBYTECODE")


class Spent(msgspec.Struct, frozen=True):
    """What a command and all that it waited for took, in milliseconds."""

    cpu: float
    wall: float


# What our own replay says of a workload that looks at the system's clocks: it cannot have been the recorded run.
_METER = re.compile(rb"not shown to be identical.*\n *not covered: ctypes clock_gettime\(\) \(bench/workloads/meter")


def run(command: Sequence[object], metered: bool = False) -> Spent:
    """Runs a command to its end. RuntimeError with what it said where it does not end well. `metered`: it may end
    with status 1, if it says that this is for the clocks that measure, and nothing else."""
    spent, status, said = told(command)
    if status and not (metered and status == 1 and _METER.search(said)):
        raise RuntimeError(f"{' '.join(map(str, command))} ended with {status}:\n{said.decode()}")
    return spent


def told(command: Sequence[object]) -> tuple[Spent, int, bytes]:
    """Runs a command to its end: what it took, its status and what it said."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(_LEFT_OUT)},
        "PYTHONPATH": os.pathsep.join(filter(None, [str(WORKLOADS), os.environ.get("PYTHONPATH")])),
    }
    began = time.perf_counter()
    with subprocess.Popen(
        [str(word) for word in command], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        said = process.stdout.read()
        _, ended, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(ended)
    return Spent((used.ru_utime + used.ru_stime) * 1e3, wall * 1e3), process.returncode, said


type Act = Callable[[Path, Sequence[object]], Spent]

RECORD, REPLAY = "recorded", "replayed"


class Contender(Protocol):
    """One way to run a program."""

    name: str

    def acts(self) -> tuple[tuple[str, Act], ...]:
        """What it does with a command, one after the other in a directory that holds one recording."""
        ...


class _Bare:
    name = "bare"

    def acts(self) -> tuple[tuple[str, Act], ...]:
        return ((RECORD, self.record),)

    def record(self, _: Path, command: Sequence[object]) -> Spent:
        return run([sys.executable, *command])


class _Ours:
    name = "ours"
    python = Path(sys.executable)

    def acts(self) -> tuple[tuple[str, Act], ...]:
        return ((RECORD, self.record), (REPLAY, self.replay))

    def record(self, room: Path, command: Sequence[object]) -> Spent:
        return self._run("record", room, "--run", "bench", "--", self.python, *command)

    def replay(self, room: Path, command: Sequence[object]) -> Spent:
        store = room / "store" / "store.db"
        return run([self.python, "-m", "lockstep", "replay", "--store", store, "bench"], metered=True)

    def verify(self, room: Path, command: Sequence[object], times: int) -> Spent:
        return self._run("verify", room, "bench", "--times", times)

    def stored(self, room: Path) -> int:
        """Bytes of the recording once all is closed. Not `-shm`, which is memory that processes share."""
        store = room / "store" / "store.db"
        return sum(path.stat().st_size for path in (store, store.with_name("store.db-wal")) if path.exists())

    def export(self, store: Path, name: str, output: Path) -> Spent:
        """The run as a file of its own."""
        return run([self.python, "-m", "lockstep", "export", "--store", store, name, "--output", output])

    def _run(self, verb: str, room: Path, *words: object) -> Spent:
        return run([self.python, "-m", "lockstep", verb, "--store", room / "store" / "store.db", *words])


class _Peer:
    """Version 0.2.0b0. Its commands want a script each time, and `verify` keeps to the recorded pace."""

    name = "peer"
    python = ROOT / ".venv-peer" / "bin" / "python"

    def version(self) -> str:
        ask = "import importlib.metadata as m; print(m.version('lockstepd'))"
        return subprocess.run([self.python, "-c", ask], check=True, capture_output=True, text=True).stdout.strip()

    def acts(self) -> tuple[tuple[str, Act], ...]:
        return ((RECORD, self.record), (REPLAY, self.replay))

    def record(self, room: Path, command: Sequence[object]) -> Spent:
        return self._run("record", room / "tape.gz", "--", *command)

    def replay(self, room: Path, command: Sequence[object]) -> Spent:
        return self._run("replay", room / "tape.gz", "--speed", "0", "--", *command)

    def verify(self, room: Path, command: Sequence[object], times: int) -> Spent:
        return self._run("verify", room / "tape.gz", "--times", times, "--", *command)

    def stored(self, room: Path) -> int:
        return (room / "tape.gz").stat().st_size

    def _run(self, *words: object) -> Spent:
        return run([self.python.with_name("lockstepd"), *words])


BARE, OURS, PEER = _Bare(), _Ours(), _Peer()


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """The loopback provider in a process of its own: yields its URL."""
    script = f"{WORKLOADS / 'answers.py'}:answer"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(WORKLOADS), os.environ.get("PYTHONPATH", "")])}
    with subprocess.Popen(
        [sys.executable, "-m", "lockstep.testing.provider", "--script", script],
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    ) as provider:
        assert provider.stdout is not None
        try:
            yield provider.stdout.readline().strip()
        finally:
            provider.terminate()
