"""Branches on the command line: listed, shown, compared, verified, exported, deleted."""

import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.warm import command

from lockstep.log.canonical import key
from lockstep.log.model import Event, Kind, RunState, Status
from lockstep.log.store import Store, open_store

AGENT = """
import lockstep

@lockstep.tool(effect="read")
def get_order(number):
    return {"id": number, "total": 100 * number}

for number in range(1, 5):
    print(get_order(number))
"""


LATE = 3_600_000_000_000  # ns: an hour into the run


def called(pos: int, order: int, how: str, value: Any) -> list[Event]:
    request: Any = {"arguments": {"number": order}}
    name = key("tool", "get_order", request)
    body: Any = {"request": {**request, "class": "read"}, "site": "agent.py:9 in <module>"}
    return [
        Event(Kind.BEGIN, pos, LATE + pos, "main", "tool", "get_order", key=name, body=body),
        Event(Kind.END, pos + 1, LATE + pos + 1, "main", Status.OK, how, of=pos, body=value),
    ]


def fork(store: Store, name: str, parent: str, step: int, events: Callable[[int], list[Event]], **told: Any) -> None:
    """A branch as the engine makes one, by hand."""
    reader = store.run("refund", parent)
    ends = [event.pos for _, event in reader.heads(reader.main) if event.kind is Kind.END]
    pos = ends[step - 1]
    state = told.pop("state", "complete")
    finish = told.pop("finish", {})
    store.create_branch("refund", name, parent, pos)
    appender = store.stream("refund", "main", branch=name)
    own = events(pos + 2)
    body = {"live": [], "tail": "", "upto": pos, **told}
    appender.append([Event(Kind.FORK, pos + 1, LATE, "main", name=f":{step}", body=body), *own])
    last = max([pos + 1, *(event.pos for event in own)]) + 1
    appender.append([Event(Kind.FINISH, last, LATE + last, "main", state, body={"end": {"exit": None}, **finish})])
    appender.close(RunState(state))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded run with four calls and three branches, for the tests of this file that change nothing."""
    place = tmp_path_factory.mktemp("branches")
    (place / "agent.py").write_text(AGENT)
    path = place / "store.db"
    done = command.run("record", "--run", "refund", "--store", str(path), "--", sys.executable, "agent.py", cwd=place)
    assert done.returncode == 0, done.stderr
    refused = {"end": {"exit": None, "error": {"message": "LS301 tool pay() would run for real\nit is mutating"}}}
    with open_store(path) as store:
        fork(
            store, "try-2", "main", 1,
            lambda pos: [
                *called(pos, 2, "edited", "lost"), *called(pos + 2, 3, "", {"total": 1}),
                *called(pos + 4, 4, "reused", 1),
                Event(Kind.BEGIN, pos + 6, LATE + pos + 6, "main", "tool", "pay", body={"request": {}}),
            ],
            edits={"2.1": "lost"}, state="refused", finish=refused,
        )  # fmt: skip
        fork(store, "try-3", "try-2", 3, lambda pos: called(pos, 4, "", {"total": 2}), state="diverged")
        fork(store, "other", "main", 1, lambda pos: called(pos, 2, "served", {"total": 3}))
    return path


@pytest.fixture
def read(lockstep: Any, made: Path) -> Callable[..., Any]:
    def run(*words: str, status: int = 0) -> Any:
        done = lockstep(*words, "--store", str(made))
        assert done.returncode == status, done.stderr
        return json.loads(done.stdout) if "--json" in words else done.stdout or done.stderr

    return run


def test_runs_count_branches(read: Any) -> None:
    [run] = read("runs", "--json")
    assert (run["branches"], run["steps"], run["state"]) == (["main", "try-2", "try-3", "other"], 4, "complete")
    assert "main +3" in read("runs").splitlines()[1]


def test_the_log_of_a_run_lists_its_branches_under_its_steps(read: Any) -> None:
    lines = read("log", "refund").splitlines()
    assert lines[0] == "refund@main   complete, exit 0"
    assert lines[-3:] == [
        "└─ refund@try-2  from :1, 1 edit   live 1, reused 1, refused 1",
        "   └─ refund@try-3  from refund@try-2:3   live 1, diverged",
        "└─ refund@other  from :1",
    ]
    log = read("log", "refund", "--json")
    assert (log["run"], log["branches"]) == ("refund", ["main", "try-2", "try-3", "other"])
    assert [(one["address"], one["parent"], one["state"], one["live"], one["refused"]) for one in log["forks"]] == [
        ("refund@try-2", "refund:1", "refused", 1, ["tool pay() would run for real"]),
        ("refund@try-3", "refund@try-2:3", "diverged", 1, []),
        ("refund@other", "refund:1", "complete", 0, []),
    ]  # fmt: skip


def test_the_log_of_a_branch_is_that_of_one_run(read: Any) -> None:
    lines = read("log", "refund@try-2").splitlines()
    assert lines[:3] == [
        "refund@try-2   refused", "  from refund:1, 1 edit   live 1, reused 1, refused 1",
        "  refused: tool pay() would run for real",
    ]  # fmt: skip
    rows = {line.split()[0]: line for line in lines[3:]}
    assert "get_order(number=1)" in rows["1"] and "edited" in rows["2"] and "reused" in rows["4"]
    assert rows["5"].endswith("refused")
    assert lines[-1] == "└─ refund@try-3  from :3   live 1, diverged"
    log = read("log", "refund@try-2", "--json")
    assert (log["run"], log["state"]) == ("refund@try-2", "refused")
    assert [step["address"] for step in log["steps"]] == [f"refund@try-2:{number}" for number in range(6)]
    effects = [effect for step in log["steps"] for effect in step["effects"]]
    assert [(effect["address"], effect["answered"]) for effect in effects] == [
        ("refund@try-2:1.1", "recorded"), ("refund@try-2:2.1", "edited"), ("refund@try-2:3.1", "live"),
        ("refund@try-2:4.1", "reused"), ("refund@try-2:5.1", "refused"),
    ]  # fmt: skip


def test_show_says_how_a_call_was_answered(read: Any) -> None:
    assert "answered   edited" in read("show", "refund@try-2:2.1")
    assert "answered   as recorded" in read("show", "refund@try-2:1")
    assert "answered   live" in read("show", "refund@try-2:3")
    assert "answered   served" in read("show", "refund@other:2.1")
    assert "answered" not in read("show", "refund:3.1")
    shown = read("show", "refund@try-2:4.1", "--json")
    assert (shown["address"], shown["outcome"], shown["answered"]) == ("refund@try-2:4.1", 1, "reused")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("refund@none", "has no branch none. It has: main, try-2, try-3, other"),
        ("refund@try-2:9", "refund@try-2 has no step 9: its steps are 0 to 5"),
        ("none@try-2", "no run named none"),
    ],
)
def test_what_is_not_there_is_named(lockstep: Any, made: Path, address: str, words: str) -> None:
    for verb in ("log", "show"):
        done = lockstep(verb, address, "--store", str(made))
        assert (done.returncode, words in done.stderr) == (2, True), done.stderr


def test_a_branch_is_compared_with_what_it_left(read: Any) -> None:
    found = read("diff", "refund", "refund@try-2", "--json", status=1)
    calls = [one for one in found["differences"] if one["effect"] == "tool"]
    assert [(one["address_a"], one["address_b"]) for one in calls[:2]] == [
        ("refund:2", "refund@try-2:2"), ("refund:3", "refund@try-2:3"),
    ]  # fmt: skip
    assert calls[0]["b"] == '"lost"'
    assert read("diff", "refund@try-2:4", "refund@try-2:4", "--json")["same"]


def test_verify_tells_each_branch(read: Any, lockstep: Any, made: Path, tmp_path: Path) -> None:
    told = read("verify", "refund", "--times", "0", "--json")
    assert [one["address"] for one in told["branches"]] == ["refund", "refund@try-2", "refund@try-3", "refund@other"]
    assert "and refund@try-2" in read("verify", "refund", "--times", "0")
    one = read("verify", "refund@try-3", "--times", "0", "--json")
    assert (one["run"], [each["address"] for each in one["branches"]]) == (
        "refund@try-3", ["refund@try-3", "refund", "refund@try-2"],
    )  # fmt: skip
    # What was shared is changed, with totals that agree: the run and all its branches notice.
    copy = tmp_path / "copy.db"
    with sqlite3.connect(made) as source, sqlite3.connect(copy) as target:
        source.backup(target)
        target.execute("UPDATE branch SET head=zeroblob(32) WHERE name='try-2'")
    done = lockstep("verify", "refund", "--store", str(copy))
    assert done.returncode == 1
    assert "refund@try-2: what it shares with its parent was changed" in done.stderr


def test_a_branch_that_was_cut_off_keeps_a_run_from_being_wholly_authentic(
    lockstep: Any, program: Callable[[str], str], tmp_path: Path
) -> None:
    env = {"LOCKSTEP_KEY": "0123456789abcdef" * 4}
    lockstep("record", "--run", "refund", "--", sys.executable, program(AGENT), env=env)
    with open_store(tmp_path / "store.db") as store:
        fork(store, "unsealed", "main", 1, lambda pos: called(pos, 2, "", 1))
    whole = lockstep("verify", "refund", "--times", "0", "--authentic", env=env)
    assert (whole.returncode, "refund@unsealed: not keyed" in whole.stderr) == (1, True), whole.stderr
    assert lockstep("rm", "refund@unsealed").returncode == 0
    assert lockstep("verify", "refund", "--times", "0", "--authentic", env=env).returncode == 0


def test_branches_travel_and_are_deleted(lockstep: Any, made: Path, tmp_path: Path) -> None:
    file = tmp_path / "refund.tape"
    done = lockstep("export", "refund", "--output", str(file), "--store", str(made))
    assert (done.returncode, "4 branches" in done.stderr) == (0, True), done.stderr
    refused = lockstep("export", "refund@try-2", "--output", str(tmp_path / "x.tape"), "--store", str(made))
    assert (refused.returncode, "export refund" in refused.stderr) == (2, True)
    assert "4 branches" in lockstep("import", str(file)).stderr
    assert "refund@try-3" in lockstep("log", "refund").stdout
    kept = lockstep("rm", "refund@try-2")
    assert (kept.returncode, "come from it: refund@try-3. To delete these too: --force" in kept.stderr) == (2, True)
    gone = lockstep("rm", "refund@try-2", "--force", "--json")
    assert [one["run"] for one in json.loads(gone.stdout)] == ["refund@try-3", "refund@try-2"]
    assert json.loads(lockstep("log", "refund", "--json").stdout)["branches"] == ["main", "other"]
    assert lockstep("rm", "refund@other", "refund").returncode == 0
    assert json.loads(lockstep("runs", "--json").stdout) == []
