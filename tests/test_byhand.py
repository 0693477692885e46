"""By hand: tools, steps, and recording and replaying in process, sync and async."""

import asyncio
import dataclasses
import pathlib
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import lockstep
from lockstep.errors import Code, LockstepError, TargetError
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline


@dataclasses.dataclass
class Order:
    number: int
    cents: int


ran: list[str] = []


@lockstep.tool
def get_order(number: int, *, detail: str = "short") -> Order:
    ran.append(f"get_order {number} {detail}")
    return Order(number, random.randrange(10_000))


@lockstep.tool(effect="mutating", name="pay")
async def issue_refund(order: Order) -> tuple[int, pathlib.Path]:
    ran.append("issue_refund")
    await asyncio.sleep(0.001)
    return order.cents, pathlib.Path("/receipts") / str(random.random())


@lockstep.tool
def lines(count: int) -> Iterator[float]:
    ran.append("lines")
    for _ in range(count):
        yield random.random()


@lockstep.tool
async def chunks(count: int) -> AsyncIterator[float]:
    ran.append("chunks")
    for _ in range(count):
        await asyncio.sleep(0)
        yield random.random()


@lockstep.tool
def fail(text: str) -> None:
    ran.append("fail")
    raise LookupError(text)


async def agent() -> list[Any]:
    order = get_order(452)
    found: list[Any] = [order, await issue_refund(order), list(lines(3)), [chunk async for chunk in chunks(2)]]
    try:
        fail("no such order")
    except LookupError as error:
        found.append(repr(error))
    lockstep.step("decided", {"order": order})
    found.append(await asyncio.gather(*[issue_refund(Order(n, n)) for n in range(3)]))
    return [*found, time.time(), random.random()]


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


def test_without_a_session_a_tool_is_the_function() -> None:
    assert isinstance(get_order(1, detail="long"), Order)
    assert ran == ["get_order 1 long"]
    assert get_order.__name__ == "get_order"
    lockstep.step("nothing", object())


def test_a_block_is_recorded_and_replayed_without_running_a_tool() -> None:
    with lockstep.record("refund") as session:
        recorded = asyncio.run(agent())
    assert session.report is not None
    assert session.report.faults == ()
    assert session.report.counts == {"tool": 8, "step": 1}
    ran.clear()
    replayed = lockstep.replay("refund", agent)
    assert replayed.divergence is None
    assert replayed.identical
    assert replayed.result == recorded
    assert replayed.results == [recorded]
    assert replayed.report.digest == session.report.digest
    assert ran == []


def test_a_decorated_function_is_a_run_a_call_with_its_result() -> None:
    recorded = lockstep.record("decorated")(agent)
    first, second = asyncio.run(recorded()), asyncio.run(recorded())
    for run, result in (("decorated", first), ("decorated-2", second)):
        assert lockstep.replay(run, agent).result == result

    @lockstep.record("sync")
    def program() -> int:
        return get_order(7).cents

    result = program()
    assert lockstep.replay("sync", lambda: get_order(7).cents).result == result
    wrong = lockstep.replay("sync", lambda: get_order(7).cents + 1)
    assert not wrong.identical
    assert wrong.report.difference is not None
    assert (wrong.report.difference.code, wrong.report.difference.path) == (Code.END, "result")


def test_it_records_and_replays_under_a_running_loop() -> None:
    async def record() -> list[Any]:
        async with lockstep.record("loop"):
            return await agent()

    async def replay() -> lockstep.Replay:
        with pytest.raises(TargetError) as refused:
            lockstep.replay("loop", agent)
        assert refused.value.code is Code.BAD_TARGET
        return await lockstep.areplay("loop", agent)

    recorded = asyncio.run(record())
    replayed = asyncio.run(replay())
    assert replayed.identical
    assert replayed.result == recorded


def test_a_nested_recording_joins_the_outer_one() -> None:
    with lockstep.record("outer") as outer, lockstep.record("inner") as inner:
        assert inner is outer
        get_order(1)
    assert outer.report is not None
    assert outer.report.counts == {"tool": 1}
    with open_store() as store:
        assert [run.name for run in store.runs()] == ["outer"]

    def again() -> None:
        with lockstep.record("outer"):
            get_order(1)

    assert lockstep.replay("outer", again).identical


def test_a_run_that_failed_replays_to_the_same_failure() -> None:
    def program() -> None:
        order = get_order(1)
        raise ValueError(f"order {order.number} is lost")

    with pytest.raises(ValueError, match="lost"), lockstep.record("failed"):
        program()
    replayed = lockstep.replay("failed", program)
    assert replayed.identical
    assert repr(replayed.error) == "ValueError('order 1 is lost')"
    with open_store() as store:
        assert store.runs()[0].state == "failed"

    def other() -> None:
        get_order(1)
        raise ValueError("another reason")

    difference = lockstep.replay("failed", other).report.difference
    assert difference is not None
    assert (difference.code, difference.path) == (Code.END, "error.message")


