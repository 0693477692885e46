"""Codecs are async, and are asked by code that is not: in a workflow's thread, and in replays."""

import asyncio
import threading

import pytest

from lockstep_temporal.awaiting import wait


async def at_once() -> str:
    return threading.current_thread().name


async def suspends() -> str:
    await asyncio.sleep(0.001)
    return threading.current_thread().name


async def needs_a_loop() -> bool:
    return asyncio.get_running_loop().is_running()


async def fails() -> None:
    await asyncio.sleep(0)
    raise ValueError("no key")


def test_what_never_suspends_runs_here_and_all_else_in_a_loop_of_its_own() -> None:
    here = threading.current_thread().name
    assert wait(at_once) == here
    assert wait(suspends) == "lockstep-codec" != here
    assert wait(needs_a_loop)


def test_it_works_while_a_loop_runs_in_this_thread() -> None:
    async def inside() -> list[str]:
        return [wait(at_once), wait(suspends)]

    assert asyncio.run(inside())[1] == "lockstep-codec"


def test_what_it_raises_comes_through() -> None:
    with pytest.raises(ValueError, match="no key"):
        wait(fails)


def test_it_waits_no_longer_than_it_may() -> None:
    with pytest.raises(TimeoutError):
        wait(lambda: asyncio.sleep(60), 0.01)
