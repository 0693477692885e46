"""How exactly random concurrent programs replay: records n of a kind, replays each, compares the traces.

    python bench/stress.py --n 300 --kind asyncio --kind threads --kind mixed

    same      identical by the session's own word, and the trace (every line, in order) and value are the recorded
    alarm     the trace is the recorded one, yet the session said that it was not
    diverged  the session found a difference
    silent    the session said identical, and the trace differs: must never happen
    hung      killed after its time; crashed: ended without a word
    live      requests that reached the server during replays: must be none

`asyncio` and `threads` are promised: all must be `same`. `mixed` must not be silent, hung or live. `raw`
(threads that race on memory) and `polls` (looks without waiting) measure what lies beyond the promise.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from nursery import RUN, Job, Result  # noqa: E402
from programs.tree import KINDS, census  # noqa: E402

OUTCOMES = ("same", "alarm", "diverged", "silent", "hung", "crashed", "unrecorded")
PROMISED = ("asyncio", "threads")
LIMIT = 30.0


class Verdict(msgspec.Struct, frozen=True):
    """One program: what came of its replay, the first difference, and requests that went out."""

    kind: str
    seed: int
    outcome: str
    detail: str = ""
    live: int = 0
    faults: tuple[str, ...] = ()
    seconds: float = 0.0


type Runner = Callable[[Job], Result]


class Nursery:
    """A warm process of `nursery.py` at the other end of two pipes. One job at a time."""

    def __init__(self) -> None:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")])),
        }
        environment.pop("PYTHONHASHSEED", None)
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "nursery.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )

    def __call__(self, job: Job) -> Result:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(job) + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the nursery died with status {self._process.wait()}")
        return msgspec.json.decode(line, type=Result)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


def command_line(job: Job) -> Result:
    """The same through `lockstep record` and `lockstep replay`, as a user does it: slower by two starts."""
    program = [sys.executable, "-m", "programs.run", "--kind", job.kind, "--seed", str(job.seed), "--server", job.url]
    lockstep = [sys.executable, "-m", "lockstep"]
    if job.mode == "record":
        command = [*lockstep, "record", "--store", job.store, "--run", RUN, "--", *program]
    else:
        command = [*lockstep, "replay", "--store", job.store, RUN]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH")]))}
    begun = time.monotonic()
    try:
        ended = subprocess.run(command, env=environment, capture_output=True, timeout=job.limit, check=False)
    except subprocess.TimeoutExpired as late:
        return Result("hung", error=(late.stderr or b"").decode()[-4000:])
    said = ended.stderr.decode(errors="replace")
    try:
        output = msgspec.json.decode(ended.stdout)
    except msgspec.DecodeError:
        output = None
    if output is None and ended.returncode not in (0, 1):
        return Result("crashed", error=said[-4000:])
    same = job.mode == "replay" and ended.returncode == 0
    difference = "" if same or job.mode == "record" else said[-1000:]
    return Result("ended", output, "" if output else said[-1000:], same, difference, (), time.monotonic() - begun)


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """The programs' server, in a process of its own: yields its URL."""
    server = subprocess.Popen(
        [sys.executable, "-m", "programs.server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=HERE
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(server.stdout.readline())}"
    finally:
        server.stdin.close()
        server.wait()
        server.stdout.close()


def _hits(url: str) -> int:
    with urllib.request.urlopen(f"{url}/hits") as answer:
        return int(answer.read())


def judge(kind: str, seed: int, server: str, directory: Path, runners: tuple[Runner, Runner], limit: float) -> Verdict:
    """Records one program and replays it once, each with its runner and in at most `limit` seconds."""
    record, replay = runners
    url = f"{server}/{kind}-{seed}"
    room = directory / f"{kind}-{seed}"
    shutil.rmtree(room, ignore_errors=True)
    room.mkdir()
    base = Job("record", kind, seed, url, str(room / "store.db"), str(room / "record.log"), limit)
    recorded = record(base)
    if recorded.state != "ended" or recorded.output is None:
        return Verdict(kind, seed, "unrecorded", f"{recorded.state}: {recorded.error}", faults=recorded.faults)
    before = _hits(url)
    replayed = replay(msgspec.structs.replace(base, mode="replay", log=str(room / "replay.log")))
    live = _hits(url) - before
    same = replayed.output == recorded.output
    if replayed.state != "ended":
        outcome = replayed.state
    elif replayed.identical:
        outcome = "same" if same else "silent"
    else:
        outcome = "alarm" if same else "diverged"
    detail = ""
    if outcome != "same":
        detail = replayed.difference or replayed.error
        if not same and replayed.output is not None:
            detail += f" | {_first_difference(recorded.output['trace'], replayed.output['trace'])}"
    return Verdict(kind, seed, outcome, detail, live, recorded.faults, replayed.seconds)


def _first_difference(recorded: list[str], replayed: list[str]) -> str:
    for number, (was, now) in enumerate(zip(recorded, replayed, strict=False)):
        if was != now:
            return f"trace line {number}: {was!r} -> {now!r}"
    return f"trace of {len(recorded)} lines -> {len(replayed)}"


def measure(
    kind: str,
    seeds: range,
    jobs: int,
    directory: Path,
    *,
    cli: bool = False,
    keep: bool = False,
    limit: float = LIMIT,
    heard: Callable[[Verdict], None] | None = None,
) -> list[Verdict]:
    """Judges every seed, `jobs` at a time. Stores stay in `directory` only for what is not `same`, or `keep`."""
    pairs: queue.SimpleQueue[tuple[Runner, Runner]] = queue.SimpleQueue()
    nurseries = [] if cli else [Nursery() for _ in range(2 * jobs)]
    for number in range(jobs):
        pairs.put((command_line, command_line) if cli else (nurseries[2 * number], nurseries[2 * number + 1]))
    lock = threading.Lock()

    with serving() as server, ThreadPoolExecutor(jobs) as pool:

        def one(seed: int) -> Verdict:
            pair = pairs.get()
            try:
                verdict = judge(kind, seed, server, directory, pair, limit)
            finally:
                pairs.put(pair)
            if verdict.outcome == "same" and not keep:
                shutil.rmtree(directory / f"{kind}-{seed}")
            if heard is not None:
                with lock:
                    heard(verdict)
            return verdict

        try:
            return list(pool.map(one, seeds))
        finally:
            for nursery in nurseries:
                nursery.close()


def holds(verdicts: list[Verdict]) -> bool:
    """Whether the promise for their kind was kept."""
    if any(verdict.kind in PROMISED and verdict.outcome != "same" for verdict in verdicts):
        return False
    serious = ("silent", "hung", "crashed", "unrecorded")
    return not any(v.live or v.faults or v.outcome in serious for v in verdicts if v.kind in (*PROMISED, "mixed"))


def table(rows: dict[str, list[Verdict]], seconds: dict[str, float]) -> str:
    """The figures, a row a kind."""
    lines = ["".join(f"{head:>11}" for head in ("kind", "programs", *OUTCOMES, "live", "faults", "seconds"))]
    for kind, verdicts in rows.items():
        counts = collections.Counter(verdict.outcome for verdict in verdicts)
        cells: list[object] = [kind, len(verdicts), *(counts[outcome] for outcome in OUTCOMES)]
        cells += [sum(v.live for v in verdicts), sum(bool(v.faults) for v in verdicts), f"{seconds[kind]:.0f}"]
        lines.append("".join(f"{cell!s:>11}" for cell in cells))
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description="Record and replay random concurrent programs.")
    parser.add_argument("--kind", choices=KINDS, action="append", help="default: asyncio, threads and mixed")
    parser.add_argument("--n", type=int, default=300, help="programs of each kind")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    parser.add_argument("--jobs", type=int, default=2, help="programs at a time")
    parser.add_argument("--cli", action="store_true", help="through the lockstep command, a fresh process each")
    parser.add_argument("--keep", type=Path, help="directory for stores and logs (of all programs)")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for one recording or replay")
    parser.add_argument("--words", type=int, default=600, help="characters to print of each failure's story")
    parser.add_argument("--census", action="store_true", help="only count the constructs in the programs")
    given = parser.parse_args()
    seeds = range(given.start, given.start + given.n)
    kinds = given.kind or ["asyncio", "threads", "mixed"]
    if given.census:
        for kind in kinds:
            print(kind, *(f"  {count:6} {construct}" for construct, count in census(kind, seeds).items()), sep="\n")
        return 0
    rows: dict[str, list[Verdict]] = {}
    seconds: dict[str, float] = {}

    def heard(verdict: Verdict) -> None:
        if verdict.outcome != "same" or verdict.live or verdict.faults:
            faults = f" faults {verdict.faults}" if verdict.faults else ""
            story = f"{verdict.detail[-given.words :]}{faults}"
            print(f"{verdict.kind} {verdict.seed} {verdict.outcome}, {verdict.live} live: {story}", flush=True)

    with tempfile.TemporaryDirectory(prefix="stress-") as scratch:
        directory = given.keep or Path(scratch)
        directory.mkdir(parents=True, exist_ok=True)
        for kind in kinds:
            begun = time.monotonic()
            rows[kind] = measure(
                kind,
                seeds,
                given.jobs,
                directory,
                cli=given.cli,
                keep=given.keep is not None,
                limit=given.limit,
                heard=heard,
            )
            seconds[kind] = time.monotonic() - begun
    print(table(rows, seconds))
    return 0 if all(holds(verdicts) for verdicts in rows.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
