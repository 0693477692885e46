"""Threads of a framework in the terminal: nodes, turns, states, and the adapter nowhere in sight."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.log import native_runs

from lockstep.cli import reading, replaying
from lockstep.log.model import Event, Kind, Status
from lockstep.log.store import open_store

type Lockstep = Callable[..., subprocess.CompletedProcess[str]]

RUN = native_runs.RUN


@pytest.fixture
def store(tmp_path: Path) -> str:
    """A store with one thread, and a branch of it."""
    path = str(tmp_path / "store.db")
    with open_store(path, create=True) as opened:
        thread = native_runs.refund(opened)
        steps = [event.pos for event in opened.run(RUN).events(1) if event.kind is Kind.STEP]
        fork = Event(Kind.FORK, -1, 0, "main", body={"latest": True})
        branch = native_runs.Thread(opened.fork_shared(RUN, "update", "main", steps[3], fork), thread.states)
        branch.step(steps[3], {**thread.states[steps[3]], "notes": ["edited"]}, "update", "update")
    return path


@pytest.fixture
def lockstep(store: str, capsys: pytest.CaptureFixture[str]) -> Lockstep:
    """The command that reads, without a process for each."""

    def run(command: str, address: str = "", *options: str) -> subprocess.CompletedProcess[str]:
        given: dict[str, Any] = {"store": store, "as_json": "--json" in options or address == "--json", "debug": False}
        status = 0
        try:
            match command:
                case "runs":
                    reading.runs(**given)
                case "log":
                    reading.log(address, everything=False, **given)
                case "show":
                    reading.show(address, **given)
                case "verify":
                    none: Any = {"times": 1, "authentic": False, "trust": False, "isolate": False}
                    replaying.verify(address, [], **none, **given)
        except SystemExit as ended:
            status = int(ended.code or 0)
        out, err = capsys.readouterr()
        return subprocess.CompletedProcess([command, address], status, out, err)

    return run


def squeezed(text: str) -> list[str]:
    return [re.sub(r" {2,}", "  ", line).strip() for line in text.splitlines()]


def test_runs_lists_threads_beside_other_runs(store: str, lockstep: Lockstep) -> None:
    done = lockstep("runs")
    assert squeezed(done.stdout)[1].startswith("langgraph/t-91  6  main +1  complete")


def test_log_draws_nodes_turns_calls_and_branches(store: str, lockstep: Lockstep) -> None:
    done = lockstep("log", "t-91")
    assert done.returncode == 0, done.stderr
    assert [re.sub(r"  (<1|\d+) ms$", "", line) for line in squeezed(done.stdout)] == [
        "langgraph/t-91@main  complete",
        'turn 2  invoke  Command(resume="yes")',
        '5  ● review  notes = ["review yes"]',
        'turn 1  invoke  {"messages": [["user", "where is 452?"]]}',
        '4  ● agent  assistant "Order 452 was delivered."',
        '.1  model  gpt-4o  → "Order 452 was delivered."',
        '3  ● tools  tool "delivered" · order = {"id": 452, "status": "delivered"}',
        ".1  tool  get_order(number=452)  unknown",
        "2  ● agent  assistant → get_order(number=452)",
        ".1  model  gpt-4o  → get_order  20+5 tok",
        '1  ● input  user "where is 452?"',
        '0  ○ input  {"messages": ["where is 452?"]}',
        "└─ langgraph/t-91@update  from :3  1 step",
    ]


def test_log_of_a_branch_says_where_it_left_and_shows_what_it_shares(store: str, lockstep: Lockstep) -> None:
    lines = squeezed(lockstep("log", "langgraph/t-91@update").stdout)
    assert lines[:3] == [
        "langgraph/t-91@update  complete",
        "from langgraph/t-91:3, 1 step",
        '4  ○ update  notes = ["edited"]',
    ]
    assert lines[3].startswith("turn 1  invoke")


def test_the_branch_that_has_the_latest_checkpoint_is_called_so(store: str, lockstep: Lockstep) -> None:
    def save(thread: native_runs.Thread, of: int, id: Any) -> int:
        body = {"id": id, "channels": {"m": {"value": 1}}, "whole": True}
        return thread.event(Kind.STEP, what="loop", name="n", of=of, body=body)

    with open_store(store) as opened:
        thread = native_runs.open_thread(opened, "langgraph/heads")
        first = save(thread, 0, bytes(15) + b"\x01")
        save(thread, first, bytes(15) + b"\x05")
        for name, latest, id in (("mine", True, bytes(15) + b"\x04"), ("try-2", False, bytes(15) + b"\x09")):
            fork = Event(Kind.FORK, -1, 0, "main", body={"latest": latest})
            branch = native_runs.Thread(opened.fork_shared("langgraph/heads", name, "main", first, fork))
            save(branch, first, id)

        def heads() -> list[str]:
            return [line for line in squeezed(lockstep("log", "heads").stdout) if line.startswith("└─")]

        assert heads() == [
            "└─ langgraph/heads@mine  from :0  1 step", "└─ langgraph/heads@try-2  from :0  1 step",
        ]  # fmt: skip
        mine = native_runs.Thread(opened.open_shared("langgraph/heads", {}, "mine"))
        save(mine, first, bytes(15) + b"\x06")
        assert heads() == [
            "└─ langgraph/heads@mine  from :0  2 steps  latest", "└─ langgraph/heads@try-2  from :0  1 step",
        ]  # fmt: skip
    forks = json.loads(lockstep("log", "heads", "--json").stdout)["forks"]
    assert [(one["address"], one["latest"]) for one in forks] == [
        ("langgraph/heads@mine", True), ("langgraph/heads@try-2", False),
    ]  # fmt: skip


def test_show_has_what_was_written_the_state_and_what_changed(store: str, lockstep: Lockstep) -> None:
    done = lockstep("show", "t-91:3")
    assert squeezed(done.stdout) == [
        "langgraph/t-91:3  tools  turn 1",
        "after  langgraph/t-91:2",
        'wrote  tools  messages ← [tool "delivered"]',
        'wrote  tools  order ← {"id": 452, "status": "delivered"}',
        "state  + messages  3 messages  (+1)",
        'user "where is 452?"',
        "assistant → get_order(number=452)",
        '+ tool "delivered"',
        'state  + order  {"id": 452, "status": "delivered"}  (was absent)',
        "effect  langgraph/t-91:3.1  tool get_order  unknown  lane main/tools",
    ]


def test_show_has_what_a_human_was_asked_and_said(store: str, lockstep: Lockstep) -> None:
    lines = squeezed(lockstep("show", "t-91:5").stdout)
    assert lines[:5] == [
        "langgraph/t-91:5  review  turn 2",
        "after  langgraph/t-91:4",
        'asked  review  "send it?"',
        'human  review  "yes"',
        'wrote  review  notes ← ["review yes"]',
    ]


def test_show_of_the_first_step_has_what_the_graph_was_given(store: str, lockstep: Lockstep) -> None:
    assert squeezed(lockstep("show", "t-91:0").stdout) == [
        "langgraph/t-91:0  input  turn 1",
        'given  {"messages": ["where is 452?"]}',
    ]


def test_a_model_call_is_shown_as_a_conversation(store: str, lockstep: Lockstep) -> None:
    lines = squeezed(lockstep("show", "t-91:2.1").stdout)
    assert lines[0].startswith("langgraph/t-91:2.1  model gpt-4o  lane main/agent")
    assert lines[1:] == ["user  where is 452?", 'answer  → get_order({"number":452})', "20+5 tok"]


def test_what_waits_and_what_failed_is_at_the_end(store: str, lockstep: Lockstep) -> None:
    with open_store(store) as opened:
        thread = native_runs.open_thread(opened, "langgraph/waits")
        turn = thread.turn()
        first = thread.step(0, {"m": [1]}, "input", "input")
        question = {"$": "tuple", "$items": [{"$": "dataclass", "$class": "x:Interrupt", "value": {"ok": "?"}}]}
        thread.writes(first, "ask", ("__interrupt__", question), first=-3)
        error = {"$": "exception", "$value": {"name": "ValueError", "args": ["no such order"]}}
        thread.writes(first, "bad", ("__error__", error), first=-1)
        thread.writes(first, "good", ("m", [2]), ("branch:to:next", None))
        thread.end(turn, Status.ERROR, {"name": "ValueError", "args": ["no such order"]})
    lines = [re.sub(r"  (<1|\d+) ms$", "", line) for line in squeezed(lockstep("log", "waits").stdout)]
    assert lines == [
        "langgraph/waits@main  failed",
        "turn 1  invoke  ValueError: no such order  failed",
        '… ask  {"ok": "?"}  waits',
        "✗ bad  ValueError: no such order  failed",
        "✓ good  m ← [2]  not merged yet",
        "0  ○ input  m = [1]",
    ]  # fmt: skip
    assert squeezed(lockstep("show", "waits:1").stdout) == [
        "langgraph/waits:1  end  turn 1",
        "on  langgraph/waits:0",
        'waits  ask  {"ok": "?"}',
        "failed  bad  ValueError: no such order",
        "wrote  good  m ← [2]",
    ]


def test_namespaces_of_subgraphs_stand_beside_their_steps(store: str, lockstep: Lockstep) -> None:
    with open_store(store) as opened:
        thread = native_runs.open_thread(opened, "langgraph/sub")
        root = thread.step(0, {"m": 0}, "input", "input")
        thread.step(0, {"q": 1}, "search", lane="main/plan")
        thread.step(root, {"m": 1}, "plan")
    assert squeezed(lockstep("log", "sub").stdout)[1:] == [
        "2  ● plan  m = 1", "1  ● search  q = 1  plan", "0  ○ input  m = 0",
    ]  # fmt: skip
    assert squeezed(lockstep("show", "sub:1").stdout)[0] == "langgraph/sub:1  search  lane main/plan"


def test_calls_of_tasks_that_ran_side_by_side_say_which_one_they_are_of(store: str, lockstep: Lockstep) -> None:
    with open_store(store) as opened:
        thread = native_runs.open_thread(opened, "langgraph/fan")
        root = thread.step(0, {"m": []}, "input", "input")
        send: dict[str, Any] = {"$": "dataclass", "$class": "langgraph.types:Send", "node": "worker", "arg": 1}
        thread.writes(root, "plan", ("m", [1]), ("__pregel_tasks", send), ("__pregel_tasks", {**send, "arg": 2}))
        plan = thread.step(root, {"m": [1]}, "plan")
        for number in (0, 1):
            thread.call(f"main/worker.{number}", "tool", "look", {"arguments": {"n": number}}, number)
        thread.step(plan, {"m": [1, 0, 1]}, "worker")
    lines = [re.sub(r"  (<1|\d+) ms$", "", line) for line in squeezed(lockstep("log", "fan").stdout)]
    assert lines[1:5] == [
        "2  ● worker  m + 0, 1", ".2  tool  look(n=1)  worker.1, unknown", ".1  tool  look(n=0)  worker.0, unknown",
        "1  ● plan  m = [1]",
    ]  # fmt: skip
    assert squeezed(lockstep("show", "fan:1").stdout)[2:4] == ["sent  plan  to worker ×2", "wrote  plan  m ← [1]"]


def test_json_has_all_of_it(store: str, lockstep: Lockstep) -> None:
    log = json.loads(lockstep("log", "t-91", "--json").stdout)
    assert log["run"] == RUN and log["branches"] == ["main", "update"]
    assert [(turn["number"], turn["name"], turn["status"], turn["steps"]) for turn in log["turns"]] == [
        (1, "invoke", "ok", [0, 4]), (2, "invoke", "ok", [5, 5]),
    ]  # fmt: skip
    assert log["steps"][2]["name"] == "agent" and log["steps"][2]["lane"] == "main"
    assert [effect["name"] for effect in log["steps"][2]["effects"]] == ["gpt-4o"]
    step = json.loads(lockstep("show", "t-91:3", "--json").stdout)
    assert step["outcome"]["order"] == {"id": 452, "status": "delivered"} and len(step["outcome"]["messages"]) == 3
    assert (step["parent"], step["turn"], step["source"]) == (2, 1, "loop")
    assert [(one["channel"], one["how"]) for one in step["changes"]] == [("messages", "grown"), ("order", "added")]
    assert step["tasks"][0]["node"] == "tools" and step["tasks"][0]["writes"][1][0] == "order"
    runs: list[Any] = json.loads(lockstep("runs", "--json").stdout)
    assert runs[0]["steps"] == 6 and runs[0]["branches"] == ["main", "update"]


@pytest.mark.parametrize("words", [("runs",), ("log", "t-91"), ("show", "t-91:3"), ("diff", "t-91", "t-91@update")])
def test_no_adapter_and_no_framework_is_loaded(store: str, tmp_path: Path, words: tuple[str, ...]) -> None:
    code = (
        "import sys\n"
        "class Nobody:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.split('.')[0] in ('lockstep_langgraph', 'langgraph', 'langchain_core', 'langchain'):\n"
        "            print('loads', name, file=sys.stderr); raise SystemExit(9)\n"
        "sys.meta_path.insert(0, Nobody())\n"
        "from lockstep.cli import main\n"
        "sys.argv = ['lockstep', *sys.argv[1:]]\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words], cwd=tmp_path, env=os.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1) and "loads" not in done.stderr, done.stderr


def test_verify_without_a_graph_looks_at_the_record_and_says_what_a_replay_needs(
    store: str, lockstep: Lockstep
) -> None:  # fmt: skip
    done = lockstep("verify", "t-91")
    assert done.returncode == 0 and "consistent" in done.stderr
    assert "lockstep replay t-91 --target MODULE:NAME" in done.stderr
    found = json.loads(lockstep("verify", "t-91", "--json").stdout)
    assert found["identical"] and found["consistent"] and found["replays"] == 0


def test_what_a_state_holds_cannot_move_the_cursor_or_change_the_title(store: str, lockstep: Lockstep) -> None:
    with open_store(store) as opened:
        thread = native_runs.open_thread(opened, "langgraph/bad")
        evil = "\x1b]0;owned\x07\x1b[2J\u202e"
        thread.turn(given={evil: evil})
        first = thread.step(0, {evil: [native_runs.message("human", evil)]}, evil, "input")
        thread.writes(first, evil, (evil, {"$": "dataclass", "$class": evil, evil: evil}), lane=f"main/{evil}")
        thread.step(first, {evil: {"$": evil, "$class": [evil], "$items": evil}}, evil, evil, lane=f"main/{evil}")
    for words in (("log", "bad"), ("show", "bad:0"), ("show", "bad:1"), ("show", "bad:2")):
        done = lockstep(*words)
        assert done.returncode in (0, 2) and "\x1b" not in done.stdout and "\u202e" not in done.stdout, done.stderr
        assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "record",
    [
        None,
        [],
        "text",
        {"channels": 7},
        {"channels": {"m": None}},
        {"channels": {"m": {"keep": 9, "items": []}}},
        {"channels": {"m": {"value": {"$": {}, "type": 3}}}, "whole": True},
        {"channels": {"m": {"value": [{"type": "ai", "content": {"x": []}, "tool_calls": {"a": 1}}]}}, "whole": True},
        {"channels": {"m": {"value": [{"type": "ai", "content": 3, "tool_calls": [[], None]}]}}, "whole": 1},
    ],
)
def test_forged_records_are_shown_or_called_damaged(store: str, lockstep: Lockstep, record: Any) -> None:
    with open_store(store) as opened:
        thread = native_runs.open_thread(opened, "langgraph/odd")
        thread.turn(given=record)
        first = thread.step(0, {"m": [1]}, "input", "input")
        thread.event(Kind.STEP, what="loop", name="n", of=first, body=record)
        thread.event(Kind.WRITES, "main/n", what="t", name="n", of=first + 1, body=record)
        thread.call("main/n", "model", "gpt-4o", {"messages": record}, record)
    for words in (("log", "odd"), ("show", "odd:1"), ("show", "odd:2"), ("show", "odd:2.1")):
        done = lockstep(*words)
        assert "Traceback" not in done.stderr and done.returncode in (0, 2), (words, done.stderr)


@pytest.mark.parametrize("command", ["replay", "verify"])
def test_a_target_is_not_isolated_in_silence(store: str, capsys: pytest.CaptureFixture[str], command: str) -> None:
    given: Any = {
        "store": store,
        "trust": False,
        "isolate": True,
        "as_json": False,
        "debug": False,
        "target": "app:graph",
    }
    with pytest.raises(SystemExit) as ended:
        if command == "replay":
            replaying.replay("t-91", [], speed=0.0, **given)
        else:
            replaying.verify("t-91", [], times=1, authentic=False, **given)
    assert ended.value.code == 125
    assert "LS402 --isolate is for commands" in capsys.readouterr().err
