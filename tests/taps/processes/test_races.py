"""Random small programs that race commands against calls, timers and each other: each replays as it went."""

import asyncio
import concurrent.futures.thread  # noqa: F401 - its own locks are made once, not in the first session
import contextlib
import random
import subprocess
import threading
import time
from typing import Any

import pytest

import lockstep

# asyncio's transports complain when they are dropped after their loop was closed (python/cpython#114177).
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

PIPE, DEVNULL = subprocess.PIPE, subprocess.DEVNULL


@lockstep.tool
async def model(seconds: float) -> float:
    await asyncio.sleep(seconds)
    return random.random()


@lockstep.tool
def answer(seconds: float) -> float:
    time.sleep(seconds)
    return random.random()


def command(draw: random.Random) -> str:
    pause = draw.choice([0, 0.001, 0.004, 0.01])
    return draw.choice([
        f"sleep {pause}; date +%N; exit {draw.randrange(4)}",
        f"for i in 1 2 3; do echo $i $(date +%N); sleep {pause}; done",
        "while read line; do echo got $line $(date +%N); done",
        f"echo a; echo b >&2; sleep {pause}; kill -9 $$",
        f"sleep {pause}; head -c 70000 /dev/zero; date +%N",
    ])  # fmt: skip


async def run(draw: random.Random, limit: float) -> Any:
    process = await asyncio.create_subprocess_shell(command(draw), stdin=PIPE, stdout=PIPE, stderr=PIPE)
    try:
        async with asyncio.timeout(limit):
            return await process.communicate(b"x\ny\n" * draw.choice([1, 5000]))
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()
        return process.returncode


def in_tasks(seed: int) -> Any:
    async def worker(number: int, trace: list[Any]) -> None:
        draw = random.Random(seed * 10 + number)
        for _ in range(3):
            kind = draw.randrange(4)
            if kind == 0:
                trace.append((number, await model(draw.choice([0, 0.002, 0.006]))))
            elif kind == 1:
                trace.append((number, await run(draw, draw.choice([0.006, 1]))))
            elif kind == 2:
                done = await asyncio.to_thread(
                    subprocess.run, command(draw), shell=True, capture_output=True, stdin=DEVNULL, check=False
                )
                trace.append((number, done.stdout, done.returncode))
            else:
                first = asyncio.create_task(run(draw, 1))
                second = asyncio.create_task(model(draw.choice([0.002, 0.006])))
                done, _ = await asyncio.wait([first, second], return_when=asyncio.FIRST_COMPLETED)
                trace.append((number, first in done, second in done))
                await first
                await second

    async def main() -> list[Any]:
        trace: list[Any] = []
        await asyncio.gather(*[worker(number, trace) for number in range(3)])
        return trace

    return asyncio.run(main())


def in_threads(seed: int) -> Any:
    trace: list[Any] = []
    guard = threading.Lock()

    def add(*what: Any) -> None:
        with guard:
            trace.append(what)

    def worker(number: int) -> None:
        draw = random.Random(seed * 10 + number)
        for _ in range(3):
            kind = draw.randrange(3)
            if kind == 0:
                add(number, answer(draw.choice([0, 0.002])))
            elif kind == 1:
                try:
                    done = subprocess.run(
                        command(draw), shell=True, capture_output=True, input=b"x\n", timeout=draw.choice([0.01, 5]),
                        check=False,
                    )  # fmt: skip
                    add(number, done.stdout, done.returncode)
                except subprocess.TimeoutExpired as expired:
                    add(number, expired.output)
            else:
                with subprocess.Popen(command(draw), shell=True, stdin=DEVNULL, stdout=PIPE, text=True) as process:
                    while process.poll() is None:
                        line = process.stdout.readline()  # type: ignore[union-attr]
                        add(number, line[:40])
                add(number, process.returncode)

    threads = [threading.Thread(target=worker, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return trace


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("program", [in_tasks, in_threads])
def test_a_random_program_replays_as_it_went(session: Any, program: Any, seed: int) -> None:
    session.same(lambda: program(seed))
