"""Runs of workflows are read from inert data: what came, what was answered, and what the code asked for then."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import workflow_runs

import lockstep
from lockstep.cli import reading
from lockstep.log.model import Kind, Status
from lockstep.log.store import open_store

RUN = workflow_runs.RUN


type Cli = Callable[..., list[str]]


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = str(tmp_path / "store.db")
    with open_store(path, create=True) as opened:
        workflow_runs.order(opened)
    return path


@pytest.fixture
def cli(store: str, capsys: pytest.CaptureFixture[str]) -> Cli:
    """The lines that `log` or `show` prints, without the spaces that align columns."""

    def run(command: str, address: str, as_json: bool = False) -> list[str]:
        if command == "log":
            reading.log(address, store=store, everything=False, as_json=as_json, debug=True)
        else:
            reading.show(address, store=store, as_json=as_json, debug=True)
        return [re.sub(r" {2,}", "  ", line.strip()) for line in capsys.readouterr().out.splitlines()]

    return run


@pytest.mark.parametrize("words", [("log", "order-7"), ("show", "order-7:1"), ("diff", "order-7", "order-7")])
def test_neither_the_adapter_nor_the_sdk_is_loaded_to_read_a_workflow(store: str, words: tuple[str, ...]) -> None:
    code = """import sys
class Nobody:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('lockstep_temporal', 'temporalio', 'google'):
            print('loads', name, file=sys.stderr); raise SystemExit(9)
