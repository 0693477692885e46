"""Probes that may err are repeated, until the answer is as sure as it was asked to be."""

import asyncio
import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import wavering

import lockstep
from lockstep import Verdict
from lockstep.debugger.view import View
from lockstep.testing import Provider

SVG = "{http://www.w3.org/2000/svg}"


def recorded(planted: int, seed: int, steps: int = 16, **rates: Any) -> wavering.Tool:
    """The bad run, and what wavers from now on."""
    tool = wavering.Tool(seed, steps, **rates)
    tool.planted = planted
    with pytest.raises(wavering.Overcharged), lockstep.record("refund"):
        tool.agent()
    tool.planted = tool.calls = 0
    return tool


def bisect(tool: wavering.Tool, **options: Any) -> Verdict:
    return lockstep.bisect("refund", tool.agent, bad=_overcharged, **options)


def _overcharged(run: View) -> bool | None:
    if run.error is None:
        return False
    return True if run.error.type.endswith("Overcharged") else None


@pytest.mark.parametrize("seed", range(3))
def test_where_every_other_bad_run_is_rescued_the_answer_is_named_all_the_same(seed: int) -> None:
    tool = recorded(5, seed, rescue=0.5)
    found = bisect(tool, confidence=0.95, max_probes=60)
    assert (found.verdict, found.effect) == ("culprit", "5.1")
    assert 0.95 <= found.confidence < 1
    assert found.live_calls == tool.calls == sum(16 - int(probe.at) for probe in found.tried)
    assert found.rescue is not None and found.rescue.low <= 0.5 <= found.rescue.high
    # What a live call says is of a probe that asked anew, and of none that was rescued.
    assert ("answer.owed", "4000", "450") in [(one.path, one.a, one.b) for one in found.changes]


def test_looked_at_once_such_a_run_may_have_another_answer_blamed() -> None:
    """As certain as ever, given that nothing wavers: what the repeats are for."""
    found = bisect(recorded(5, 3, rescue=0.5))
    assert (found.verdict, found.confidence, found.rescue) == ("culprit", 1.0, None)
    assert found.effect != "5.1"


def test_what_fails_by_itself_now_and_then_is_told_from_the_culprit() -> None:
    found = bisect(recorded(11, 3, rescue=0.1, spoil=0.15), confidence=0.95, max_probes=120)
    assert (found.verdict, found.effect) == ("culprit", "11.1")
    assert found.spoil is not None and found.spoil.mean > 0.02
    assert any(int(probe.at) < 11 for probe in found.judged("bad"))


def test_a_running_loop_awaits_repeats_too() -> None:
    tool = recorded(3, 1, 8, rescue=0.5)

    async def agent() -> int:
        return tool.agent()

    found = asyncio.run(lockstep.abisect("refund", agent, bad=_overcharged, confidence=0.95, max_probes=60))
    assert (found.verdict, found.effect) == ("culprit", "3.1")
    assert 0.95 <= found.confidence < 1


def test_a_steady_run_is_named_with_repeats_too() -> None:
    found = bisect(recorded(9, 0), confidence=0.95)
    assert (found.verdict, found.effect) == ("culprit", "9.1")
    assert found.rescue is not None and found.rescue.mean < 0.25


class Overpaid(Exception):
    """Says what was paid, or not."""


@pytest.mark.parametrize("said", ["raised", "printed"])
def test_it_looks_first_at_the_answer_that_the_end_of_the_run_tells_of(said: str) -> None:
    cents = iter(range(100, 100_000, 37))

    @lockstep.tool(effect="read")
    def price(number: int) -> dict[str, int]:
        return {"number": number, "cents": 7_654_321 if faulty and number == 3 else next(cents)}

    def pay() -> None:
        most = max(price(number)["cents"] for number in range(1, 17))
        print("paid", most if said == "printed" else "something")
        if most > 1_000_000:
            raise Overpaid(most if said == "raised" else "too much")

    faulty = True
    with pytest.raises(Overpaid), lockstep.record("prices"):
        pay()
    faulty = False
    found = lockstep.bisect("prices", pay, confidence=0.95)
    assert (found.verdict, found.effect) == ("culprit", "3.1")
    assert {probe.at for probe in found.tried} == {"2", "3"}


