"""`lockstep diff` of recorded agents."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.warm import command

from lockstep.debugger import calls
from lockstep.debugger.listing import closing_effect
from lockstep.log.store import open_store
from lockstep.log.timeline import resolve
from lockstep.testing import Answer, Provider, Request

PYTHON = sys.executable

AGENT = """
import os, sys, uuid, httpx
import lockstep

@lockstep.tool(effect="read")
def get_order(order):
    return {"order": order, "total": int(os.environ.get("TOTAL", "4000"))}

with httpx.Client(base_url=os.environ["PROVIDER"], trust_env=False) as client:
    for text in ("hello", "goodbye"):
        body = {"model": "gpt-4o", "messages": [{"role": "user", "content": f"{text} {get_order(452)}"}]}
        headers = {"Authorization": f"Bearer {os.environ.get('KEY', 'sk-first')}"}
        answer = client.post("/v1/chat/completions", json=body, headers=headers).json()
        print(answer["choices"][0]["message"]["content"], uuid.uuid4())
sys.exit(int(os.environ.get("EXIT", "0")))
"""

RUNS = {
    "one": {},
    "two": {"KEY": "sk-second-0123456789abcdef"},
    "cheap": {"TOTAL": "450"},
    "failed": {"EXIT": "3"},
    "nasty": {"TOTAL": "7", "NASTY": "1"},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recorded agents for all tests of this file."""
    place = tmp_path_factory.mktemp("diff")
    (place / "agent.py").write_text(AGENT)

    def script(request: Request) -> Answer:
        nasty = "\x1b]0;owned\x07\u202e" if "'total': 7}" in request.prompt else ""
        return Answer(f"said {request.prompt.split()[0]}{nasty}")

    with Provider(script) as provider:
        for name, environ in RUNS.items():
            done = command.run(
                "record", "--run", name, "--", PYTHON, "agent.py", cwd=place,
                env={**os.environ, "PROVIDER": provider.url, "LOCKSTEP_STORE": str(place / "store.db"), **environ},
            )  # fmt: skip
            assert done.returncode == int(environ.get("EXIT", 0)), done.stderr
    return place / "store.db"


@pytest.fixture
def diff(lockstep: Any, store: Path) -> Callable[..., Any]:
    def run(*words: str, status: int = 1) -> Any:
        done = lockstep("diff", *words, "--store", str(store))
        assert (done.returncode, done.stderr) == (status, ""), done.stderr
        return json.loads(done.stdout) if "--json" in words else done.stdout

    return run


def test_two_runs_that_did_the_same_end_with_0(diff) -> None:
    text = diff("one", "two", status=0)
    assert text.splitlines()[0] == "✓ same   4 steps"
    assert "not counted: " in text and "lockstep diff one two --exact" in text
    found = diff("one", "two", "--json", status=0)
    assert (found["same"], found["first"], found["differences"]) == (True, None, [])


def test_the_first_difference_is_shown_whole_and_the_others_in_a_line(diff) -> None:
    lines = diff("one", "cheap").splitlines()
    assert lines[0] == "✗ differ   first at one:1 and cheap:1"
    assert lines[1].startswith("  changed  tool get_order  lane main  agent.py:11 in ")
    assert lines[3:6] == ["  answer.total", "    one     4000", "    cheap   450"]
    assert lines[6] == "  lockstep show one:1      lockstep show cheap:1"
    listed = [line.split() for line in lines[8:11]]
    assert [row[:3] for row in listed] == [
        ["changed", "one:2", "cheap:2"], ["changed", "one:3", "cheap:3"], ["changed", "one:4", "cheap:4"],
    ]  # fmt: skip
    assert lines[8].endswith("carries on what differs at one:1")
    assert lines[12].startswith("4 differences   4 changed")


def test_addresses_can_be_shown(diff, store: Path) -> None:
    with open_store(store) as opened:
        for entry in diff("one", "cheap", "--json")["differences"]:
            for address in (entry["address_a"], entry["address_b"]):
                place = resolve(opened, address)
                shown = place.effect or closing_effect(place.step)
                assert (shown.kind, calls.name(place.timeline, shown)) == (entry["effect"], entry["name"])


def test_json_has_all_of_it(diff) -> None:
    found = diff("one", "cheap", "--json")
    assert {"same", "first", "differences"} <= found.keys()
    assert found["first"] == found["differences"][0]
    first = found["first"]
    assert (first["kind"], first["address_a"], first["address_b"], first["lane"]) == (
        "changed",
        "one:1",
        "cheap:1",
        "main",
    )
    assert (first["effect"], first["name"], first["path"]) == ("tool", "get_order", "answer.total")
    assert (first["a"], first["b"], first["reason"]) == ("4000", "450", "was answered differently")
    assert len(diff("one", "cheap", "--json", "--limit", "2")["differences"]) == 2


def test_a_long_list_says_how_to_see_the_rest(diff) -> None:
    text = diff("one", "cheap", "--limit", "2")
    assert "… and 2 more:   lockstep diff one cheap --all" in text
    assert "more:" not in diff("one", "cheap", "--all")


def test_another_exit_status_is_another_end(diff) -> None:
    [entry] = diff("one", "failed", "--json")["differences"]
    assert (entry["kind"], entry["path"], entry["a"], entry["b"]) == ("end", "exit", "0", "3")
    assert (entry["address_a"], entry["address_b"]) == ("one:5", "failed:5")


def test_two_steps_can_be_compared(diff) -> None:
    assert diff("one:1", "one:3", status=0).startswith("✓ same")
    assert "answer.total" in diff("one:1", "cheap:3")


def test_exact_counts_what_no_two_live_runs_share(diff) -> None:
    text = diff("one", "two", "--exact")
    assert "not counted" not in text and "stdout" in text


def test_credentials_are_never_shown(diff) -> None:
    for words in (("one", "two", "--exact", "--all"), ("one", "two", "--exact", "--json")):
        text = json.dumps(diff(*words))
        assert "sk-first" not in text and "sk-second" not in text


def test_what_was_recorded_cannot_act_on_the_terminal(diff) -> None:
    for words in (("one", "nasty"), ("one", "nasty", "--json")):
        text = diff(*words) if "--json" not in words else json.dumps(diff(*words))
        assert "\x1b" not in text and "\x07" not in text and "\u202e" not in text


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("one", "nothing"), "LS205"),
        (("one:1", "two:99"), "LS206"),
        (("one", "two@try-2"), "LS206"),
        (("one", "two:1"), "LS206"),
    ],
)
def test_what_cannot_be_compared_ends_with_2(lockstep, store: Path, words: tuple[str, ...], code: str) -> None:
    done = lockstep("diff", *words, "--store", str(store))
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(f"lockstep: {code} ")
    told = lockstep("diff", *words, "--json", "--store", str(store))
    assert json.loads(told.stdout)["error"]["code"] == code
