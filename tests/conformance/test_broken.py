"""An adapter that is broken in one way fails the capability that this is about, and no other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import breaks
import pytest

from lockstep.conformance import CAPABILITIES, run
from lockstep.conformance.plain import SYNC

# Tried beside the broken one: each takes about a tenth of a second.
QUICK = (
    "records_steps", "replays_identical_offline", "no_tool_on_replay", "output_diverges", "secrets_absent",
    "continued_turns",
)  # fmt: skip

# Tested in a way of their own below.
ELSEWHERE = {"interrupted_recording", "sync_and_async"}


def test_every_capability_has_a_break() -> None:
    assert {*breaks.BREAKS, *ELSEWHERE} == {*CAPABILITIES}


@pytest.mark.parametrize("capability", breaks.BREAKS)
def test_what_is_broken_fails_and_nothing_else(capability: str, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = breaks.BREAKS[capability](monkeypatch)
    report = run(subject, only=[capability, *(name for name in QUICK if name != capability)])
    assert {*report.failures} == {capability}, report.failures
    assert not report.passed


def test_an_adapter_that_stores_late_loses_what_was_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    here = str(Path(__file__).parent)
    monkeypatch.syspath_prepend(here)
    monkeypatch.setenv("PYTHONPATH", here, prepend=":")
    import broken_subject

    report = run(
        broken_subject.subject,
        reference="broken_subject:subject",
        only=["interrupted_recording", "records_steps", "replays_identical_offline"],
    )
    assert {*report.failures} == {"interrupted_recording"}, report.failures
    assert "nothing was left" in report.failures["interrupted_recording"]


def test_an_adapter_of_one_kind_of_agents_is_not_sync_and_async() -> None:
    report = run(breaks.Sync(), only=["sync_and_async", "no_tool_on_replay"])
    assert report.capabilities == {"sync_and_async": "failed", "no_tool_on_replay": "passed"}


def test_what_a_framework_cannot_have_is_told_and_has_not_passed() -> None:
    class Lacking(breaks.Sync):
        unsupported: Mapping[str, str] = {"sync_and_async": "it has no event loop"}

    report = run(Lacking(), only=["sync_and_async", "output_diverges"])
    assert report.capabilities["sync_and_async"] == "not supported: it has no event loop"
    assert report.capabilities["output_diverges"] == "passed"
    assert not report.passed
    assert report.count == "1 of 2"


def test_a_subject_that_raises_has_failed_with_the_place() -> None:
    class Raises(breaks.Sync):
        def record(self, work: object) -> object:  # type: ignore[override]
            raise LookupError("no such graph")

    report = run(Raises(), only=["records_steps"])
    told = report.failures["records_steps"]
    assert told.startswith(f"{SYNC.name}: LookupError: no such graph")
    assert "test_broken.py" in told
