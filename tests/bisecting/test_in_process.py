"""`lockstep.bisect` and `abisect`: a planted answer is found, and everything else gets the verdict that it deserves."""

import asyncio
from collections.abc import Callable
from math import ceil, log2
from typing import Any

import overcharging
import pytest

import lockstep
from lockstep import Verdict
from lockstep.debugger.view import View
from lockstep.errors import TargetError

PLACES = {"first": lambda steps: 1, "middle": lambda steps: steps // 2, "last": lambda steps: steps}


def record(
    steps: int, at: int, monkeypatch: pytest.MonkeyPatch, agent: Callable[[int], Any] = overcharging.agent
) -> None:
    """A run of so many steps whose answer number `at` is bad; 0 for none."""
    with monkeypatch.context() as patch:
        patch.setattr(overcharging, "planted", at)
        try:
            with lockstep.record("refund"):
                agent(steps)
        except overcharging.Overcharged:
            assert at


@pytest.mark.parametrize("steps", [8, 16, 52, 200])
@pytest.mark.parametrize("place", PLACES)
def test_the_planted_answer_is_named_within_the_bound(steps: int, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    at = PLACES[place](steps)
    record(steps, at, monkeypatch)
    found = lockstep.bisect("refund", lambda: overcharging.agent(steps))
    assert (found.verdict, found.step, found.effect, found.confidence) == ("culprit", at, f"{at}.1", 1.0)
    assert found.probes == len(found.tried) <= ceil(log2(steps)) + 1
    # Each probe asks anew what comes after its cut, and nothing else.
    assert [probe.live for probe in found.tried] == [steps - int(probe.at) for probe in found.tried]
    assert found.live_calls == sum(probe.live for probe in found.tried)
    assert not any(probe.judged == "skip" for probe in found.tried)


def test_the_verdict_says_what_the_answer_was_and_what_a_live_call_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its note is another one each time it is asked, and says nothing."""
    record(16, 12, monkeypatch)
    found = lockstep.bisect("refund", lambda: overcharging.agent(16))
    assert (found.name, len(found.judged("good"))) == ("tool look", 2)
    assert [(change.path, change.a, change.b) for change in found.changes] == [("answer.owed", "4000", "450")]
    assert found.other.startswith("refund@bisect-11-") and found.other.endswith(":12")


def test_a_running_loop_awaits_abisect(monkeypatch: pytest.MonkeyPatch) -> None:
    async def everything() -> Verdict:
        with monkeypatch.context() as patch:
            patch.setattr(overcharging, "planted", 11)
            with pytest.raises(overcharging.Overcharged):
                async with lockstep.record("refund"):
                    await overcharging.aagent(16)
        return await lockstep.abisect("refund", lambda: overcharging.aagent(16))

    found = asyncio.run(everything())
    assert (found.verdict, found.effect) == ("culprit", "11.1")
    assert found.probes <= 5


def test_a_predicate_is_asked_about_the_recording_first_and_then_about_each_probe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[View] = []

    def bad(run: View) -> bool:
        seen.append(run)
        return any(call.outcome["owed"] > overcharging.LIMIT for call in run.calls)

    record(8, 3, monkeypatch)
    found = lockstep.bisect("refund", lambda: overcharging.agent(8), bad=bad)
    assert (found.verdict, found.step) == ("culprit", 3)
    assert [run.address for run in seen] == ["refund", *(probe.address for probe in found.tried)]
    assert seen[0].error is not None and seen[0].error.function == "settled"
    assert {run.state for run in seen[1:]} == {"complete", "failed"}
    assert [run.result for run in seen if run.state == "complete"] == [450] * len(found.judged("good"))


def test_a_run_that_ended_well_is_not_bad_and_needs_somebody_to_say_what_is(monkeypatch: pytest.MonkeyPatch) -> None:
    record(8, 0, monkeypatch)
    found = lockstep.bisect("refund", lambda: overcharging.agent(8))
    assert (found.verdict, found.step, found.probes) == ("not-reproducible", None, 0)
    assert found.why == "it is not bad: complete"


def test_a_fault_in_the_code_is_bad_whatever_the_answers_are(monkeypatch: pytest.MonkeyPatch) -> None:
    record(16, 4, monkeypatch)

    def broken() -> int:
        overcharging.agent(16)
        return overcharging.settled(overcharging.BAD)

    found = lockstep.bisect("refund", broken)
    assert (found.verdict, found.step, found.effect) == ("in-the-code", None, None)
    assert found.probes <= 5
    assert found.tried[-1].at == "0"


def test_a_probe_that_crashes_is_never_taken_for_bad(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program breaks in another way wherever call 3 is made anew: before that nothing can be said."""
    record(16, 9, monkeypatch)
    recorded = [call.outcome["note"] for call in View("refund", _store(), "failed", None, None).calls]

    def brittle() -> int:
        known, owed = "", 0
        for number in range(1, 17):
            found = overcharging.look(number, known)
            if number == 3 and found["note"] != recorded[2]:
                raise RuntimeError("a probe's own fault")
            known, owed = overcharging.learned(known, found), max(owed, found["owed"])
        return overcharging.settled(owed)

    found = lockstep.bisect("refund", brittle)
    assert (found.verdict, found.effect) == ("culprit", "9.1")


def test_where_probes_crash_at_the_culprit_the_answer_is_a_range(monkeypatch: pytest.MonkeyPatch) -> None:
    record(16, 2, monkeypatch)
    recorded = [call.outcome["note"] for call in View("refund", _store(), "failed", None, None).calls]

    def brittle() -> int:
        known, owed = "", 0
        for number in range(1, 17):
            found = overcharging.look(number, known)
            if number == 5 and found["note"] != recorded[4]:
                raise RuntimeError("a probe's own fault")
            known, owed = overcharging.learned(known, found), max(owed, found["owed"])
        return overcharging.settled(owed)

    found = lockstep.bisect("refund", brittle)
    assert (found.verdict, found.step, found.between) == ("ambiguous", None, ("", "refund:5"))
    assert found.confidence == pytest.approx(1 / 6)  # any of five answers, or none
    assert {probe.at for probe in found.judged("skip")} == {"0", "1", "2", "3", "4"}
    assert all("RuntimeError: a probe's own fault in " in probe.why for probe in found.judged("skip"))


def test_a_run_without_answers_has_nothing_to_search() -> None:
    def agent() -> None:
        overcharging.settled(overcharging.BAD)

    with pytest.raises(overcharging.Overcharged), lockstep.record("refund"):
        agent()
    found = lockstep.bisect("refund", agent)
    assert (found.verdict, found.probes) == ("not-recorded", 0)


def test_what_only_the_surroundings_made_bad_is_not_reproducible(monkeypatch: pytest.MonkeyPatch) -> None:
    spoiled = [True]

    def agent() -> int:
        overcharging.agent(8)
        return overcharging.settled(overcharging.BAD if spoiled[0] else overcharging.USUAL)

    with pytest.raises(overcharging.Overcharged), lockstep.record("refund"):
        agent()
    spoiled[0] = False
    found = lockstep.bisect("refund", agent)
    assert (found.verdict, found.step) == ("not-reproducible", None)
    assert found.tried[-1].at == "8" and found.tried[-1].live == 0
    assert found.probes <= 4


def test_a_probe_is_made_once_also_for_a_later_bisect(monkeypatch: pytest.MonkeyPatch) -> None:
    record(8, 5, monkeypatch)
    first = lockstep.bisect("refund", eight)
    again = lockstep.bisect("refund", eight)
    assert [(probe.address, probe.judged) for probe in again.tried] == [
        (probe.address, probe.judged) for probe in first.tried
    ]
    assert (again.effect, again.live_calls) == (first.effect, 0)
    assert all(probe.found for probe in again.tried) and not any(probe.found for probe in first.tried)
    anew = lockstep.bisect("refund", eight, again=True)
    assert anew.live_calls == first.live_calls and not any(probe.found for probe in anew.tried)


def eight() -> int:
    return overcharging.agent(8)


def test_a_target_with_values_of_its_own_is_another_program_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    record(8, 5, monkeypatch)
    steps = 8
    lockstep.bisect("refund", lambda: overcharging.agent(steps))
    assert not any(probe.found for probe in lockstep.bisect("refund", lambda: overcharging.agent(steps)).tried)


def test_an_interrupted_search_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    record(16, 9, monkeypatch)
    asked: list[str] = []

    def impatient(run: View) -> bool:
        asked.append(run.address)
        if len(asked) == 4:
            raise KeyboardInterrupt
        return run.error is not None

    with pytest.raises(KeyboardInterrupt):
        lockstep.bisect("refund", sixteen, bad=impatient)
    found = lockstep.bisect("refund", sixteen, bad=lambda run: run.error is not None)
    assert (found.verdict, found.effect) == ("culprit", "9.1")
    assert [probe.found for probe in found.tried] == [True] * 3 + [False] * (found.probes - 3)


def sixteen() -> int:
    return overcharging.agent(16)


# What nobody allowed to run.


@lockstep.tool
def lookup(number: int) -> dict[str, Any]:
    return overcharging.answer(number)


def careless() -> int:
    owed = max(lookup(number)["owed"] for number in range(1, 9))
    return overcharging.settled(owed)


def test_answers_that_every_probe_took_from_the_record_are_not_called_the_codes_fault(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody said what `lookup` does, so the same call is answered as it was: the bad answer is in every probe."""
    with monkeypatch.context() as patch:
        patch.setattr(overcharging, "planted", 5)
        with pytest.raises(overcharging.Overcharged), lockstep.record("refund"):
            careless()
    found = lockstep.bisect("refund", careless)
    assert found.verdict == "ambiguous"
    assert found.why == "bad with every answer new but those that were taken from the record: tool lookup"
    allowed = lockstep.bisect("refund", careless, live=["lookup"])
    assert (allowed.verdict, allowed.effect) == ("culprit", "5.1")


@lockstep.tool(effect="mutating")
def pay(cents: int, note: str) -> str:
    raise AssertionError("no probe may pay")


def test_a_probe_whose_tail_was_refused_is_skipped_and_nothing_is_paid(monkeypatch: pytest.MonkeyPatch) -> None:
    paid: list[str] = []

    def agent(tool: Callable[[int, str], str]) -> int:
        known, owed = "", 0
        for number in range(1, 9):
            found = overcharging.look(number, known)
            known, owed = overcharging.learned(known, found), max(owed, found["owed"])
            if number == 4:
                tool(owed, known)
        return overcharging.settled(owed)

    def paying(cents: int, note: str) -> str:
        paid.append(note)
        return "paid"

    with monkeypatch.context() as patch:
        patch.setattr(overcharging, "planted", 6)
        with pytest.raises(overcharging.Overcharged), lockstep.record("refund"):
            agent(lockstep.tool(effect="mutating", name="pay")(paying))
    found = lockstep.bisect("refund", lambda: agent(pay))
    assert (found.verdict, found.effect) == ("culprit", "7.1")  # its step is 7: the payment has one too
    assert len(paid) == 1
    for probe in found.judged("skip"):
        assert probe.why.startswith("refused: ") and "pay" in probe.why


# Wrong use.


def test_a_step_is_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    record(2, 1, monkeypatch)
    with pytest.raises(TargetError, match="LS402 bisect takes a run, and refund:1 is a step of one"):
        lockstep.bisect("refund:1", eight)


def test_a_predicate_that_cannot_even_judge_the_recording_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    record(2, 1, monkeypatch)
    with pytest.raises(TargetError, match="LS406 nobody can say whether refund is bad: the predicate could not say"):
        lockstep.bisect("refund", eight, bad=lambda run: None)


def _store() -> str:
    from lockstep.log.store import locate

    return locate()
