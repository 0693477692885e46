"""A journal: what calls, steps and turns of a native run become in the store."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from lockstep.log.model import Event, Kind, Status, Value
from lockstep.log.store import open_store
from lockstep.session.native import Journal, Memory

META: dict[str, Value] = {"adapter": "test", "steps": "checkpoints", "native": {"thread": "t"}}


def opened(path: Path, **more: Any) -> Journal:
    return Journal.open(str(path), "test/t", META, **more)


def stored(path: Path, branch: str = "main") -> list[Event]:
    with open_store(str(path)) as store:
        reader = store.run("test/t", branch)
        return list(reader.events(reader.main))


def ask(journal: Any, lane: str = "main/plan", name: str = "gpt-4o", request: Value = None, **more: Any) -> Any:
    call = journal.call(lane, "model", **more)
    call.ask(name, request, request)
    return call


def answered(journal: Any, answer: Value, **more: Any) -> None:
    call = ask(journal, **more)
    assert call.live and not call.held
    with call.inside():
        pass
    call.end(Status.OK, answer)


def test_a_turn_is_stored_in_the_order_in_which_it_happened(tmp_path: Path) -> None:
    journal = opened(tmp_path / "s.db")
    turn = journal.begin_turn("invoke", {"input": {"n": 1}}, b"0123456789abcdef")
    first = journal.step("main", "input", "input", {"n": 1}, b"k1")
    answered(journal, {"content": "hello"}, request={"messages": ["hi"]})
    writes = journal.writes("main/plan", "plan", "task-1", first, {"path": "", "writes": [[0, "n", 2]]})
    second = journal.step("main", "plan", "loop", {"n": 2}, b"k2", first)
    turn.end(Status.OK, {"n": 2})
    journal.close()

    events = stored(tmp_path / "s.db")
    assert [event.kind for event in events] == [
        Kind.LANE, Kind.START, Kind.BEGIN, Kind.STEP, Kind.BEGIN, Kind.END, Kind.WRITES, Kind.STEP, Kind.END,
    ]  # fmt: skip
    assert [event.pos for event in events] == list(range(1, 10))
    begun, step, call, end, wrote, last, over = events[2:]
    assert (begun.what, begun.name, begun.lane) == ("turn", "invoke", "main")
    assert begun.body == {"request": {"input": {"n": 1}}, "seed": b"0123456789abcdef"}
    assert (step.pos, step.of, step.what, step.key) == (first, 0, "input", b"k1")
    assert (call.what, call.name, call.lane, call.of) == ("model", "gpt-4o", "main/plan", 0)
    assert isinstance(call.body, dict) and call.body["class"] == "inference"
    assert str(call.body["site"]).startswith("tests/session/native/test_journal.py:")
    assert (end.of, end.what, end.body) == (call.pos, "ok", {"content": "hello"}) and end.key
    assert (wrote.pos, wrote.of, wrote.what, wrote.name) == (writes, first, "task-1", "plan")
    assert (last.pos, last.of) == (second, first)
    assert (over.of, over.what, over.body) == (begun.pos, "ok", {"n": 2})


def test_calls_are_stored_without_anybody_asking_for_it(tmp_path: Path) -> None:
    journal = opened(tmp_path / "s.db")
    call = ask(journal)
    call.part({"item": "a"})
    wait_for(lambda: len(stored(tmp_path / "s.db")) == 4)
    call.end(Status.OK, None)
    wait_for(lambda: len(stored(tmp_path / "s.db")) == 5)
    begun, part, end = stored(tmp_path / "s.db")[2:]
    assert part.of == begun.pos and end.of == begun.pos
    journal.close()


def test_a_call_inside_another_one_says_so(tmp_path: Path) -> None:
    journal = Memory()
    outer = ask(journal, name="search")
    answered(journal, "x", within=outer)
    outer.end(Status.OK, "y")
    outside, inside = (event for event in journal.events if event.kind is Kind.BEGIN)
    assert inside.of == outside.pos and outside.of == 0


def test_an_exception_of_a_call_is_stored_as_one() -> None:
    journal = Memory()
    ask(journal).end(Status.ERROR, ValueError("no"))
    body: Any = journal.events[-1].body
    assert (body["name"], body["args"]) == ("ValueError", ["no"])


def test_a_fault_in_recording_a_call_reaches_nobody_and_costs_only_that_call() -> None:
    journal = Memory()
    ask(journal, request=object()).end(Status.OK, "lost")  # type: ignore[arg-type]
    answered(journal, "kept")
    assert [event.body for event in journal.events if event.kind is Kind.END] == ["kept"]
    assert len(journal.faults) == 1 and "cannot store a builtins.object" in journal.faults[0]


def wait_for(true: Any) -> None:
    for _ in range(2000):
        if true():
            return
        time.sleep(0.005)
    pytest.fail("it never came")


def test_a_turn_that_cannot_be_recorded_costs_the_program_nothing_but_its_record() -> None:
    journal = Memory()
    turn = journal.begin_turn("invoke", object())  # type: ignore[arg-type]
    answered(journal, "kept")
    turn.end(Status.OK, object())
    journal.begin_turn("invoke", {}).end(Status.OK, 1)
    assert [event.what for event in journal.events if event.kind is Kind.BEGIN] == ["turn", "model", "turn"]


def test_a_turn_whose_beginning_cannot_be_made_has_no_end_either(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Memory()
    monkeypatch.setattr(journal, "hide", _raise)
    turn = journal.begin_turn("invoke", {})
    turn.end(Status.OK, 1)
    assert journal.events == [] and "too deep" in journal.faults[0]


def _raise(*_: Any) -> Any:
    raise RecursionError("too deep")


def test_answers_that_one_turn_of_a_loop_brings_are_known_as_such() -> None:
    journal = Memory()

    async def answer(name: str, turns: int) -> None:
        call = ask(journal, name=name)
        for _ in range(turns):
            await asyncio.sleep(0)
        call.end(Status.OK, None)

    async def program() -> None:
        await asyncio.gather(answer("a", 1), answer("b", 3), answer("c", 1), answer("d", 3))

    asyncio.run(program())
    answered(journal, None, name="outside")
    begun = {event.pos: event.name for event in journal.events if event.kind is Kind.BEGIN}
    ticks = {begun[event.of]: event.tick for event in journal.events if event.kind is Kind.END}
    assert ticks["a"] == ticks["c"] != ticks["b"] == ticks["d"] and min(ticks["a"], ticks["b"]) > 0
    assert ticks["outside"] == -1


def test_a_step_whose_record_comes_later_closes_where_its_place_was_kept(tmp_path: Path) -> None:
    journal = opened(tmp_path / "s.db")
    turn = journal.begin_turn("context", {})
    answered(journal, "one", name="first")
    place = journal.keep_place()
    answered(journal, "two", name="second")
    journal.flush()
    assert [event.name for event in stored(tmp_path / "s.db") if event.kind is Kind.BEGIN] == ["context", "first"]
    second = journal.keep_place()
    later = journal.step("main", "two", "action", {"n": 2}, b"k2", place=second)
    first = journal.step("main", "one", "action", {"n": 1}, b"k1", place=place)
    journal.step("main", "three", "action", {"n": 3}, b"k3", later)
    turn.end(Status.OK, None)
    journal.close()

    events = stored(tmp_path / "s.db")
    assert [event.pos for event in events] == list(range(1, len(events) + 1))
    assert [event.name for event in events if event.kind in (Kind.BEGIN, Kind.STEP)] == [
        "context", "first", "one", "second", "two", "three",
    ]  # fmt: skip
    one, two, three = (event for event in events if event.kind is Kind.STEP)
    assert (first, journal.place(later), three.of) == (one.pos, two.pos, two.pos)


def test_a_step_that_never_comes_holds_up_nothing_that_follows_it(tmp_path: Path) -> None:
    journal = opened(tmp_path / "s.db")
    turn = journal.begin_turn("context", {})
    journal.keep_place()
    answered(journal, "one", name="first")
    turn.end(Status.OK, None)
    journal.keep_place()
    answered(journal, "two", name="second")
    journal.close()
    assert [event.name for event in stored(tmp_path / "s.db") if event.kind is Kind.BEGIN] == [
        "context", "first", "second",
    ]  # fmt: skip