sys.meta_path.insert(0, Nobody())
import lockstep.cli; lockstep.cli.main()
"""
    environment = {**os.environ, "LOCKSTEP_STORE": store}
    command = [sys.executable, "-c", code, *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "loads" not in done.stderr, done.stderr


def test_the_log_of_a_workflow_has_activities_timers_signals_and_children_and_what_each_brought(cli: Cli) -> None:
    assert cli("log", "order-7") == [
        f"{RUN}@main  complete",
        'turn 2  Order(453)  continue_as_new  → "nothing to do"  20 ms',
        '6  ● activity  look_up("453")  LookupError: no order 453  unknown  20 ms',
        '5  ○ start  → activity look_up("453")',
        'turn 1  Order(452, {"fast": true})  → continues as new(453)  6.6 s',
        '4  ● child  Invoice(452)  → "inv-1"  unknown  0.50 s',
        "3  ● timer  3s  3.0 s",
        '2  ○ signal  approve("bob", {"note": "fine"})',
        '1  .2  ● activity  look_up("452")  → {"id": 452, "status": "delivered"}  unknown  3.1 s  ─┐ concurrent',
        '.1  ● activity  charge(452, 4000)  → {"id": "ch_1"}  unknown, 3 attempts  3.1 s  ─┘',
        '0  ○ start  → activity charge(452, 4000), activity look_up("452")',
    ]


def test_a_step_shows_what_came_and_what_the_code_asked_for_then(cli: Cli) -> None:
    assert cli("show", "order-7:0") == [
        f"{RUN}:0  start  turn 1  2026-11-30 09:30:00.000 UTC", "came  start Order",
        "then  activity charge(452, 4000)", 'activity look_up("452")',
    ]  # fmt: skip
    assert cli("show", "order-7:1") == [
        f"{RUN}:1  activity look_up, charge  turn 1  2026-11-30 09:30:03.070 UTC", f"after  {RUN}:0",
        "came  activity look_up answered", "activity charge answered", "then  timer 3s",
        f"effect  {RUN}:1.1  activity charge  unknown", f"effect  {RUN}:1.2  activity look_up  unknown",
    ]  # fmt: skip
    assert cli("show", "order-7:4") == [
        f"{RUN}:4  child Invoice  turn 1  2026-11-30 09:30:06.570 UTC  unknown  0.50 s", f"after  {RUN}:3",
        "request  [452]", "answer  inv-1", "then  continue as new", f"effect  {RUN}:4.1  child Invoice  unknown",
    ]  # fmt: skip


def test_the_attempts_of_an_activity_are_shown_with_their_errors_and_heartbeats(cli: Cli) -> None:
    assert cli("show", "order-7:1.1") == [
        f"{RUN}:1.1  activity charge  lane main  unknown  3.1 s", "request  [452,4000]", "answer  id  ch_1",
        'attempt  charge#1  OSError: no route  10 ms  2 heartbeats, the last: {"progress": 5}',
        "attempt  charge#2  OSError: no route  10 ms", "attempt  charge#3  ok  10 ms",
    ]  # fmt: skip


def test_an_error_is_shown_with_what_caused_it(store: str, cli: Cli) -> None:
    with open_store(store) as opened:
        made = workflow_runs.opened(opened, "temporal/failed")
        turn = made.turn("Order", 1)
        made.step("start", "", ["start Order"], ["activity pay"])
        pay = made.asks("activity", "pay", 1)
        cause: Any = {"module": "app.errors", "name": "Declined", "args": ["card 1881"]}
        failed: Any = {"module": "sdk", "name": "ActivityError", "args": ["activity failed"]}
        made.answers(pay, {**failed, "cause": {"exception": cause}}, Status.ERROR)
        broken: Any = {"failure": {"module": "builtins", "name": "KeyError", "args": ["no rate"]}, "times": 3}
        notes: Any = {"failed": [broken], "rejected": ["update close"]}
        made.step("activity", "pay", ["activity pay failed"], ["fail workflow"], **notes)
        made.end(turn, {**failed, "cause": {"exception": cause}}, Status.ERROR)
    assert cli("log", "failed")[1:3] == [
        "turn 1  Order(1)  Declined: card 1881  failed  <1 ms",
        "1  ● activity  pay(1)  Declined: card 1881  unknown  <1 ms",
    ]
    shown = cli("show", "failed:1")
    assert "error  sdk.ActivityError: activity failed" in shown
    assert "caused by  app.errors.Declined: card 1881" in shown
    assert shown[-3:-1] == ["note  failed 3 times before: KeyError: no rate", "rejected update close"]


def test_json_has_all_of_it(cli: Cli) -> None:
    log = json.loads("".join(cli("log", "order-7", as_json=True)))
    assert [step["kind"] for step in log["steps"]] == [
        "start", "activity", "signal", "timer", "child", "start", "activity",
    ]  # fmt: skip
    turn = log["turns"][0]
    assert (turn["execution"], turn["cause"], turn["arguments"]) == ("r1", "start", [452, {"fast": True}])
    assert turn["result"] == {"continue_as_new": {"arguments": [453]}}
    step = json.loads("".join(cli("show", "order-7:1", as_json=True)))
    assert step["jobs"] == ["activity look_up answered", "activity charge answered"]
    assert (step["commands"], step["clock"]) == (["timer 3s"], "2026-11-30T09:30:03.070+00:00")
    effect = json.loads("".join(cli("show", "order-7:1.1", as_json=True)))
    assert effect["attempts"][0] == {
        "address": f"{RUN}:1.1/1", "name": "charge#1", "status": "error", "duration": 10_000_000,
        "error": "OSError: no route", "heartbeats": 2, "details": {"progress": 5},
    }  # fmt: skip


def test_what_is_on_its_way_stands_in_the_closing_step(store: str, cli: Cli) -> None:
    with open_store(store) as opened:
        made = workflow_runs.opened(opened, "temporal/open")
        made.turn("Order", 1)
        made.step("start", "", ["start Order"], ["activity ship(1)", "timer 3d"])
        made.asks("activity", "ship", 1)
        made.asks("timer", "3d")
        made.event(Kind.WRITES, what="rest", of=made.last, body={"events": []})
    assert cli("log", "open")[1:] == [
        "turn 1  Order(1)  not ended", "1  .2  ● timer  3d  in flight  ─┐ concurrent",
        ".1  ● activity  ship(1)  unknown  in flight  ─┘", "0  ○ start  → activity ship(1), timer 3d",
    ]  # fmt: skip
    with open_store(store) as opened:
        done = workflow_runs.opened(opened, "temporal/done")
        turn = done.turn("Order", 1)
        done.step("start", "", ["start Order"], ["complete workflow"])
        done.end(turn)
        done.event(Kind.WRITES, what="rest", of=done.last, body={"events": []})
    assert cli("log", "done")[1:] == ["turn 1  Order(1)  <1 ms", "0  ○ start  → complete workflow"]


def test_two_runs_differ_in_what_they_were_given_commanded_answered_and_returned(store: str) -> None:
    with open_store(store) as opened:
        workflow_runs.order(opened, "temporal/same")
        workflow_runs.order(opened, "temporal/lost", status="lost")
        for name, given, asked, result in (
            ("one", 1, "memo", "a"), ("given", 2, "memo", "a"), ("asked", 1, "patch", "a"), ("result", 1, "memo", "b"),
        ):  # fmt: skip
            made = workflow_runs.opened(opened, f"temporal/{name}")
            turn = made.turn("Order", given)
            made.step("start", "", ["start Order"], [asked, "complete workflow"])
            made.end(turn, result)
        made = workflow_runs.opened(opened, "temporal/valued")
        turn = made.turn("Order", 1)
        made.step("start", "", ["start Order"], ["memo", "complete workflow"], b"with another value in the memo")
        made.end(turn, "a")

    def first(one: str, other: str) -> tuple[str, str, str, str, str]:
        found = lockstep.diff(one, other, store=store).first
        assert found is not None
        return found.address_a or "", found.effect, found.path, found.a, found.b

    assert lockstep.diff(RUN, "same", store=store).same
    assert first(RUN, "lost") == (f"{RUN}:1.2", "activity", "answer.status", '"delivered"', '"lost"')
    assert first("one", "given") == ("temporal/one:0", "input", "turns[0].arguments[0]", "1", "2")
    assert first("one", "asked") == ("temporal/one:0", "step", "commands[0]", '"memo"', '"patch"')
    otherwise = lockstep.diff("one", "valued", store=store).differences
    assert [(entry.effect, entry.reason) for entry in otherwise] == [("step", "asks for it otherwise")]
    assert first("one", "result") == ("temporal/one:0", "end", "result", '"a"', '"b"')
