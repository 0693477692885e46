"""Whether a run is bad: by its end, by a command, by a function."""

import sys
from pathlib import Path

import pytest

from lockstep.debugger import predicate
from lockstep.debugger.predicate import Judgement
from lockstep.debugger.view import Raised, View
from lockstep.errors import TargetError

LOST = Raised("builtins.KeyError", "'total'", "pay")


def seen(state: str = "failed", exit: int | None = 1, error: Raised | None = None, address: str = "refund") -> View:
    return View(address, "/tmp/store.db", state, exit, error)


def judged(found: Judgement) -> str:
    return found.judged


# By default.


def test_what_ends_like_the_recorded_run_is_bad_whatever_its_message_says() -> None:
    judge = predicate.like(seen(error=LOST))
    assert judged(judge(seen(error=Raised("builtins.KeyError", "'amount'", "pay")))) == "bad"


def test_what_ends_well_is_good() -> None:
    judge = predicate.like(seen(error=LOST))
    assert judged(judge(seen("complete", 0))) == "good"
    assert judged(judge(seen("complete", None))) == "good"


@pytest.mark.parametrize(
    "other",
    [
        seen(error=Raised("builtins.ValueError", "'total'", "pay")),
        seen(error=Raised("builtins.KeyError", "'total'", "load")),
        seen(exit=3, error=LOST),
        seen(error=None),
    ],
    ids=["another type", "another function", "another status", "no exception"],
)
def test_another_failure_is_neither_good_nor_bad(other: View) -> None:
    found = predicate.like(seen(error=LOST))(other)
    assert found.judged == "skip"
    assert found.why.startswith("it ended in another way: exit ")


def test_a_program_that_says_with_its_status_that_it_failed_is_bad_by_that_status() -> None:
    judge = predicate.like(seen(exit=3))
    assert [judged(judge(seen(exit=exit))) for exit in (3, 4, 0)] == ["bad", "skip", "good"]


def test_a_target_in_process_has_no_status_and_is_bad_by_its_exception() -> None:
    judge = predicate.like(seen(error=LOST))
    assert judged(judge(seen(exit=None, error=LOST))) == "bad"


def test_a_recording_that_ended_well_is_not_bad() -> None:
    recorded = seen("complete", 0)
    assert judged(predicate.like(recorded)(recorded)) == "good"


# A probe that did not end by itself.


@pytest.mark.parametrize(
    ("probe", "why"),
    [
        (seen("refused", 1), "refused: issue_refund"),
        (seen("diverged", 1), "its served part diverged: LS101 another request"),
        (seen("interrupted", -9), "killed by SIGKILL"),
        (seen("interrupted", None), "it is interrupted"),
    ],
)
def test_nobody_is_asked_about_a_probe_that_an_error_of_ours_or_a_signal_ended(probe: View, why: str) -> None:
    def asked(_: View) -> Judgement:
        raise AssertionError("nobody may be asked")

    found = predicate.of_probe(asked, probe, ("issue_refund",), "LS101 another request")
    assert found == Judgement("skip", why)


def test_a_probe_that_failed_by_itself_is_asked_about() -> None:
    assert judged(predicate.of_probe(predicate.like(seen(error=LOST)), seen(error=LOST))) == "bad"


# A crash that the recorded run had not.


def _bad(_: View) -> Judgement:
    return Judgement("bad", "asked")


def test_a_probe_that_crashed_where_the_recorded_run_did_not_is_skipped() -> None:
    judge = predicate.but_crashes(_bad, seen("complete", 0))
    found = judge(seen("failed", 1, error=LOST))
    assert found.judged == "skip"
    assert "it crashed, and the recorded run did not" in found.why
    assert judged(judge(seen("complete", 0))) == "bad"
    assert judged(judge(seen("failed", 3))) == "bad"
    assert judged(judge(seen("failed", 3, error=Raised("builtins.SystemExit", "3", "")))) == "bad"


def test_of_a_run_that_crashed_itself_crashes_are_asked_about() -> None:
    assert judged(predicate.but_crashes(_bad, seen(error=LOST))(seen(error=LOST))) == "bad"


def test_what_raises_as_the_good_run_did_is_asked_about() -> None:
    judge = predicate.but_crashes(_bad, seen("complete", 0), seen("failed", 1, error=LOST))
    assert judged(judge(seen("failed", 1, error=LOST))) == "bad"
    assert judged(judge(seen("failed", 1, error=Raised("builtins.ValueError", "x", "pay")))) == "skip"


# By a command.


@pytest.mark.parametrize(
    ("status", "said"), [(0, "good"), (1, "bad"), (2, "bad"), (124, "bad"), (125, "skip"), (126, "bad"), (127, "bad")]
)
def test_a_command_says_by_its_status_what_git_bisect_would_take_it_for(status: int, said: str) -> None:
    assert judged(predicate.command(f"exit {status}", "/tmp/store.db")(seen())) == said


def test_a_command_is_told_what_to_judge_and_where(tmp_path: Path) -> None:
    told = tmp_path / "told"
    judge = predicate.command(f'echo "$LOCKSTEP_RUN $LOCKSTEP_STORE" > {told}; exit 1', str(tmp_path / "store.db"))
    assert judged(judge(seen(address="refund@bisect-7-0a1b2c3d"))) == "bad"
    assert told.read_text() == f"refund@bisect-7-0a1b2c3d {tmp_path / 'store.db'}\n"


def test_a_command_that_reads_stdin_does_not_wait_for_anybody() -> None:
    assert judged(predicate.command(f"{sys.executable} -c 'input()'", "/tmp/store.db")(seen())) == "bad"


@pytest.mark.parametrize(("text", "how"), [("kill -9 $$", "killed by SIGKILL"), ("exit 137", "killed by SIGKILL")])
def test_a_command_that_was_killed_stops_the_search(text: str, how: str) -> None:
    judge = predicate.command(text, "/tmp/store.db")
    with pytest.raises(TargetError, match=rf"LS406 .* did not judge refund: it was {how}"):
        judge(seen())


@pytest.mark.parametrize("text", ["./no_such_check.sh", "no-such-check --strict", "X=1 no-such-check", "", "'"])
def test_a_command_that_is_not_there_is_told_before_anything_is_asked(text: str) -> None:
    with pytest.raises(TargetError, match=r"LS406 .* cannot be run"):
        predicate.command(text, "/tmp/store.db")


def test_a_script_that_may_not_be_executed_is_told_so(tmp_path: Path) -> None:
    script = tmp_path / "check.sh"
    script.write_text("exit 0\n")
    with pytest.raises(TargetError, match="LS406"):
        predicate.command(str(script), "/tmp/store.db")


def test_a_command_may_be_written_as_for_a_shell() -> None:
    assert judged(predicate.command("LIMIT=5 test 4 -lt 5 && cd / && ! true", "/tmp/store.db")(seen())) == "bad"


# By a function.


@pytest.mark.parametrize(("answer", "said"), [(True, "bad"), (False, "good"), (None, "skip")])
def test_a_function_says_bad_good_or_that_it_cannot_say(answer: bool | None, said: str) -> None:
    assert judged(predicate.asked(lambda run: answer)(seen())) == said


def test_a_function_that_answers_something_else_is_told_what_it_may_answer() -> None:
    with pytest.raises(
        TargetError, match=r"LS406 the predicate answered 1 .* True is bad, False good, None cannot say"
    ):
        predicate.asked(lambda run: 1)(seen())


def test_what_a_function_raises_is_not_hidden() -> None:
    def broken(run: View) -> bool:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        predicate.asked(broken)(seen())
