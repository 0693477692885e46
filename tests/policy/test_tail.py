"""The policy in real forks: what ran, what was answered, what was refused, and with which words."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.warm import command

import lockstep
from lockstep.errors import Code, Refused, TargetError
from lockstep.inprocess import forked
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline
from lockstep.session.policy import Policy

ran: list[str] = []
cents = 4000


@lockstep.tool(effect="read")
def look(what: str) -> str:
    ran.append("look")
    return what


@lockstep.tool(effect="mutating")
def issue_refund(order: int, cents: int) -> dict[str, bool]:
    ran.append("issue_refund")
    return {"ok": True}


@lockstep.tool
def tell(whom: str) -> str:
    ran.append("tell")
    return whom


def agent() -> Any:
    look("order")
    answer = issue_refund(452, cents)
    tell("bob")
    look("again")
    return answer


@pytest.fixture(autouse=True)
def _recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with lockstep.record("r"):
        agent()
    ran.clear()


def _classes(branch: str) -> dict[str, str]:
    with open_store(None) as opened:
        timeline = Timeline(opened.run("r", branch))
        return {one.name: timeline.effect_class(one) for step in timeline.steps for one in step.effects}


def test_by_itself_a_tail_reads_and_answers_what_would_change_something_from_the_record() -> None:
    done = lockstep.fork("r:0", agent)
    assert (done.state, done.result, done.live, done.reused) == ("complete", {"ok": True}, 2, 2)
    assert ran == ["look", "look"]
    assert _classes("fork") == {"look": "read", "issue_refund": "mutating", "tell": "unknown"}


def test_a_call_that_the_record_does_not_have_stops_the_program_whatever_that_catches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(globals(), "cents", 4500)
    after = []

    def talks_over_it() -> None:
        try:
            agent()
        except Exception:
            after.append("the tool said no")

    with pytest.raises(Refused) as caught:
        lockstep.fork("r:1", talks_over_it)
    assert (after, ran) == ([], [])
    assert caught.value.code is Code.REFUSED
    assert caught.value.run.state == "refused"
    said = caught.value.message.splitlines()
    assert said[0] == "tool issue_refund(order=452, cents=4500) would run for real"
    line = issue_refund.__wrapped__.__code__.co_firstlineno  # type: ignore[attr-defined]
    assert "it is mutating (declared in " in said[1]
    assert f"test_tail.py:{line}) and differs from the recorded call (cents 4000 → 4500)" in said[1]
    assert said[2] == "let it run:    --live issue_refund"


def test_what_is_named_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "cents", 4500)
    done = lockstep.fork("r:1", agent, live=["issue_*"])
    assert (done.state, ran) == ("complete", ["issue_refund", "look"])


@pytest.mark.parametrize(
    ("tail", "expected"),
    [("live", ["look", "issue_refund", "tell", "look"]), ("reuse", []), ("record", [])],
)  # fmt: skip
def test_a_tail_says_what_becomes_of_calls_that_the_record_has(tail: Any, expected: list[str]) -> None:
    assert lockstep.fork("r:0", agent, tail=tail).state == "complete"
    assert ran == expected


def test_a_tail_that_only_the_record_answers_refuses_even_what_only_reads() -> None:
    def other() -> None:
        look("something else")

    with pytest.raises(Refused, match="--tail record answers from the record only"):
        lockstep.fork("r:0", other, tail="record")
    assert lockstep.fork("r:0", other, tail="reuse").live == 1


def test_each_recorded_call_answers_once() -> None:
    def twice() -> None:
        issue_refund(452, 4000)
        issue_refund(452, 4000)

    with pytest.raises(Refused, match="the recorded call like it has answered another one"):
        lockstep.fork("r:0", twice)
    assert ran == []


def test_a_process_is_not_answered_from_the_record() -> None:
    def starts() -> str:
        return subprocess.run(["echo", "hi"], capture_output=True, text=True, check=True).stdout

    with lockstep.record("p"):
        starts()
    with pytest.raises(Refused, match="a recorded process does not answer for another") as caught:
        lockstep.fork("p:0", starts)
    assert caught.value.message.startswith(
        "process echo hi would run for real\nit is unknown (a process may do anything)"
    )
    assert lockstep.fork("p:0", starts, live=["echo *"]).result == "hi\n"


def test_the_rules_of_the_project_hold_in_the_tail_and_are_what_the_branch_stores(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.lockstep.effects]\nlook = "mutating"\ntell = "read"\n')
    done = lockstep.fork("r:0", agent)
    assert (done.state, ran) == ("complete", ["tell"])
    assert _classes("fork") == {"look": "mutating", "issue_refund": "mutating", "tell": "read"}

    def other() -> None:
        look("something else")

    with pytest.raises(Refused, match=r'it is mutating \(by the rule "look" in pyproject.toml\)'):
        lockstep.fork("r:0", other)


def test_a_pattern_may_stand_alone_and_is_never_taken_letter_by_letter() -> None:
    assert lockstep.fork("r:0", agent, live="tell").state == "complete"
    assert ran == ["look", "tell", "look"]
    ran.clear()
    assert lockstep.fork("r:0", agent, live="x*").live == 2


def test_a_policy_that_makes_no_sense_is_said_before_anything_runs() -> None:
    for given in ({"tail": "replay"}, {"live": [""]}, {"live": [3]}):
        with pytest.raises(TargetError, match=r"tail is one of live, reuse, record|names of calls that may run"):
            lockstep.fork("r:0", agent, **given)  # type: ignore[arg-type]
    assert ran == []


REFUND = """
import sys, time

