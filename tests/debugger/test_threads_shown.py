"""Threads that a framework has in a session's run: shown by their nodes and states, in the run and by themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.log.native_runs import message

import lockstep
from lockstep.cli import reading
from lockstep.log import checkpoints
from lockstep.session import current


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A run in which a thread made three checkpoints, the last one after its first, and a part of it one."""
    path = str(tmp_path / "store.db")
    hello, answer = message("human", "hello"), message("ai", "hi there")
    first: dict[str, Any] = {"messages": [hello], "__start__": 1}
    second: dict[str, Any] = {"messages": [hello, answer]}
    with lockstep.record("refund", store=path):
        assert current.session is not None
        save = current.session.checkpoint
        zero = save("chat/t-1", "input", {**checkpoints.record(None, first), "source": "input"})
        save("chat/t-1/search", "find", {**checkpoints.record(None, {"found": 1}), "source": "loop"})
        save("chat/t-1", "agent", {**checkpoints.record(first, second), "source": "loop"}, zero)
        save("chat/t-1", "", {**checkpoints.record(first, {"messages": ["edited"]}), "source": "update"}, zero)
        lockstep.step("done", {"n": 1})
    return path


def told(capsys: pytest.CaptureFixture[str], store: str, command: str, address: str) -> list[str]:
    if command == "log":
        reading.log(address, store=store, everything=False, as_json=False, debug=False)
    else:
        reading.show(address, store=store, as_json=False, debug=False)
    return [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]


def test_in_the_run_checkpoints_stand_among_its_other_steps_with_their_thread(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(capsys, store, "log", "refund")[2:] == [
        "5 ● step done",
        '4 ○ update messages = ["edited"] chat/t-1',
        '3 ● agent assistant "hi there" chat/t-1',
        "2 ● find found = 1 chat/t-1/search",
        '1 ○ input user "hello" chat/t-1',
        "0 ○ input",
    ]


def test_a_thread_by_itself_is_drawn_by_its_nodes(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, store, "log", "refund/t-1")[1:] == [
        '3 ○ update messages = ["edited"]',
        '2 ● agent assistant "hi there"',
        "1 ● find found = 1 search",
        '0 ○ input user "hello"',
    ]


def test_its_states_are_shown_with_what_changed_since_the_parent_wherever_that_is(
    store: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told(capsys, store, "show", "refund/t-1:2") == [
        "refund/t-1:2 agent lane chat/t-1", "after refund/t-1:0", "state + messages 2 messages (+1)", 'user "hello"',
        '+ assistant "hi there"',
    ]  # fmt: skip
    assert told(capsys, store, "show", "refund:4") == [
        "refund:4 update", "after refund:1",
        'state ~ messages ["edited"] (was [user "hello"])',
    ]  # fmt: skip


def test_a_step_of_the_program_is_shown_as_ever(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, store, "show", "refund:5")[1:] == ["answer n 1"]
