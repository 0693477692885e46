"""Nothing of a crew is another for being recorded, and nothing of another crew is recorded with it."""

from __future__ import annotations

import logging
import threading
from typing import Any

import crew_events
import crew_runs
import crew_script
import crews
import pytest

import lockstep
import lockstep_crewai
from lockstep.log.store import open_store
from lockstep.testing import Provider


@pytest.fixture
def told(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """What Lockstep's logger says."""
    caplog.set_level(logging.WARNING, "lockstep")
    return caplog


@pytest.fixture
def settled(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Provider:
    """Equal requests get equal answers, and so do equal tool calls."""
    provider.script = crew_script.settled
    monkeypatch.setattr(crews, "numbered", False)
    return provider


def _done(kind: crews.Kind, target: Any, provider: Provider, heard: crew_events.Heard) -> dict[str, Any]:
    """All that can be seen of a run from outside."""
    before = provider.requests
    crews.ran.clear()
    result = crews.alike(kind.how(target), racy=kind.racy)
    told, pieces = heard.taken()
    asked = sorted(request.body for request in provider.seen[before:])
    return {"result": result, "asked": asked, "ran": sorted(crews.ran), "told": told, "pieces": sorted(pieces)}


@pytest.mark.parametrize("kind", crews.KINDS, ids=crews.labelled)
def test_each_kind_does_the_same_recorded_and_not(
    kind: crews.Kind, settled: Provider, heard: crew_events.Heard, told: pytest.LogCaptureFixture
) -> None:
    without = _done(kind, kind.make(), settled, heard)
    assert (len(without["asked"]), without["ran"]) == (kind.requests, sorted(kind.tools))
    within = _done(kind, lockstep_crewai.wrap(kind.make()), settled, heard)
    assert within == without
    assert [record.getMessage() for record in told.records if record.name == "lockstep"] == []


def test_wrap_returns_the_same_object(provider: Provider) -> None:
    for make in (crews.sequential, crews.flow, crews.alone, crews.lite):
        target = make()
        assert lockstep_crewai.wrap(target) is target


def test_two_crews_in_one_process_do_not_touch_each_other(provider: Provider) -> None:
    kind = crews.named("paying-for_each")
    wrapped, plain = lockstep_crewai.wrap(kind.make()), kind.make()
    results: dict[str, Any] = {}
    both = [
        threading.Thread(target=lambda name=name, target=target: results.update({name: kind.how(target)}))
        for name, target in (("wrapped", wrapped), ("plain", plain))
    ]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert provider.requests == 2 * kind.requests
    assert sorted(crews.ran) == sorted(kind.tools * 2)
    run = f"crewai/{kind.run}"
    recorded = [effect for which in ("model", "tool") for _, effect in crew_runs.calls(run, which)]
    assert len(recorded) == kind.requests + len(kind.tools)
    with open_store(None) as store:
        assert list(store.names()) == [run]
        kept = str(crew_runs.timeline(run, lambda timeline: [timeline.outcome(each) for each in recorded]))
    for result in results["wrapped"]:
        assert str(result) in kept
    for result in results["plain"]:
        assert str(result) not in kept


def test_a_crew_that_is_not_wrapped_is_live_while_another_is_replayed(provider: Provider) -> None:
    kind = crews.named("paying")
    run, result = crew_runs.recorded(kind)
    crews.ran.clear()
    live: list[Any] = []

    def make() -> Any:
        live.append(threading.Thread(target=lambda: kind.how(kind.make())))
        live[0].start()
        return kind.make()

    crew_runs.is_again(lockstep.replay(run, make), result)
    live[0].join()
    assert provider.requests == 2 * kind.requests
    assert sorted(crews.ran) == sorted(kind.tools)
