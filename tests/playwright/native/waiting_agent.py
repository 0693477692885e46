"""Waits as Playwright's client does after each message, while a process sends; prints how many turns each wait took."""

import asyncio
import sys
import time

from playwright._impl.utils.tasks import wait_for_next_task

SENDS = "import sys, time\nfor _ in range(300): sys.stdout.write('.'); sys.stdout.flush(); time.sleep(0.0005)"

turns = 0
_sleep = asyncio.sleep


def sleep(seconds: float) -> object:
    global turns
    turns += 1
    return _sleep(seconds)


async def reads(process: asyncio.subprocess.Process) -> None:
    assert process.stdout is not None
    while await process.stdout.read(10):
        pass


async def main() -> list[int]:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", SENDS, stdout=asyncio.subprocess.PIPE)
    reading = asyncio.create_task(reads(process))
    waits = []
    while not reading.done():
        before = turns
        await wait_for_next_task()
        waits.append(turns - before)
        await _sleep(0)
        time.sleep(0.001)  # meanwhile the pipe fills
    await process.wait()
    return waits


asyncio.sleep = sleep
print(asyncio.run(main()))
