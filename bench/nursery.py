"""A warm process that forks a child for each recording or replay: imports are paid for once.

Recordings and replays come from different nurseries (own address layout, own string hash), and each
child shuffles its heap first, so nothing agrees by accident of addresses.

    python nursery.py        one JSON job a line on stdin, one JSON result a line on stdout
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import importlib
import json
import os
import random
import select
import signal
import sys
import time
import traceback
from typing import Any

import httpx
import msgspec
from programs.run import execute

from lockstep.debugger import fork as forks
from lockstep.session.policy import Policy
from lockstep.session.session import UNKNOWN, finish, start_fork, start_recording, start_replay

RUN = "program"


class Job(msgspec.Struct, frozen=True):
    """One program to record, replay or fork. `limit`: seconds until the child is killed. `log`: its stderr. `run`: what
    is replayed, or where a fork leaves."""

    mode: str
    kind: str
    seed: int
    url: str
    store: str
    log: str
    limit: float
    deadline: float = 10.0
    run: str = RUN


class Result(msgspec.Struct, frozen=True):
    """What came of it. `state`: ended | hung | crashed. `output`: the program's trace and value. `branch` and `forked`:
    the address of a fork and how it ended."""

    state: str
    output: dict[str, Any] | None = None
    error: str = ""
    identical: bool = False
    difference: str = ""
    faults: tuple[str, ...] = ()
    seconds: float = 0.0
    branch: str = ""
    forked: str = ""


def _shuffled_heap() -> list[bytearray]:
    """Holes of random sizes: objects get other addresses than in any other child."""
    chance = random.Random()
    blocks = [bytearray(chance.randrange(16, 700)) for _ in range(chance.randrange(500, 4000))]
    chance.shuffle(blocks)
    return blocks[: len(blocks) // 2]


def _child(job: Job) -> Result:
    heap = _shuffled_heap()
    begun = time.monotonic()
    session: Any
    if job.mode == "record":
        session = start_recording(job.store, RUN, {"kind": job.kind, "seed": job.seed})
    elif job.mode == "fork":
        run, plan = forks.planned(job.store, job.run, (), Policy(tail="live"), "")
        session = start_fork(job.store, run, plan, deadline=job.deadline)
    else:
        session = start_replay(job.store, job.run, deadline=job.deadline)
    output, error = None, None
    try:
        output = execute(job.kind, job.seed, job.url)
    except BaseException as raised:
        error = raised
    # A program's answer is part of its run, as what it prints or returns would be.
    report = finish(session, 0 if error is None else 1, error, UNKNOWN if output is None else output)
    del heap
    difference = report.difference
    return Result(
        "ended",
        output,
        "" if error is None else "".join(traceback.format_exception_only(error)).strip(),
        report.identical,
        "" if difference is None else _told(difference),
        tuple(report.faults),
        time.monotonic() - begun,
        f"{RUN}@{report.branch}" if report.branch else "",
        report.state,
    )


def _told(difference: Any) -> str:
    where = f"{difference.kind} {difference.name} in {difference.lane} at {difference.source}"
    what = f"{difference.path or 'whole'}: {difference.expected} -> {difference.actual}"
    return f"{difference.code} {difference.reason}, {where} [{what}]"


def _run_child(job: Job, out: int) -> None:
    """In the forked child: never returns."""
    log = os.open(job.log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(log, 2)
    faulthandler.enable()
    faulthandler.dump_traceback_later(job.limit * 0.9)
    try:
        result = _child(job)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(70)
    data = msgspec.json.encode(result)
    while data:
        data = data[os.write(out, data) :]
    os._exit(0)


def run(job: Job) -> Result:
    """Forks, waits for the child's result, kills it when its time is over."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _run_child(job, writer)
    os.close(writer)
    end = time.monotonic() + job.limit
    data = b""
    state = "crashed"
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            state = "hung"
            os.kill(child, signal.SIGKILL)
            break
        if not (piece := os.read(reader, 1 << 16)):
            break
        data += piece
    os.close(reader)
    _, status = os.waitpid(child, 0)
    if state == "crashed" and data and status == 0:
        return msgspec.json.decode(data, type=Result)
    return Result(state, error=_last_words(job.log))


def _last_words(path: str) -> str:
    with contextlib.suppress(OSError), open(path) as log:
        return log.read()[-4000:]
    return ""


def main() -> None:
    # The first request imports what httpx imports late; no child should pay for that.
    httpx.Client(trust_env=False).close()
    importlib.import_module("anyio._backends._asyncio")
    gc.freeze()
    for line in sys.stdin:
        result = run(msgspec.convert(json.loads(line), Job))
        sys.stdout.write(msgspec.json.encode(result).decode() + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
