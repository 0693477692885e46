"""`lockstep runs`, `log` and `show` of a recorded agent."""

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.warm import command

from lockstep.testing import Answer, Provider, ToolCall

PYTHON = sys.executable

AGENT = """
import asyncio, json, os, httpx
import lockstep

@lockstep.tool(effect="mutating")
def issue_refund(order, cents):
    return {"ok": True, "order": order}

@lockstep.tool(effect="read")
def broken():
    raise KeyError("no such order")

async def ask(client, *messages):
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": text} for text in messages]}
    answer = await client.post("/v1/chat/completions", json=body, headers={"Authorization": "Bearer sk-secret"})
    return answer.json()["choices"][0]["message"]

async def main():
    async with httpx.AsyncClient(base_url=os.environ["PROVIDER"]) as client:
        print(await ask(client, "hello"))
        print(issue_refund(452, cents=4000))
        await asyncio.gather(*(ask(client, f"side {n}") for n in range(3)))
        await client.get("/orders?token=abc")
        try:
            broken()
        except KeyError as error:
            print(error)
        lockstep.step("triaged", {"order": 452})
        print(await ask(client, "\\x1b]0;owned\\x07 [bold]"))

asyncio.run(main())
"""

NASTY = "\x1b[31mred[/bold]\u202e and a second line\nhere"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One recorded agent for all tests of this file."""
    place = tmp_path_factory.mktemp("reading")
    (place / "agent.py").write_text(AGENT)
    script = [
        Answer(calls=(ToolCall("issue_refund", {"order": 452}),)),
        "one",
        "two",
        "three",
        NASTY,
    ]
    with Provider(script, jitter=(0.1, 0.2)) as provider:
        done = command.run(
            "record", "--run", "refund", "--", PYTHON, "agent.py", "--ticket", "4711", cwd=place,
            env={**os.environ, "PROVIDER": provider.url, "LOCKSTEP_STORE": str(place / "store.db")},
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "● refund  complete  9 steps  5 model · 2 tool · 1 http · 1 step" in done.stderr
    return place / "store.db"


@pytest.fixture
def read(lockstep: Any, store: Path) -> Callable[..., Any]:
    def run(*words: str, status: int = 0) -> Any:
        done = lockstep(*words, "--store", str(store))
        assert done.returncode == status, done.stderr
        assert status or done.stderr == ""
        return json.loads(done.stdout) if "--json" in words else done.stdout

    return run


def test_runs_are_listed(read) -> None:
    [run] = read("runs", "--json")
    assert (run["run"], run["state"], run["steps"], run["branches"], run["exit"]) == (
        "refund",
        "complete",
        9,
        ["main"],
        0,
    )
    heading, row = read("runs").splitlines()
    assert heading.split() == ["RUN", "STEPS", "BRANCHES", "STATE", "WHEN", "SIZE"]
    assert row.split()[:4] == ["refund", "9", "main", "complete"]


def test_the_log_is_data_for_programs(read) -> None:
    log = read("log", "refund", "--json")
    assert (log["run"], log["branches"]) == ("refund", ["main"])
    assert [(step["address"], step["kind"]) for step in log["steps"]] == [
        ("refund:0", "input"), ("refund:1", "model"), ("refund:2", "tool"), ("refund:3", "model"),
        ("refund:4", "model"), ("refund:5", "model"), ("refund:6", "http"), ("refund:7", "tool"),
        ("refund:8", "step"), ("refund:9", "model"), ("refund:10", "end"),
    ]  # fmt: skip
    effects = [effect for step in log["steps"] for effect in step["effects"]]
    assert [effect["address"] for effect in effects] == [f"refund:{n}.1" for n in (1, 2, 3, 4, 5, 6, 7, 9)]
    assert effects[0] == {
        "address": "refund:1.1", "kind": "model", "name": "gpt-4o", "lane": "main", "class": "inference",
    }  # fmt: skip
    assert [effect["class"] for effect in effects[1::4]] == ["mutating", "read"]
    assert (effects[1]["name"], effects[6]["name"], effects[6]["class"]) == ("issue_refund", "broken", "read")
    assert log["steps"][8]["name"] == "triaged"


def test_the_log_is_readable(read) -> None:
    lines = read("log", "refund").splitlines()
    assert lines[0] == "refund@main   complete, exit 0"
    rows = {line.split()[0]: line for line in lines[1:]}
    assert "gpt-4o   → issue_refund" in rows["1"] and re.search(r" \d+\+\d+ tok ", rows["1"])
    assert "issue_refund(order=452, cents=4000)" in rows["2"] and "mutating" in rows["2"]
    assert rows["5"].endswith("─┐ concurrent") and rows["4"].endswith(" │") and rows["3"].endswith("─┘")
    assert "→ 200" in rows["6"] and "read" in rows["6"]
    assert "KeyError: no such order" in rows["7"]
    assert "triaged" in rows["8"]
    assert "--ticket 4711" in rows["0"]


def test_one_effect_is_shown_whole(read) -> None:
    text = read("show", "refund:2")
    assert text.splitlines()[0].startswith("refund:2  tool issue_refund  lane main  agent.py:")
    assert "mutating" in text and "cents  4000" in text and "ok     true" in text
    shown = read("show", "refund:2.1", "--json")
    assert (shown["address"], shown["kind"], shown["name"], shown["class"]) == (
        "refund:2.1", "tool", "issue_refund", "mutating",
    )  # fmt: skip
    assert shown["request"]["arguments"] == {"order": 452, "cents": 4000}
    assert shown["outcome"] == {"ok": True, "order": 452}
    assert "in main" in shown["site"]


def test_a_model_call_is_shown_as_a_conversation(read) -> None:
    text = read("show", "refund:1")
    assert "user       hello" in text and 'answer     → issue_refund({"order":452})' in text
    shown = read("show", "refund:1", "--json")
    assert shown["outcome"]["tool_calls"][0]["name"] == "issue_refund"
    assert shown["outcome"]["tool_calls"][0]["arguments"] == {"order": 452}
    assert shown["request"]["body"]["messages"] == [{"role": "user", "content": "hello"}]


def test_an_http_answer_is_status_headers_and_body(read) -> None:
    shown = read("show", "--json", "refund:6")
    assert {"status", "headers", "body"} == set(shown["outcome"])
    assert (shown["outcome"]["status"], shown["outcome"]["body"]["path"]) == (200, "/orders")


def test_credentials_are_not_shown(read) -> None:
    for words in (("show", "refund:1"), ("show", "refund:1", "--json"), ("log", "refund", "--json")):
        assert "sk-secret" not in json.dumps(read(*words))


def test_an_error_is_shown_as_it_was_raised(read) -> None:
    assert "error      KeyError: no such order" in read("show", "refund:7")
    assert read("show", "refund:7", "--json")["status"] == "error"


def test_input_end_and_named_steps_are_shown(read) -> None:
    assert "--ticket" in read("show", "refund:0")
    assert read("show", "refund:0", "--json")["request"]["command"][-2:] == ["--ticket", "4711"]
    assert read("show", "refund:8", "--json")["outcome"] == {"order": 452}
    assert "exit" in read("show", "refund:10")


def test_what_was_recorded_cannot_act_on_the_terminal(read) -> None:
    for text in (read("log", "refund"), read("show", "refund:9"), read("show", "refund:9", "--json")):
        assert "\x1b" not in text and "\x07" not in text
    assert "\u202e" not in read("log", "refund") + read("show", "refund:9")
    assert "\\x1b[31mred[/bold]\\u202e and a second line" in read("show", "refund:9")


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("show", "refund:99"), "LS206"),
        (("show", "refund:1.9"), "LS206"),
        (("show", "refund@other:1"), "LS206"),
        (("show", "refund::"), "LS206"),
        (("show", "nothing:1"), "LS205"),
        (("log", "nothing"), "LS205"),
    ],
)
def test_an_address_that_names_nothing_is_said_so(lockstep, store: Path, words: tuple[str, ...], code: str) -> None:
    done = lockstep(*words, "--store", str(store))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"lockstep: {code} ")
    told = lockstep(*words, "--json", "--store", str(store))
    assert json.loads(told.stdout)["error"]["code"] == code


def test_options_stand_before_or_after_the_address(lockstep, store: Path) -> None:
    before = lockstep("show", "--store", str(store), "--json", "refund:2")
    after = lockstep("show", "refund:2", "--json", "--store", str(store))
    assert before.stdout == after.stdout and before.returncode == 0


def test_every_command_has_help_with_an_example(lockstep) -> None:
    words = lockstep("--help").stdout
    for verb in ("record", "replay", "verify", "runs", "log", "show"):
        assert verb in words
        shown = lockstep(verb, "--help")
        assert shown.returncode == 0 and f"Example: lockstep {verb}" in shown.stdout
    assert lockstep("--version").stdout.startswith("lockstep ")
    assert lockstep("no-such-verb").returncode == 2