import lockstep


@lockstep.tool(effect="mutating")
def issue_refund(cents):
    print("refunded", flush=True)


try:
    issue_refund(int(input()))
except BaseException:
    if "stubborn" not in sys.argv:
        raise
    time.sleep(60)
"""


@pytest.mark.parametrize("words", [(), ("stubborn",)])
def test_a_refused_command_ends_with_our_words_alone_also_where_it_will_not_end(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "agent.py").write_text(REFUND)

    def run(*given: str, typed: str) -> subprocess.CompletedProcess[str]:
        return command.run(*given, "--", sys.executable, "agent.py", *words, input=typed, timeout=50)

    assert run("record", "--run", "c", typed="4000\n").returncode == 0
    done = run("fork", "c:0", "--live", "stdin", typed="4500\n")
    assert (done.returncode, done.stdout, "Traceback" in done.stderr) == (1, "", False)
    assert "LS301 refused: tool issue_refund(cents=4500) would run for real" in done.stderr
    assert "differs from the recorded call (cents 4000 → 4500)" in done.stderr
    assert "--live issue_refund" in done.stderr
    assert "--set 1.2=JSON" in done.stderr
    if not words:
        done = run("fork", "c:0", "--live", "stdin", "--live", "issue_refund", typed="4500\n")
        assert (done.returncode, done.stdout) == (0, "refunded\n")


@pytest.fixture
def other(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second run, which asks for another refund; so does every fork from now on."""
    monkeypatch.setitem(globals(), "cents", 4500)
    with lockstep.record("other"):
        agent()
    ran.clear()


def test_a_call_that_its_own_record_lacks_is_lent_another_runs_answer(other: None) -> None:
    done = forked("r:0", agent, {}, Policy(tail="record", beside="other"), "", None)
    assert (done.state, done.result, done.live, ran) == ("complete", {"ok": True}, 0, [])
    assert done.report.answers == {"reused": 3, "lent": 1}
    # It is no call that really happened, nor one that was allowed.
    with pytest.raises(Refused):
        forked("r:0", agent, {}, Policy(tail="record"), "", None)


def test_each_answer_is_lent_once(other: None) -> None:
    def twice() -> None:
        issue_refund(452, 4500)
        issue_refund(452, 4500)

    with pytest.raises(Refused) as caught:
        forked("r:0", twice, {}, Policy(tail="record", beside="other"), "", None)
    assert caught.value.run.report.answers == {"lent": 1} and ran == []


def test_what_is_named_runs_whatever_another_run_has(other: None) -> None:
    forked("r:0", agent, {}, Policy(live=("issue_*",), tail="record", beside="other"), "", None)
    assert ran == ["issue_refund"]