def test_each_repeat_is_a_branch_that_is_kept(tmp_path: Path) -> None:
    found = bisect(recorded(5, 1, rescue=0.5), confidence=0.95, max_probes=60)
    addresses = [probe.address for probe in found.tried]
    assert len(set(addresses)) == len(addresses)
    assert max(Counter(probe.at for probe in found.tried).values()) > 1


def test_the_posterior_has_a_place_for_each_step_and_an_interval_that_holds_its_mean() -> None:
    found = bisect(recorded(5, 1, rescue=0.5), confidence=0.95, max_probes=60)
    assert [place.at for place in found.posterior] == [str(number) for number in range(17)]
    assert max(found.posterior, key=lambda place: place.culprit).at == "5"
    assert found.confidence == pytest.approx(found.posterior[5].culprit)
    assert all(0 <= place.low <= place.bad <= place.high <= 1 for place in found.posterior)
    assert all(one.bad <= other.bad + 1e-9 for one, other in zip(found.posterior, found.posterior[1:], strict=False))
    assert sum(sum(place.tried) for place in found.posterior) == found.probes


def test_probes_made_once_have_a_posterior_of_never_and_always() -> None:
    found = bisect(recorded(5, 1))
    assert [place.bad for place in found.posterior] == [0.0] * 5 + [1.0] * 12
    assert [place.at for place in found.posterior if place.culprit] == ["5"]


def test_a_budget_that_does_not_suffice_is_said_with_what_is_likely() -> None:
    found = bisect(recorded(5, 1, rescue=0.5), confidence=0.95, max_probes=5)
    assert (found.verdict, found.step, found.probes) == ("ambiguous", None, 5)
    assert re.fullmatch(r"P = 0\.\d\d for .+; the budget of 5 probes is reached", found.why)
    assert found.confidence < 0.95 and found.likeliest


def test_a_budget_binds_also_where_each_probe_is_made_once() -> None:
    found = bisect(recorded(5, 1), max_probes=2)
    assert (found.verdict, found.probes, found.why) == ("ambiguous", 2, "the budget of 2 probes is reached")
    assert found.between == ("refund:4", "refund:8")
    assert found.confidence == 1 / 4


def test_a_budget_that_suffices_changes_nothing() -> None:
    free = bisect(recorded(5, 1))
    bound = bisect(recorded(5, 1), max_probes=free.probes)
    assert (bound.verdict, bound.effect, bound.probes) == ("culprit", "5.1", free.probes)


def test_probes_that_crash_say_nothing_and_are_no_culprit() -> None:
    """What asks number 9 anew breaks down: nothing before is known, and what comes after is."""
    found = bisect(recorded(12, 2, rescue=0.3, die=9), confidence=0.95, max_probes=80)
    assert (found.verdict, found.effect) == ("culprit", "12.1")
    lost = Counter(probe.at for probe in found.judged("skip"))
    assert lost and max(lost.values()) <= 2


def test_where_probes_crash_around_the_culprit_the_answer_is_a_range() -> None:
    found = bisect(recorded(5, 2, rescue=0.3, die=9), confidence=0.95, max_probes=80)
    assert (found.verdict, found.step) == ("ambiguous", None)
    assert found.between == ("", "refund:9")
    assert "could not be judged" in found.why


def test_bad_with_every_answer_new_is_told_from_a_bad_first_answer() -> None:
    found = bisect(recorded(5, 3, spoil=1.0), confidence=0.95)
    assert (found.verdict, found.step) == ("in-the-code", None)
    assert 0.95 <= found.confidence < 1


def test_a_bad_first_answer_is_no_fault_of_the_code() -> None:
    found = bisect(recorded(1, 3, rescue=0.4), confidence=0.95, max_probes=60)
    assert (found.verdict, found.effect) == ("culprit", "1.1")


