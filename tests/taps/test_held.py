"""Tools, processes and questions that are held until it is known whether they may run."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.taps.holding import Refused, holding

import lockstep
from lockstep.log.model import Status
from lockstep.session.call import Piece
from lockstep.taps import stdin

ran: list[str] = []


@lockstep.tool
def plain(text: str) -> str:
    ran.append("plain")
    return text.upper()


@lockstep.tool
async def coroutine(text: str) -> str:
    ran.append("coroutine")
    return text.upper()


@lockstep.tool
def generator(text: str) -> Iterator[str]:
    ran.append("generator")
    yield from text


@lockstep.tool
async def async_generator(text: str) -> AsyncIterator[str]:
    ran.append("async_generator")
    for letter in text:
        yield letter


async def letters() -> list[str]:
    return [letter async for letter in async_generator("ab")]


TOOLS: dict[str, Callable[[], Any]] = {
    "plain": lambda: plain("ab"),
    "coroutine": lambda: asyncio.run(coroutine("ab")),
    "generator": lambda: list(generator("ab")),
    "async_generator": lambda: asyncio.run(letters()),
}


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_runs_after_its_call_was_decided(session: Any, name: str) -> None:
    def decide(call: Any) -> None:
        assert (call.name, call.request["arguments"]) == (name, {"text": "ab"})
        assert ran == []

    ran.clear()
    bare = TOOLS[name]()
    ran.clear()
    assert session.hold(TOOLS[name], decide).faults == ()
    assert (session.result, ran) == (bare, [name])
    assert session.replay(TOOLS[name]).identical
    assert (session.result, ran) == (bare, [name])


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_that_is_refused_does_not_run(session: Any, name: str) -> None:
    ran.clear()
    with pytest.raises(Refused, match=name):
        session.hold(TOOLS[name], lambda call: Refused(call.name))
    assert ran == []


@pytest.mark.parametrize(("name", "given", "got"), [
    ("plain", [Piece("given", Status.OK)], "given"),
    ("coroutine", [Piece("given", Status.OK)], "given"),
    ("generator", [{"item": "g"}, {"item": "h"}, Piece(None, Status.OK)], ["g", "h"]),
    ("async_generator", [{"item": "g"}, Piece(None, Status.OK)], ["g"]),
])  # fmt: skip
def test_a_tool_that_is_answered_does_not_run(session: Any, name: str, given: list[Any], got: Any) -> None:
    ran.clear()
    session.hold(TOOLS[name], lambda call: [*given])
    assert (session.result, ran) == (got, [])
    assert session.replay(TOOLS[name]).identical
    assert (session.result, ran) == (got, [])


@pytest.mark.parametrize("take", [
    lambda: next(iter(generator("ab"))),
    lambda: asyncio.run(anext(aiter(async_generator("ab")))),
])  # fmt: skip
def test_what_is_answered_piece_by_piece_may_be_left(session: Any, take: Callable[[], Any]) -> None:
    session.hold(take, lambda call: [{"item": "g"}, {"item": "h"}, Piece(None, Status.OK)])
    assert session.result == "g"
    assert session.replay(take).identical


def test_a_task_that_waits_may_be_cancelled_while_others_go_on() -> None:
    waiting: list[tuple[Any, Any]] = []

    async def run() -> list[Any]:
        tasks = [asyncio.create_task(each) for each in (coroutine("a"), letters(), coroutine("b"))]
        while len(waiting) < 3:
            await asyncio.sleep(0)
        assert ran == []
        tasks[0].cancel()
        tasks[1].cancel()
        waiting[2][1].set_result(None)
        return await asyncio.gather(*tasks, return_exceptions=True)

    ran.clear()
    with holding("held", waiting=lambda *both: waiting.append(both)) as held:
        *given_up, answered = asyncio.run(run())
    assert [type(each) for each in given_up] == [asyncio.CancelledError] * 2
    assert (answered, ran) == ("B", ["coroutine"])
    assert held.report.faults == ()


def test_tasks_that_waited_go_on_in_a_replay_where_they_did(session: Any) -> None:
    """Also of tools that do not wait for anything themselves: held, they have."""

    def program() -> list[str]:
        order: list[str] = []

        async def asks(text: str) -> None:
            order.append(f"{text} asks")
            order.append(await coroutine(text))
            await asyncio.sleep(0)
            order.append(f"{text} is over")

        async def counts() -> None:
            for number in range(6):
                order.append(str(number))
                await asyncio.sleep(0)

        async def main() -> list[str]:
            await asyncio.gather(asks("a"), counts(), asks("b"))
            return order

        return asyncio.run(main())

    session.hold(program)
    held = session.result
    assert held.index("1") < held.index("A")
    assert session.replay(program).identical
    assert session.result == held


def commands(trace: Path) -> dict[str, Callable[[], Any]]:
    command = f"echo ran >> {trace}; echo out; exit 3"

    async def in_a_loop() -> Any:
        process = await asyncio.create_subprocess_shell(command, stdout=subprocess.PIPE)
        out, _ = await process.communicate()
        return out, process.returncode

    def popen() -> Any:
        with subprocess.Popen(command, shell=True, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            return process.stdout.read(), process.wait()

    def spawn() -> Any:
        pid = os.posix_spawn("/bin/sh", ["sh", "-c", command.replace("echo out;", "")], os.environ)
        return os.waitpid(pid, 0)[1]

    return {
        "run": lambda: subprocess.run(command, shell=True, capture_output=True, check=False).returncode,
        "popen": popen,
        "os.popen": lambda: os.popen(command).read(),
        "system": lambda: os.system(command.replace("echo out;", "")),
        "spawn": spawn,
        "in a loop": lambda: asyncio.run(in_a_loop()),
    }


@pytest.mark.parametrize("way", commands(Path()))
def test_a_process_is_started_after_its_call_was_decided(session: Any, tmp_path: Path, way: str) -> None:
    trace = tmp_path / "trace"
    program = commands(trace)[way]

    def decide(call: Any) -> None:
        assert not trace.exists()

    session.hold(program, decide)
    held = session.result
    assert trace.read_text() == "ran\n"
    assert session.replay(program).identical
    assert session.result == held
    assert trace.read_text() == "ran\n"


@pytest.mark.parametrize("way", commands(Path()))
def test_a_process_that_is_refused_is_not_started(session: Any, tmp_path: Path, way: str) -> None:
    trace = tmp_path / "trace"
    with pytest.raises(Refused):
        session.hold(commands(trace)[way], lambda call: Refused(call.name))
    assert not trace.exists()


def test_a_python_child_is_started_with_what_it_needs_to_be_followed(session: Any) -> None:
    def program() -> str:
        return subprocess.run(
            [sys.executable, "-c", "print('from the child')"], capture_output=True, text=True, check=True
        ).stdout

    session.hold(program)
    assert session.result == "from the child\n"


def test_stdin_is_read_after_its_call_was_decided(session: Any) -> None:
    def program() -> Any:
        reading, writing = os.pipe()
        os.write(writing, b"first\nsecond\n")
        os.close(writing)
        raw: Any = io.FileIO(reading)
        raw.readinto, raw.readall = stdin._readinto(raw.readinto), stdin._readall(raw.readall)
        with io.BufferedReader(raw) as lines:
            return lines.readline(), lines.read()

    session.hold(program)
    assert session.result == (b"first\n", b"second\n")
    with pytest.raises(Refused, match="stdin"):
        session.hold(program, lambda call: Refused(call.name))


def test_a_question_at_the_terminal_is_asked_after_its_call_was_decided(
    session: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def person(prompt: str) -> str:
        asked.append(prompt)
        return "yes"

    monkeypatch.setattr(stdin, "_input", person)
    with pytest.raises(Refused, match="input"):
        session.hold(lambda: stdin._asking("sure? "), lambda call: Refused(call.name))
    assert asked == []
    session.hold(lambda: stdin._asking("sure? "))
    assert (session.result, asked) == ("yes", ["sure? "])
