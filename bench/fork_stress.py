"""How exactly random concurrent programs fork: records n of a kind, forks each at several steps, replays each branch.

    python bench/fork_stress.py --n 100 --kind asyncio --kind threads --kind mixed

    same      the fork came to its own end, and its replay is identical by the session's word, with the fork's trace
    diverged  the part served was found to be another program
    alarm, silent, hung, crashed, unrecorded, live: as in `stress.py`, of the branch's replay

Which steps are forked is drawn from the seed: the beginning, and three others.
"""

from __future__ import annotations

import argparse
import collections
import random
import shutil
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from nursery import RUN, Job  # noqa: E402
from programs.tree import KINDS  # noqa: E402

from lockstep.log.store import open_store  # noqa: E402
from lockstep.log.timeline import Timeline  # noqa: E402
from stress import LIMIT, OUTCOMES, Nursery, Runner, Verdict, _first_difference, _hits, serving  # noqa: E402

CUTS = 4


def cuts(store: str, seed: int) -> list[int]:
    """The steps at which a program is forked."""
    with open_store(store) as opened:
        steps = len(Timeline(opened.run(RUN)).steps)
    return sorted({0, *random.Random(seed).sample(range(steps), min(steps, CUTS - 1))})


def judge(
    kind: str, seed: int, server: str, directory: Path, runners: tuple[Runner, Runner], limit: float
) -> Iterator[Verdict]:
    """Records one program, forks it, and replays each branch."""
    record, replay = runners
    url, room = f"{server}/{kind}-{seed}", directory / f"{kind}-{seed}"
    shutil.rmtree(room, ignore_errors=True)
    room.mkdir()
    base = Job("record", kind, seed, url, str(room / "store.db"), str(room / "record.log"), limit)
    recorded = record(base)
    if recorded.state != "ended" or recorded.output is None:
        yield Verdict(kind, seed, "unrecorded", f"{recorded.state}: {recorded.error}", faults=recorded.faults)
        return
    for step in cuts(base.store, seed):
        at = f"{RUN}:{step}"
        forked = record(msgspec.structs.replace(base, mode="fork", run=at, log=str(room / f"fork-{step}.log")))
        if forked.state != "ended" or forked.forked not in ("complete", "failed"):
            outcome = "diverged" if forked.state == "ended" else forked.state
            yield Verdict(kind, seed, outcome, f"{at} {forked.forked} {forked.difference or forked.error}")
            continue
        before = _hits(url)
        job = msgspec.structs.replace(base, mode="replay", run=forked.branch, log=str(room / f"replay-{step}.log"))
        replayed = replay(job)
        live = _hits(url) - before
        same = replayed.output == forked.output
        if replayed.state != "ended":
            outcome = replayed.state
        elif replayed.identical:
            outcome = "same" if same else "silent"
        else:
            outcome = "alarm" if same else "diverged"
        detail = ""
        if outcome != "same":
            detail = f"{forked.branch} from {at}: {replayed.difference or replayed.error}"
            if not same and replayed.output is not None and forked.output is not None:
                detail += f" | {_first_difference(forked.output['trace'], replayed.output['trace'])}"
        yield Verdict(kind, seed, outcome, detail, live, forked.faults)


def measure(kind: str, seeds: range, directory: Path, *, limit: float = LIMIT, words: int = 0) -> list[Verdict]:
    """Judges every seed, two at a time. Stores stay in `directory` for what is not `same`."""
    with serving() as server, ThreadPoolExecutor(2) as pool:
        nurseries = [(Nursery(), Nursery()) for _ in range(2)]
        free = list(nurseries)

        def one(seed: int) -> list[Verdict]:
            pair = free.pop()
            try:
                found = list(judge(kind, seed, server, directory, pair, limit))
            finally:
                free.append(pair)
            if all(verdict.outcome == "same" for verdict in found):
                shutil.rmtree(directory / f"{kind}-{seed}")
            for verdict in found:
                if words and (verdict.outcome != "same" or verdict.live):
                    print(
                        f"{kind} {seed} {verdict.outcome}, {verdict.live} live: {verdict.detail[-words:]}", flush=True
                    )
            return found

        try:
            return [verdict for found in pool.map(one, seeds) for verdict in found]
        finally:
            for pair in nurseries:
                for nursery in pair:
                    nursery.close()


def main() -> int:
    parser = argparse.ArgumentParser(description="Fork random concurrent programs.")
    parser.add_argument("--kind", choices=KINDS, action="append", help="default: asyncio, threads and mixed")
    parser.add_argument("--n", type=int, default=100, help="programs of each kind")
    parser.add_argument("--start", type=int, default=0, help="first seed")
    parser.add_argument("--keep", type=Path, help="directory for stores and logs of what went wrong")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds for one recording, fork or replay")
    parser.add_argument("--words", type=int, default=600, help="characters to print of each failure's story")
    given = parser.parse_args()
    failed = False
    with tempfile.TemporaryDirectory(prefix="forks-") as scratch:
        directory = given.keep or Path(scratch)
        directory.mkdir(parents=True, exist_ok=True)
        for kind in given.kind or ["asyncio", "threads", "mixed"]:
            found = measure(
                kind, range(given.start, given.start + given.n), directory, limit=given.limit, words=given.words
            )
            counts = collections.Counter(verdict.outcome for verdict in found)
            told = "  ".join(f"{outcome} {counts[outcome]}" for outcome in OUTCOMES if counts[outcome])
            live = sum(verdict.live for verdict in found)
            print(f"{kind}: {given.n} programs, {len(found)} forks: {told}  live {live}")
            failed = failed or live > 0 or (kind != "mixed" and counts["same"] < len(found))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
