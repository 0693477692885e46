"""Threads of a framework in a session: their checkpoints are steps of the run, and each thread has steps of its own."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import lockstep
from lockstep.errors import AddressError
from lockstep.log.store import open_store
from lockstep.log.timeline import Step, resolve
from lockstep.session import current, lanes

SEEN: list[int] = []


@lockstep.tool(effect="read")
def look(number: int) -> int:
    SEEN.append(number)
    return number * 10


@lockstep.tool(effect="mutating")
def act(number: int) -> int:
    return checkpoint("chat/inside", "agent", number)


def checkpoint(thread: str, name: str, state: Any, of: int = 0) -> int:
    """What an adapter does when its framework saves a thread."""
    assert current.session is not None
    return current.session.checkpoint(thread, name, state, of)


def ask(thread: str, number: int) -> int:
    """What a framework's node does, with the thread's native lane on."""
    token = lanes.NATIVE.set(thread)
    try:
        return look(number)
    finally:
        lanes.NATIVE.reset(token)


def talk(thread: str = "chat/t-1", first: int = 1, last: str = "bye") -> None:
    """Three checkpoints of a thread and one of a part of it, with calls in between and around."""
    begun = checkpoint(thread, "input", {"said": []})
    heard = ask(thread, first)
    look(0)
    answered = checkpoint(thread, "agent", {"said": [heard]}, begun)
    inner = ask(f"{thread}/search", first + 1)
    checkpoint(f"{thread}/search", "find", {"found": inner}, answered)
    checkpoint(thread, last, {"said": [heard, inner]}, answered)


def steps(store: Path, text: str) -> list[tuple[int, str, str, list[int]]]:
    with open_store(str(store)) as opened:
        timeline = resolve(opened, text).timeline

        def asked(step: Step) -> list[int]:
            return [timeline.request(effect)["arguments"]["number"] for effect in step.effects]  # type: ignore[index]

        return [(step.number, step.kind, step.name, asked(step)) for step in timeline.steps]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    SEEN.clear()
    return tmp_path / "store.db"


def test_a_thread_has_steps_of_its_own_beside_those_of_the_run(store: Path) -> None:
    with lockstep.record("refund", store=str(store)):
        talk()
    assert steps(store, "refund/t-1") == [
        (0, "checkpoint", "input", []),
        (1, "checkpoint", "agent", [1]),
        (2, "checkpoint", "find", [2]),
        (3, "checkpoint", "bye", []),
    ]
    numbers = [(number, kind) for number, kind, _, _ in steps(store, "refund")]
    kinds = ["input", "step", "tool", "tool", "step", "tool", "step", "step", "end"]
    assert numbers == list(enumerate(kinds))


def test_each_of_several_threads_that_run_at_once_has_its_own_calls(store: Path) -> None:
    def run() -> None:
        running = [threading.Thread(target=talk, args=(f"chat/t-{n}", 10 * n)) for n in (1, 2, 3)]
        for each in running:
            each.start()
        for each in running:
            each.join()

    with lockstep.record("several", store=str(store)):
        run()
    for n in (1, 2, 3):
        assert [asked for *_, asked in steps(store, f"several/t-{n}")] == [[], [10 * n], [10 * n + 1], []]
    assert lockstep.replay("several", run, store=str(store)).identical


def test_checkpoints_are_compared_in_a_replay(store: Path) -> None:
    with lockstep.record("refund", store=str(store)):
        talk()
    SEEN.clear()
    assert lockstep.replay("refund", talk, store=str(store)).identical
    assert SEEN == []
    changed = lockstep.replay("refund", lambda: talk(last="ciao"), store=str(store))
    assert not changed.identical
    elsewhere = lockstep.replay("refund", lambda: talk("chat/t-2"), store=str(store))
    assert not elsewhere.identical and "t-1" in str(elsewhere.divergence)


def test_a_fork_leaves_at_a_thread_s_step_and_edits_by_its_numbers(store: Path) -> None:
    with lockstep.record("refund", store=str(store)):
        talk()
    SEEN.clear()
    forked = lockstep.fork("refund/t-1:1", talk, store=str(store), branch="early")
    assert (forked.state, SEEN) == ("complete", [2])
    lockstep.fork("refund/t-1:3", talk, store=str(store), branch="edited", edits={"2.1": 7})
    with open_store(str(store)) as opened:
        place = resolve(opened, "refund/t-1@edited:3")
        assert place.step is not None
        assert place.timeline.reader.body(place.step.stream, place.step.seq) == {"said": [10, 7]}


def test_checkpoints_made_inside_a_tool_belong_to_the_tool(store: Path) -> None:
    with lockstep.record("nested", store=str(store)):
        assert act(1) == 0
    assert [kind for _, kind, _, _ in steps(store, "nested")] == ["input", "tool", "end"]
    assert lockstep.replay("nested", lambda: act(1), store=str(store)).identical


@pytest.mark.parametrize(
    ("thread", "address"),
    [("chat/t%2F1", "run/t%2F1:1"), ("chat/ticket%3A7", "run/ticket%3A7:1"), ("chat/t-1", "run/chat/t-1:1")],
)
def test_a_thread_is_named_by_its_id_whatever_that_holds(store: Path, thread: str, address: str) -> None:
    with lockstep.record("run", store=str(store)):
        talk(thread)
    with open_store(str(store)) as opened:
        found = resolve(opened, address)
    assert found.step is not None and found.step.lane == thread


def test_a_thread_that_is_not_there_is_told_with_those_that_are(store: Path) -> None:
    with lockstep.record("run", store=str(store)):
        talk()
    with open_store(str(store)) as opened, pytest.raises(AddressError, match=r"no thread t-9. It has: main, chat/t-1"):
        resolve(opened, "run/t-9:1")
