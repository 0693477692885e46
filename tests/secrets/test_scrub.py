"""`lockstep scrub`: personal data out of a run, and what a scan still finds."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from secret_runs import lockstep, stored

from lockstep.log.personal import find, iban, luhn
from lockstep.log.redact import Hit
from lockstep.log.store import open_store
from lockstep.log.verify import verify

PERSONAL = {
    "email": "ann.smith+x@mail.example.org",
    "phone": "+49 170 1234567",
    "card": "4111 1111 1111 1111",
    "iban": "DE89 3704 0044 0532 0130 00",
    "ssn": "078-05-1120",
    "customer": "CUST-123456",
}
HARMLESS = (
    "4111 1111 1111 1112",
    "order 452-99-17",
    "2026-11-29 12:30:00",
    "version 1.2.3",
    "a@b",
    "DE00 1234 5678 9012",
)
RULES = '[tool.lockstep]\nhide = ["ticket"]\n[tool.lockstep.scrub]\ncustomer = "CUST-[0-9]{6}"\n'
AGENT = f"""
import sys, lockstep
@lockstep.tool
def look(who): return {PERSONAL!r} | {{"harmless": {HARMLESS!r}, "password": "hunter2-abc", "ticket": "abc-1"}}
print(look({PERSONAL["email"]!r}), sys.argv[1:])
"""


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text(RULES)
    (tmp_path / "agent.py").write_text(AGENT)
    done = lockstep("record", "--run", "a", "--", sys.executable, "agent.py", "--mail", "bob@example.com")
    assert done.returncode == 0, done.stderr
    return tmp_path / "store.db"


def test_a_check_finds_each_kind_with_its_place_and_shows_none_of_it(recorded: Path) -> None:
    done = lockstep("scrub", "a", "--check", "--json")
    assert done.returncode == 1
    found: dict[str, Any] = json.loads(done.stdout)
    assert {one["kind"] for one in found["found"]} == set(PERSONAL)
    assert {one["process"] for one in found["found"] if one["kind"] == "email"} >= {"", "main"}  # "" is the meta
    assert "bob@example.com" not in done.stdout
    text = lockstep("scrub", "a", "--check")
    assert text.returncode == 1
    assert "main event" in text.stderr


def test_a_scrubbed_run_has_none_of_it_says_so_and_is_a_valid_record(recorded: Path) -> None:
    done = lockstep("scrub", "a", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["scrubbed"] == "a-scrubbed"
    everything = stored(recorded, "a-scrubbed")
    for text in (*PERSONAL.values(), "bob@example.com", "hunter2-abc"):
        assert text.encode() not in everything
    for text in HARMLESS:
        assert text.encode() in everything
    assert b"lockstep-secret.password-1." in everything  # what the recording hid keeps its name
    with open_store(str(recorded)) as opened:
        reader = opened.run("a-scrubbed")
        assert isinstance(reader.meta, dict)
        assert reader.meta["scrubbed"] == "a"
        checked = verify(reader)
        assert not checked.problems
        assert PERSONAL["email"].encode() in stored(recorded, "a")  # the run itself is as it was
    assert lockstep("scrub", "a-scrubbed", "--check").returncode == 0


def test_one_text_is_one_placeholder_wherever_it_stands(recorded: Path) -> None:
    lockstep("scrub", "a")
    shown = json.loads(lockstep("show", "a-scrubbed:1", "--json").stdout)
    asked = shown["request"]["arguments"]["who"]
    assert asked.startswith("lockstep-secret.scrubbed-email-")
    assert asked == shown["outcome"]["email"]


def test_a_scrubbed_run_is_not_replayed_but_its_source_is(recorded: Path) -> None:
    lockstep("scrub", "a")
    refused = lockstep("replay", "a-scrubbed")
    assert refused.returncode == 125
    assert "lockstep replay a" in refused.stderr
    assert lockstep("replay", "a").returncode == 0


def test_names_of_the_project_s_own_are_hidden_while_recording(recorded: Path) -> None:
    assert b"abc-1" not in stored(recorded, "a")


def test_a_rule_that_makes_no_sense_is_said_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "agent.py").write_text("print('it ran')")
    for rules in ('[tool.lockstep]\nhide = "session"\n', "[tool.lockstep\n", '[tool.lockstep.scrub]\na = "("\n'):
        (tmp_path / "pyproject.toml").write_text(rules)
        shutil.rmtree(tmp_path / ".lockstep", ignore_errors=True)
        done = lockstep("record", "--run", "r", "--", sys.executable, "agent.py")
        if "scrub" in rules:
            done = lockstep("scrub", "r", "--check")
        assert "LS402" in done.stderr, rules
        assert "it ran" not in done.stdout


def test_card_and_account_numbers_are_checked_by_their_digits() -> None:
    assert luhn(b"4111 1111 1111 1111")
    assert luhn(b"3782 822463 10005")
    assert not luhn(b"4111 1111 1111 1112")
    assert not luhn(b"0000 0000 0000 0000")
    assert iban(b"GB82 WEST 1234 5698 7654 32")
    assert not iban(b"GB83 WEST 1234 5698 7654 32")


@pytest.mark.parametrize("text", HARMLESS)
def test_numbers_of_other_meaning_are_kept(text: str) -> None:
    hits: list[Hit] = list(find(text.encode(), {}))
    assert hits == []
