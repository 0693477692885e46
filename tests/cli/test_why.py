"""`lockstep why` in the terminal and for programs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.log import native_runs
from tests.warm import command

import lockstep as library
from lockstep.log.store import open_store

type Lockstep = Callable[..., subprocess.CompletedProcess[str]]

AGENT = """
import lockstep

@lockstep.tool(effect="read")
def get_order(order):
    return {"order": order, "total": 4000}

@lockstep.tool(effect="mutating")
def refund(cents, to):
    return "ok"

with open("customers.txt") as file:
    customer = file.read().split()[1]
found = get_order(452)
get_order(453)
refund(found["total"], to=customer)
print("refunded", found["total"] // 100, "to", customer)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("why")
    (place / "agent.py").write_text(AGENT)
    (place / "customers.txt").write_text("first C-77012 last\n")
    recorded = ("record", "--store", "store.db", "--run", "refund", "--", sys.executable, "agent.py")
    done = command.run(*recorded, cwd=place)
    assert done.returncode == 0, done.stderr
    return place


def test_the_lines_say_the_value_its_origin_and_the_way(folder: Path) -> None:
    done = command.run("why", "refund:3", "request.arguments.cents", "--store", "store.db", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "refund:3  request.arguments.cents  4000",
        "← refund:1.1  tool get_order  outcome.total  unsure",
        "    4000",
        "    by refund:3.1 request.arguments.cents ← refund:1.1 outcome.total",
        "    could be refund:2.1 as well",
        "  next   lockstep show refund:1.1",
    ]


def test_json_has_all_of_it(folder: Path) -> None:
    done = command.run("why", "refund:3.1", "to", "--json", "--store", "store.db", cwd=folder)
    found = json.loads(done.stdout)
    assert (found["address"], found["path"]) == ("refund:3.1", "request.arguments.to")
    (origin,) = found["origins"]
    assert (origin["kind"], origin["span"]) == ("file", "C-77012")
    assert origin["name"].endswith("customers.txt")
    assert origin["exact"]
    assert [link["address"] for link in found["chain"]] == ["refund:3.1", origin["address"]]


def test_what_was_computed_is_the_programs(folder: Path) -> None:
    found = library.why("refund:4", "outcome.stdout", store=folder / "store.db")
    assert [one.kind for one in found.origins] == ["file", "program"]
    assert "40" not in found.origins[0].span


@pytest.mark.parametrize(
    ("address", "path", "code"),
    [
        ("refund:3", "no.such.place", "LS212"),
        ("refund:3", "!!", "LS212"),
        ("refund", "x", "LS206"),
        ("none:1", "x", "LS205"),
    ],
)
def test_what_is_not_there_is_said(folder: Path, address: str, path: str, code: str) -> None:
    done = command.run("why", address, path, "--json", "--store", "store.db", cwd=folder)
    assert done.returncode == 2, done.stderr
    assert json.loads(done.stdout)["error"]["code"] == code


def test_a_framework_s_thread_is_followed_through_its_states(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with open_store(str(path), create=True) as opened:
        native_runs.refund(opened)
    found = library.why("langgraph/t-91:1", "452", store=path)
    assert (found.origins[0].kind, found.origins[0].address) == ("input", "langgraph/t-91:0"), found
