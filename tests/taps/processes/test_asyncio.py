"""Processes of asyncio: each callback runs where the recording ran it."""

import asyncio
import concurrent.futures.thread  # noqa: F401 - its own locks are made once, not in the first session
import os
import subprocess
from typing import Any

import pytest

import lockstep

NOW = "date +%N"
# asyncio's transports complain when they are dropped after their loop was closed (python/cpython#114177).
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

PIPE = subprocess.PIPE


@lockstep.tool
async def model(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return subprocess.check_output(["date", "+%N"], text=True)


def test_commands_at_once_race_a_call_as_they_did(session: Any) -> None:
    order: list[str] = []

    async def command(name: str, seconds: float) -> bytes:
        process = await asyncio.create_subprocess_shell(f"sleep {seconds}; {NOW}", stdout=PIPE)
        got, _ = await process.communicate()
        order.append(name)
        return got

    async def call() -> str:
        got = await model(0.02)
        order.append("call")
        return got

    async def main() -> list[Any]:
        order.clear()
        got = await asyncio.gather(command("slow", 0.04), command("fast", 0), command("middle", 0.02), call())
        return [got, *order]

    found = session.same(lambda: asyncio.run(main()))
    assert sorted(found[1:]) == ["call", "fast", "middle", "slow"]


def test_a_conversation_goes_as_it_went(session: Any) -> None:
    async def main() -> list[Any]:
        process = await asyncio.create_subprocess_shell(
            f"while read line; do echo got $line $({NOW}); done; exit 5", stdin=PIPE, stdout=PIPE, stderr=PIPE
        )
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        said: list[Any] = []
        for word in (b"one\n", b"two\n"):
            process.stdin.write(word)
            await process.stdin.drain()
            said.append(await process.stdout.readline())
        process.stdin.close()
        await process.stdin.wait_closed()
        return [*said, await process.wait(), await process.stderr.read()]

    assert session.same(lambda: asyncio.run(main()), held=True)[2:] == [5, b""]


def test_much_input_is_taken_in_the_same_pieces(session: Any) -> None:
    async def main() -> bytes:
        process = await asyncio.create_subprocess_exec("md5sum", stdin=PIPE, stdout=PIPE)
        return (await process.communicate(b"x" * 1_000_000))[0]

    session.same(lambda: asyncio.run(main()))


def test_one_that_takes_too_long_is_killed_again(session: Any) -> None:
    async def main() -> int:
        process = await asyncio.create_subprocess_exec("sleep", "10")
        try:
            async with asyncio.timeout(0.05):
                await process.wait()
        except TimeoutError:
            process.kill()
        return await process.wait()

    assert session.same(lambda: asyncio.run(main())) == -9


def test_a_status_that_somebody_else_took_is_gone_again(session: Any) -> None:
    """Before 3.13, asyncio does that to itself where it kills what has just ended."""

    async def main() -> Any:
        process = await asyncio.create_subprocess_exec("true")
        pid = process.pid
        await asyncio.to_thread(lambda: None)
        try:
            os.waitpid(pid, 0)
            return await process.wait(), os.waitpid(pid, 0)
        except ChildProcessError as error:
            return repr(error)

    assert "ChildProcessError" in session.same(lambda: asyncio.run(main()))


def test_one_that_is_not_there_fails_in_the_same_way(session: Any) -> None:
    async def main() -> str:
        with pytest.raises(FileNotFoundError) as failed:
            await asyncio.create_subprocess_exec("/nonexistent/program")
        return repr(failed.value)

    session.same(lambda: asyncio.run(main()))


def test_the_first_of_two_to_end_is_the_same_one(session: Any) -> None:
    async def command(seconds: float) -> str:
        process = await asyncio.create_subprocess_shell(f"sleep {seconds}; {NOW}", stdout=PIPE)
        try:
            return (await process.communicate())[0].decode()
        except asyncio.CancelledError:
            process.kill()
            await process.communicate()
            raise

    async def main() -> list[Any]:
        tasks = [asyncio.create_task(each) for each in (command(0.05), model(0.01), command(0.01))]
        done, waiting = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in waiting:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        return [sorted(tasks.index(task) for task in done), [repr(result) for result in results]]

    session.same(lambda: asyncio.run(main()), held=True)


def test_a_descriptor_that_the_program_watches_itself_is_ready_where_it_was(session: Any) -> None:
    async def main() -> list[Any]:
        loop = asyncio.get_running_loop()
        process = subprocess.Popen(f"{NOW}; sleep 0.02; {NOW}", shell=True, stdout=PIPE, bufsize=0)
        assert process.stdout is not None
        seen: list[Any] = []
        over = loop.create_future()

        def ready() -> None:
            got = process.stdout.read(100)  # type: ignore[union-attr]
            seen.append(got)
            if not got:
                loop.remove_reader(process.stdout.fileno())  # type: ignore[union-attr]
                over.set_result(None)

        loop.add_reader(process.stdout.fileno(), ready)
        seen.append(await asyncio.to_thread(process.wait))
        await over
        process.stdout.close()
        return seen

    assert 0 in session.same(lambda: asyncio.run(main()))
