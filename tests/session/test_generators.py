"""Asynchronous generators that are dropped half-way: closing them is part of the program."""

import subprocess
import sys
from pathlib import Path

from tests.warm import command

from lockstep.testing import Provider

DROPPED = """
import asyncio, sys
import httpx

async def words(client, name):
    try:
        asked = {"model": "m", "messages": [{"role": "user", "content": name}], "stream": True}
        async with client.stream("POST", sys.argv[1], json=asked) as answer:
            async for line in answer.aiter_lines():
                if line:
                    yield line
    finally:
        print("closing", name)
        await asyncio.sleep(0.003)
        print("closed", name)

async def ticking():
    for tick in range(25):
        print("tick", tick)
        await asyncio.sleep(0.001)

async def main():
    async with httpx.AsyncClient() as client:
        others = asyncio.create_task(ticking())
        for name in "abc":
            async for line in words(client, name):
                print(name, line)
                break
        await others

asyncio.run(main())
"""

LEFT = """
import asyncio

async def numbers(name):
    try:
        for number in range(5):
            yield number
    finally:
        print("closing", name)
        await asyncio.sleep(0.001)
        print("closed", name)

async def main():
    for name in "abcdefgh":
        kept.append(numbers(name))
        print(await anext(kept[-1]))

kept = []
asyncio.run(main())
"""


def lockstep(*words: str) -> subprocess.CompletedProcess[str]:
    return command.run(*words)


def test_a_dropped_stream_is_closed_where_it_was_in_the_recording(tmp_path: Path, provider: Provider) -> None:
    script = tmp_path / "agent.py"
    script.write_text(DROPPED)
    url = provider.url + "/v1/chat/completions"
    recorded = lockstep("record", "--run", "agent", "--", sys.executable, str(script), url)
    assert recorded.returncode == 0, recorded.stderr
    assert all(f"closed {name}" in recorded.stdout for name in "abc")
    for _ in range(3):
        replayed = lockstep("replay", "agent")
        assert replayed.returncode == 0, replayed.stderr
        assert replayed.stdout == recorded.stdout
    assert provider.requests == 3


def test_generators_that_are_left_at_the_end_of_their_loop_close_as_they_began(tmp_path: Path) -> None:
    script = tmp_path / "agent.py"
    script.write_text(LEFT)
    recorded = lockstep("record", "--run", "agent", "--", sys.executable, str(script))
    closing = [line.split()[1] for line in recorded.stdout.splitlines() if line.startswith("closing")]
    assert closing == [*"abcdefgh"]
    assert lockstep("replay", "agent").stdout == recorded.stdout
