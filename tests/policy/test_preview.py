"""What a fork would do, told from the recording before anything runs."""

from pathlib import Path

import pytest

import lockstep
from lockstep.debugger import render_preview
from lockstep.debugger.lines import plain
from lockstep.debugger.preview import preview
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline
from lockstep.session.policy import EffectRules, Policy


@lockstep.tool(effect="read")
def look(order: int) -> int:
    return order


@lockstep.tool(effect="mutating")
def charge(order: int) -> int:
    return order


@lockstep.tool
def refund(order: int) -> int:
    return charge(order)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    store = tmp_path / "s.db"
    with lockstep.record("r", store=str(store)):
        charge(1)
        look(2)
        look(3)
        refund(4)
        lockstep.step("done")
        look(5)
    return store


def _told(store: Path, after: int, policy: Policy) -> dict[str, list[tuple[str, str, int, str]]]:
    with open_store(str(store)) as opened:
        found = preview(Timeline(opened.run("r")), after, policy)
    groups = {"live": found.live, "reused": found.reused, "refused": found.refused, "stopped": found.stopped}
    return {
        fate: [(each.name, each.effect_class, each.times, each.first) for each in group]
        for fate, group in groups.items()
        if group
    }


def test_what_runs_and_what_would_be_refused_is_told_of_the_calls_after_the_step(recorded: Path) -> None:
    assert _told(recorded, 0, Policy()) == {
        "live": [("look", "read", 3, "2.1")],
        "refused": [("charge", "mutating", 1, "1.1"), ("refund", "unknown", 1, "4.1")],
    }
    assert _told(recorded, 4, Policy()) == {"live": [("look", "read", 1, "6.1")]}
    assert _told(recorded, 6, Policy()) == {}


def test_flags_tails_and_rules_are_those_of_the_fork(recorded: Path) -> None:
    assert _told(recorded, 3, Policy(live=("refund",))) == {
        "live": [("refund", "unknown", 1, "4.1"), ("look", "read", 1, "6.1")]
    }
    assert list(_told(recorded, 0, Policy(tail="live"))) == ["live"]
    assert list(_told(recorded, 0, Policy(tail="reuse"))) == ["reused", "refused"]
    assert list(_told(recorded, 0, Policy(tail="record"))) == ["refused"]
    rules = EffectRules((("look", "mutating"),))
    assert _told(recorded, 4, Policy(rules=rules)) == {"refused": [("look", "mutating", 1, "6.1")]}


def test_what_changes_something_inside_a_call_that_would_run_is_told(recorded: Path) -> None:
    with open_store(str(recorded)) as opened:
        found = preview(Timeline(opened.run("r")), 0, Policy(live=("refund",)))
    assert [(each.name, each.changing) for each in found.live] == [("look", ()), ("refund", ("tool charge",))]
    lines = [plain(line) for line in render_preview.preview(found)]
    assert lines == [
        "  would call live: tool look ×3, tool refund",
        "    in refund: tool charge",
        "  would answer from the record, and refuse what is not there: tool charge   to let it run: --live charge",
    ]


def test_a_process_cannot_be_answered_from_the_record(tmp_path: Path) -> None:
    import subprocess

    store = tmp_path / "s.db"
    with lockstep.record("r", store=str(store)):
        subprocess.run(["true"], check=True)
    with open_store(str(store)) as opened:
        found = preview(Timeline(opened.run("r")), 0, Policy())
    assert [(each.name, each.flag) for each in found.stopped] == [("true", "true")]
    lines = [plain(line) for line in render_preview.preview(found)]
    assert lines == ["  would refuse: process true   to let it run: --live true"]
