"""A server: which recorded call answers a call of a replay, and what it says where none does."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from tests.session.native.conftest import answer, begin, served

from lockstep.errors import Code, Cut, Divergence
from lockstep.log.model import Status
from lockstep.session import exceptions


def turn_of(run: Any, *calls: Any, end: bool = True) -> None:
    """One recorded turn with these calls: (request, value), or (request, value, more)."""
    turn = run.journal.begin_turn("invoke", {})
    run.journal.step("main", "input", "input", {}, b"0")
    for request, value, *more in calls:
        answer(run.journal, request, value, **(more[0] if more else {}))
    run.journal.step("main", "plan", "loop", {}, b"1")
    if end:
        turn.end(Status.OK, None)


def serving(run: Any, number: int = 1, **more: Any) -> Any:
    server = run.server(**more)
    return server.turn(server.record.turns[number - 1])


def test_calls_get_their_recorded_answers(run: Any) -> None:
    turn_of(run, ({"q": 1}, "one"), ({"q": 2}, "two"))
    calls = serving(run)
    assert served(calls, {"q": 1}) == [("one", Status.OK)]
    assert served(calls, {"q": 2}) == [("two", Status.OK)]
    calls.finish()
    assert not calls.latched.stopped


def test_calls_of_one_lane_may_come_in_another_order(run: Any) -> None:
    turn_of(run, ({"q": 1}, "one"), ({"q": 2}, "two"))
    calls = serving(run)
    assert served(calls, {"q": 2}) == [("two", Status.OK)]
    assert served(calls, {"q": 1}) == [("one", Status.OK)]
    calls.finish()
    assert not calls.latched.stopped


def test_equal_calls_get_their_answers_in_the_recorded_order_and_each_lane_its_own(run: Any) -> None:
    turn_of(run, ("q", "a"), ("q", "b", {"lane": "main/other"}), ("q", "c"))
    calls = serving(run)
    assert served(calls, "q", lane="main/other") == [("b", Status.OK)]
    assert served(calls, "q") == [("a", Status.OK)]
    assert served(calls, "q") == [("c", Status.OK)]


def test_a_stream_is_handed_out_piece_by_piece(run: Any) -> None:
    turn_of(run, ("q", None, {"parts": ({"item": "he"}, {"item": "llo"})}))
    assert served(serving(run), "q") == [({"item": "he"}, None), ({"item": "llo"}, None), (None, Status.OK)]


def test_an_error_comes_back_as_it_was_raised(run: Any) -> None:
    begin(run.journal, "q").end(Status.ERROR, KeyError("gone"))
    calls = run.server().stretch(0, 1 << 40)
    ((value, status),) = served(calls, "q")
    assert status is Status.ERROR and repr(exceptions.decode(value)) == "KeyError('gone')"


def test_what_is_nested_in_a_served_call_is_not_asked_for(run: Any) -> None:
    outer = begin(run.journal, "search", kind="tool")
    answer(run.journal, "inner", "x", within=outer)
    outer.end(Status.OK, "y")
    calls = run.server().stretch(0, 1 << 40)
    assert served(calls, "search", kind="tool") == [("y", Status.OK)]
    calls.finish()
    assert not calls.latched.stopped


def test_another_request_is_a_difference_that_names_the_field_and_the_nearest_calls(run: Any) -> None:
    turn_of(run, ({"messages": [{"content": "under 50"}], "n": 1}, "one"), ({"other": True}, "two"))
    calls = serving(run)
    with pytest.raises(Divergence) as caught:
        served(calls, {"messages": [{"content": "under 500"}], "n": 1})
    found = caught.value.difference
    assert (found.code, found.path) == (Code.REQUEST, "messages[0].content")
    assert (found.expected, found.actual) == ('"under 50"', '"under 500"')
    assert (found.step, found.lane, found.kind, found.name) == (1, "main/plan", "model", "gpt-4o")
    assert found.nearest[0] == "step 1: model gpt-4o" and found.same_until == 0
    assert found.source.startswith("tests/session/native/conftest.py:")


def test_the_first_difference_is_latched_and_stops_every_later_call(run: Any) -> None:
    turn_of(run, ("q", "one"))
    calls = serving(run)
    with pytest.raises(Divergence):
        served(calls, "another")
    with pytest.raises(Divergence) as caught:
        served(calls, "q")
    assert caught.value.difference.actual == '"another"'


def test_a_call_of_a_lane_that_has_made_all_of_its_calls_is_one_too_many(run: Any) -> None:
    turn_of(run, ("q", "one"))
    calls = serving(run)
    served(calls, "q")
    with pytest.raises(Divergence) as caught:
        served(calls, "q")
    assert caught.value.difference.code is Code.EXTRA


def test_a_recorded_call_that_nobody_made_is_a_difference_at_the_end(run: Any) -> None:
    turn_of(run, ("q", "one"), ("r", "two"))
    calls = serving(run)
    served(calls, "q")
    assert [effect.begin.name for effect in calls.left()] == ["gpt-4o"]
    calls.finish()
    found = calls.latched.difference
    assert (found.code, found.expected) == (Code.MISSING, '"r"')


def test_an_answer_of_which_less_was_taken_is_a_difference_at_the_end(run: Any) -> None:
    turn_of(run, ("q", None, {"parts": ({"item": "he"}, {"item": "llo"})}))
    calls = serving(run)
    call = begin(calls, "q")
    call.take()
    call.end("closed")
    calls.finish()
    assert calls.latched.difference.code is Code.PAST_END


def test_each_turn_serves_its_own_calls(run: Any) -> None:
    turn_of(run, ("q", "one"))
    turn_of(run, ("q", "two"))
    server = run.server()
    assert [turn.number for turn in server.record.turns] == [1, 2]
    assert served(server.turn(server.record.turns[1]), "q") == [("two", Status.OK)]


def test_an_interrupted_recording_stops_the_program_at_the_call_that_was_in_flight(run: Any) -> None:
    turn_of(run, ("q", "one"), end=False)
    begin(run.journal, "r").part({"item": "a"})
    calls = serving(run)
    served(calls, "q")
    call = begin(calls, "r")
    assert call.take().value == {"item": "a"}
    with pytest.raises(Cut):
        call.take()
    calls.finish()
    assert calls.latched.cut and calls.latched.difference is None


def test_an_interrupted_recording_stops_the_program_at_a_call_of_which_nothing_is_known(run: Any) -> None:
    turn_of(run, ("q", "one"), end=False)
    calls = serving(run)
    served(calls, "q")
    call = begin(calls, "beyond")
    with pytest.raises(Cut):
        call.take()


def test_a_strand_that_comes_to_the_cut_lets_the_others_come_there_too(run: Any) -> None:
    turn_of(run, ("q", "one", {"lane": "main/a"}), end=False)
    begin(run.journal, "flying", lane="main/b")
    calls = serving(run)
    waits = begin(calls, "flying", lane="main/b")
    ended: list[BaseException] = []

    def strand() -> None:
        try:
            waits.take()
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=strand)
    thread.start()
    assert served(calls, "q", lane="main/a") == [("one", Status.OK)]
    thread.join()
    assert isinstance(ended[0], Cut) and not calls.outstanding()


def test_a_cancelled_call_is_cancelled_again_and_never_blocks_the_loop(run: Any) -> None:
    begin(run.journal, "slow").end(Status.CANCELLED, None)
    answer(run.journal, "q", "one", lane="main/other")
    calls = run.server().stretch(0, 1 << 40)

    async def program() -> str:
        slow = begin(calls, "slow")
        task = asyncio.ensure_future(slow.atake())
        other = begin(calls, "q", lane="main/other")
        await other.aready()
        got = await other.atake()
        await asyncio.sleep(0.02)
        assert not task.done()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        return str(got.value)

    assert asyncio.run(program()) == "one"
    calls.finish()
    assert not calls.latched.stopped


def test_a_call_that_was_cancelled_and_now_is_not_ends_as_a_difference_and_not_as_a_hang(run: Any) -> None:
    begin(run.journal, "slow").end(Status.CANCELLED, None)
    calls = run.server(deadline=0.05).stretch(0, 1 << 40)
    with pytest.raises(Divergence) as caught:
        asyncio.run(begin(calls, "slow").atake())
    assert caught.value.difference.code is Code.ORDER


def test_a_replay_that_asks_the_same_is_identical_and_has_the_recorded_digest(run: Any) -> None:
    turn_of(run, ("q", "one"), ("r", "two", {"lane": "main/b"}), ("s", None, {"parts": ({"item": "x"},)}))
    server = run.server()
    calls = server.turn(server.record.turns[0])
    for request, lane in (("r", "main/b"), ("s", "main/plan"), ("q", "main/plan")):
        served(calls, request, lane=lane)
    calls.finish()
    report = server.report(end=["done"], recorded=["done"])
    assert report.identical and report.counts == {"model": 3} and report.lanes == 2
    assert report.digest == server.recorded_digest(["done"]).hex()


def test_a_replay_whose_end_is_another_one_is_not_identical(run: Any) -> None:
    turn_of(run, ("q", "one"))
    server = run.server()
    calls = server.turn(server.record.turns[0])
    served(calls, "q")
    assert not server.report(end=["done"], recorded=["failed"]).identical


def test_what_no_record_covers_is_named_and_makes_the_replay_not_identical(run: Any) -> None:
    turn_of(run, ("q", "one"))
    server = run.server()
    served(server.turn(server.record.turns[0]), "q")
    server.note("socket", "to 127.0.0.1:80")
    report = server.report()
    assert not report.identical and report.uncovered[0].detail == "to 127.0.0.1:80"


def test_a_branch_that_left_in_a_turn_has_that_turn_up_to_there_and_its_own_after_it(run: Any) -> None:
    turn = run.journal.begin_turn("invoke", {"n": 1})
    first = run.journal.step("main", "input", "input", {}, b"0")
    answer(run.journal, "q", "one")
    run.journal.step("main", "plan", "loop", {}, b"1", first)
    turn.end(Status.OK, None)
    branch = run.journal.fork("try", first, latest=False)
    again = branch.begin_turn("stream", {"n": 2})
    answer(branch, "r", "two")
    again.end(Status.OK, "x")
    server = run.server("try")
    before, after = server.record.turns
    assert (before.left, before.interrupted, before.stop) == (True, True, first + 1)
    assert (after.entry, after.left, server.record.result(after)) == ("stream", False, "x")
    assert server.record.request(after) == {"n": 2}
    assert served(server.turn(after), "r") == [("two", Status.OK)]
    assert not server.turn(before).left()


def test_the_first_to_be_answered_is_the_recorded_one_also_among_tasks(run: Any) -> None:
    slow, fast = begin(run.journal, "slow"), begin(run.journal, "fast")
    fast.end(Status.OK, 1)
    answer(run.journal, "after", 2)
    slow.end(Status.OK, 3)
    calls = run.server(patience=10.0).stretch(0, 1 << 40)
    got: list[Any] = []

    async def ask(request: str) -> None:
        got.append((await begin(calls, request).atake()).value)
        if request == "fast":
            await ask("after")

    async def program() -> None:
        await asyncio.gather(ask("slow"), ask("fast"))

    asyncio.run(program())
    assert got == [1, 2, 3]


def test_the_first_to_be_answered_is_the_recorded_one_also_among_threads(run: Any) -> None:
    slow, fast = begin(run.journal, "slow", lane="main/a"), begin(run.journal, "fast", lane="main/b")
    fast.part({"item": 0})
    fast.end(Status.OK, 1)
    slow.end(Status.OK, 2)
    calls = run.server(patience=10.0).stretch(0, 1 << 40)
    got: list[Any] = []

    def strand(request: str, lane: str) -> None:
        got.extend(value for value, _ in served(calls, request, lane=lane))

    threads = [threading.Thread(target=strand, args=of) for of in (("slow", "main/a"), ("fast", "main/b"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == [{"item": 0}, 1, 2]


def test_an_answer_does_not_wait_for_ever_for_a_call_that_is_not_made(run: Any) -> None:
    turn_of(run, ("never", "one"), ("q", "two"))
    calls = serving(run)
    assert served(calls, "q") == [("two", Status.OK)]
    calls.finish()
    assert calls.latched.difference.code is Code.MISSING


def test_what_a_task_was_given_before_it_was_cancelled_it_still_gets_and_is_cancelled_then(run: Any) -> None:
    begin(run.journal, "q").end(Status.OK, "one")
    begin(run.journal, "r").end(Status.CANCELLED, None)
    calls = run.server().stretch(0, 1 << 40)
    got: list[Any] = []

    async def task() -> None:
        got.append((await begin(calls, "q").atake()).value)
        await begin(calls, "r").atake()
        got.append("never")

    async def program() -> None:
        running = asyncio.create_task(task())
        await asyncio.sleep(0)
        running.cancel("enough")
        try:
            await running
        except asyncio.CancelledError as error:
            got.append(str(error))

    asyncio.run(program())
    calls.finish()
    assert got == ["one", "enough"] and not calls.latched.stopped


def test_a_timeout_still_ends_what_it_ended(run: Any) -> None:
    begin(run.journal, "q").end(Status.CANCELLED, None)
    calls = run.server().stretch(0, 1 << 40)

    async def program() -> str:
        try:
            async with asyncio.timeout(0.01):
                await begin(calls, "q").atake()
        except TimeoutError:
            return "timed out"
        return "answered"

    assert asyncio.run(program()) == "timed out"
    calls.finish()
    assert not calls.latched.stopped


def test_tasks_whose_answers_came_at_once_are_resumed_before_any_of_them_gets_further(run: Any) -> None:
    async def program(calls: Any, end: Any) -> list[str]:
        """Whoever is first to be answered, and who else was by the time that it had got two turns further."""
        done: list[str] = []

        async def ask(name: str) -> None:
            await end(begin(calls, name), name)
            done.append(name)

        tasks = [asyncio.create_task(ask(name)) for name in "abc"]
        while not done:
            await asyncio.sleep(0)
        found = list(done)
        await asyncio.gather(*tasks)
        return found

    async def live(call: Any, name: str) -> None:
        await asyncio.sleep({"a": 0.5, "b": 0.01, "c": 0.01}[name])
        call.end(Status.OK, name)

    async def again(call: Any, name: str) -> None:
        assert (await call.atake()).value == name

    async def busy() -> list[str]:
        loop = asyncio.get_running_loop()
        loop.call_later(0.005, time.sleep, 0.01)  # by then both have come
        return await program(run.journal, live)

    recorded = asyncio.run(busy())
    assert recorded == ["b", "c"]
    calls = run.server(patience=10.0).stretch(0, 1 << 40)
    assert asyncio.run(program(calls, again)) == recorded


def test_a_program_is_through_with_an_answer_before_it_gets_one_that_came_well_after(run: Any) -> None:
    async def program(calls: Any, wait: float) -> list[str]:
        heard: list[str] = []

        async def one(name: str, after: float) -> None:
            call = begin(calls, {"q": name}, lane=f"main/{name}")
            if call.live:
                await asyncio.sleep(after)
                call.end(Status.OK, name)
            else:
                await call.atake()
            for _ in range(10 if name == "first" else 0):  # what it does with it takes turns of its loop, and time
                await asyncio.sleep(0)
                time.sleep(wait)
            heard.append(name)

        await asyncio.gather(one("first", 0.0), one("second", 0.05))
        return heard

    assert asyncio.run(program(run.journal, 0.0)) == ["first", "second"]
    # A machine that is busy: what took no time when it was recorded takes a while.
    assert asyncio.run(program(run.server(patience=10.0).stretch(0, 1 << 40), 0.001)) == ["first", "second"]