def test_a_confidence_and_a_number_of_probes_that_are_none_are_refused() -> None:
    tool = recorded(5, 1)
    for confidence in (0.5, 1.0, float("nan")):
        with pytest.raises(ValueError, match=r"a confidence is more than 0\.5 and less than 1"):
            bisect(tool, confidence=confidence)
    with pytest.raises(ValueError, match="at least one probe"):
        bisect(tool, max_probes=0)
    assert tool.calls == 0


# On the command line, with a model that is asked over HTTP.


def test_the_command_repeats_draws_and_goes_on_where_it_was(lockstep: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(wavering.AGENT)
    model = wavering.Model(2, rescue=0.4)
    with Provider(model) as provider:
        url = f"{provider.url}/v1/chat/completions"
        model.planted = 2
        lockstep("record", "--run", "refund", "--", sys.executable, "agent.py", url, "4")
        model.planted = model.calls = 0
        some = json.loads(lockstep("bisect", "refund", "--json", "--confidence", "0.9", "--max-probes", "4").stdout)
        assert (some["verdict"], some["probes"], some["live_calls"]) == ("ambiguous", 4, model.calls)
        found = json.loads(lockstep("bisect", "refund", "--json", "--confidence=0.9", "--max-probes=40").stdout)
        assert (found["verdict"], found["effect"]) == ("culprit", "2.1")
        assert [one["address"] for one in found["tried"]][:4] == [one["address"] for one in some["tried"]]
        assert [one["found"] for one in found["tried"]] == [True] * 4 + [False] * (found["probes"] - 4)
        assert some["live_calls"] + found["live_calls"] == model.calls
        before = model.calls
        options = ("--confidence", "0.9", "--max-probes", "40", "--plot", "noise.svg")
        done = lockstep("bisect", "refund", *options)
    assert (done.returncode, model.calls) == (0, before), done.stderr
    said = done.stderr
    assert "✗ culprit  refund:2.1  model gpt-4o" in said
    counts = re.search(
        r"P = 0\.9\d   kept, the run is bad \((\d+) of (\d+) probes\); left out, it is good \((\d+) of (\d+)\)", said
    )
    assert counts is not None and int(counts[2]) + int(counts[4]) == found["probes"]
    assert re.search(r"P\(bad\) +[▁▂▃▄▅▆▇█]{5}   :0 to :4", said)
    assert re.search(r"P\(culprit\) 0\.9\d   P\(bad\) \d\.\d\d \(\d\.\d\d–\d\.\d\d\)   :2  [●○]+", said)
    assert re.search(r"new answers rescued in 0\.\d\d \(0\.\d\d–\d\.\d\d\) · spoiled in 0\.\d\d", said)
    drawing = ElementTree.parse(tmp_path / "noise.svg").getroot()
    assert drawing.tag == f"{SVG}svg"
    assert re.match(r"bisect of refund: culprit refund:2\.1, P = 0\.9\d after", drawing.findtext(f"{SVG}title") or "")
    listed = json.loads(lockstep("bisect", "log", "refund", "--json").stdout)
    assert sorted(one["address"] for one in listed) == sorted(one["address"] for one in found["tried"])
    assert {one["at"] for one in listed} == {one["at"] for one in found["tried"]}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--confidence", "1"), "1 is not between 0.5 and 1"),
        (("--confidence", "0.5"), "0.5 is not between 0.5 and 1"),
        (("--max-probes", "0"), "0 is less than one probe"),
        (("--plot", "nowhere/noise.svg"), "LS203 --plot nowhere/noise.svg: there is no directory nowhere"),
    ],
)
def test_wrong_use_is_told_before_any_probe(
    lockstep: Callable[..., Any], tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    (tmp_path / "fails.py").write_text('import urllib.request\nurllib.request.urlopen("http://127.0.0.1:9/")\n')
    lockstep("record", "--run", "refund", "--", sys.executable, "fails.py")
    done = lockstep("bisect", "refund", *words)
    assert done.returncode == 2, done.stderr
    assert said in " ".join(done.stderr.replace("│", " ").split())
    assert "Traceback" not in done.stderr
    assert "probe" not in lockstep("bisect", "log", "refund").stdout.replace("no probes", "")