CHANGES: dict[str, tuple[Callable[[], Any], Code, int, str]] = {
    "another argument": (lambda: (get_order(1), get_order(3)), Code.REQUEST, 2, "arguments.number"),
    "another tool": (lambda: (get_order(1), list(lines(2))), Code.REQUEST, 2, ""),
    "another order": (lambda: (get_order(2), get_order(1)), Code.ORDER, 1, "arguments.number"),
    "one more": (lambda: (get_order(1), get_order(2), get_order(2)), Code.EXTRA, 3, ""),
    "one fewer": (lambda: (get_order(1),), Code.MISSING, 2, ""),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_program_diverges_at_its_first_difference(change: str) -> None:
    with lockstep.record("changed"):
        get_order(1)
        get_order(2)
    ran.clear()
    target, code, step, path = CHANGES[change]
    replayed = lockstep.replay("changed", target)
    difference = replayed.report.difference
    assert difference is not None
    assert (difference.code, difference.step, difference.path, difference.lane) == (code, step, path, "main")
    assert "test_byhand.py" in difference.source
    assert not replayed.identical
    assert replayed.divergence is not None
    assert str(code) in replayed.divergence
    assert ran == []


def test_a_swallowed_divergence_is_still_the_verdict() -> None:
    with lockstep.record("swallowed"):
        get_order(1)

    def program() -> str:
        try:
            get_order(2)
        except BaseException:
            return "went on"
        return "found nothing"

    replayed = lockstep.replay("swallowed", program)
    assert replayed.result == "went on"
    assert not replayed.identical
    assert replayed.report.difference is not None
    assert replayed.report.difference.code is Code.REQUEST


def test_an_argument_that_is_no_data_counts_by_its_class_and_a_result_that_is_none_is_reported() -> None:
    class Client:
        @lockstep.tool
        def ask(self, text: str) -> str:
            return f"{text}{random.random()}"

    @lockstep.tool
    def connect() -> object:
        return (line for line in "ab")

    with lockstep.record("client") as session:
        recorded = Client().ask("a")
        assert list(connect()) == ["a", "b"]  # type: ignore[call-overload]
    assert session.report is not None
    assert len(session.report.faults) == 1
    assert "LS207" in session.report.faults[0]
    replayed = lockstep.replay("client", lambda: (Client().ask("a"), connect()))
    assert replayed.report.difference is not None
    assert replayed.report.difference.code is Code.UNSERVABLE
    assert replayed.report.difference.step == 2
    assert recorded


def test_a_half_read_generator_replays_as_that_and_no_further() -> None:
    def program(count: int) -> list[float]:
        stream = lines(5)
        found = [next(stream) for _ in range(count)]
        stream.close()  # type: ignore[attr-defined]
        return found

    with lockstep.record("half"):
        recorded = program(2)
    assert lockstep.replay("half", lambda: program(2)).result == recorded
    assert lockstep.replay("half", lambda: program(2)).identical
    for count in (1, 3):
        difference = lockstep.replay("half", lambda count=count: program(count)).report.difference
        assert difference is not None
        assert difference.code is Code.PAST_END


def test_steps_are_named_compared_and_durable() -> None:
    with lockstep.record("steps"):
        get_order(1)
        lockstep.step("triaged", {"queue": "refunds"})
        with open_store() as store:  # acknowledged: another reader sees it at once
            assert "triaged" in [step.name for step in Timeline(store.run("steps")).steps]

    def program(name: str, queue: str) -> None:
        get_order(1)
        lockstep.step(name, {"queue": queue})

    assert lockstep.replay("steps", lambda: program("triaged", "refunds")).identical
    for name, queue, path in (("triaged", "spam", "state.queue"), ("sorted", "refunds", "")):
        difference = lockstep.replay("steps", lambda n=name, q=queue: program(n, q)).report.difference
        assert difference is not None
        assert (difference.kind, difference.path) == ("step", path)


def test_a_step_whose_state_cannot_be_stored_says_where() -> None:
    with lockstep.record("bad step"), pytest.raises(LockstepError) as refused:
        lockstep.step("open", {"files": [open(__file__)]})  # noqa: SIM115
    assert refused.value.code is Code.UNSTORABLE
    assert "$.files[0]" in str(refused.value)


def test_a_target_that_is_no_callable_is_refused() -> None:
    with lockstep.record("target"):
        get_order(1)
    with pytest.raises(TargetError) as refused:
        lockstep.replay("target", get_order(1))  # type: ignore[arg-type]
    assert refused.value.code is Code.BAD_TARGET


def test_a_run_that_does_not_exist_is_named() -> None:
    with lockstep.record("exists"):
        pass
    with pytest.raises(LockstepError) as refused:
        lockstep.replay("other", lambda: None)
    assert refused.value.code is Code.NO_RUN
