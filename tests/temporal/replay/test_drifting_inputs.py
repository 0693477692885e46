"""Inputs that are drawn anew each time are no divergence, and are told; a change beside them is one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import drifting_workflows as drifting
import pytest
from scripted_workflow import scripted

import lockstep
from lockstep.errors import TargetError
from lockstep_temporal import Setup
from lockstep_temporal.drift import SOURCE
from lockstep_temporal.setup import setup_of


def test_what_differs_between_two_drives_of_one_record_is_drift(store: Path) -> None:
    with scripted(store, drifting.Drifts) as script:
        script.start(4711)
        script.resolve(1, "found")
    done = lockstep.replay("temporal/order-7", drifting.Drifts, store=store)
    assert (done.identical, done.result) == (True, "found")
    (told,) = (entry for entry in done.coverage if entry.source == SOURCE)
    assert (told.how, told.count) == ("differs", 2)
    assert told.detail.startswith("activity look_up  arguments[0].asked[].id: the code draws it anew")


def test_a_change_beside_it_is_a_divergence(store: Path) -> None:
    with scripted(store, drifting.Drifts) as script:
        script.start(4711)
        script.resolve(1, "found")
    done = lockstep.replay("temporal/order-7", drifting.DriftsAndChanged, store=store)
    difference = done.report.difference
    assert difference is not None
    assert difference.path == "arguments[0].asked[1].order"
    assert (difference.expected, difference.actual) == ("-4711", "4711")


@pytest.mark.parametrize(
    "volatile",
    [{"look_up": ["arguments[0].asked[].order"]}, {"look_*": ["arguments[0].asked[1]"]}, {"*": ["arguments"]}],
)
def test_what_the_setup_lets_differ_is_none_and_is_told(store: Path, volatile: dict[str, list[str]]) -> None:
    with scripted(store, drifting.Drifts) as script:
        script.start(4711)
        script.resolve(1, "found")
    setup = Setup(workflows=[drifting.DriftsAndChanged], volatile=volatile)
    done = lockstep.replay("temporal/order-7", setup, store=store)
    assert done.identical, done.divergence
    told = [entry.detail for entry in done.coverage if entry.source == SOURCE]
    assert "activity look_up  arguments[0].asked[].order: the setup says that it may differ" in told


@pytest.mark.parametrize("volatile", [{"find": ["arguments"]}, {"look_up": ["arguments[0].asked[0].order", "input"]}])
def test_nothing_else_may(store: Path, volatile: dict[str, list[str]]) -> None:
    with scripted(store, drifting.Drifts) as script:
        script.start(4711)
        script.resolve(1, "found")
    setup = Setup(workflows=[drifting.DriftsAndChanged], volatile=volatile)
    assert "arguments[0].asked[1].order" in str(lockstep.replay("temporal/order-7", setup, store=store).divergence)


@pytest.mark.parametrize("volatile", [{"look_up": ["result"]}, {"look_up": "arguments"}, {"x": ["argumentsx"]}])
def test_only_fields_of_what_is_called_with_can_be_let_differ(volatile: Any) -> None:
    with pytest.raises(TargetError, match="fields of what is called with"):
        setup_of(Setup(workflows=[drifting.Drifts], volatile=volatile))


def test_drift_in_a_result_is_not_vouched_for(store: Path) -> None:
    with scripted(store, drifting.DriftsInResult) as script:
        script.start(4711)
    done = lockstep.replay("temporal/order-7", drifting.DriftsInResult, store=store)
    assert not done.identical
    assert done.divergence is None
    (told,) = (entry for entry in done.coverage if entry.how == "not covered")
    assert told.source == "drift"
    assert told.detail.startswith("result  result: the code draws it anew")


def test_fields_that_a_framework_is_known_to_fill_anew_are_told_by_its_name(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRIFTING_CLOCK", "2026-01-01T10:00:00Z")
    with scripted(store, drifting.Agent) as script:
        script.start("Where is it?")
        script.resolve(1, "there")
    monkeypatch.setenv("DRIFTING_CLOCK", "2026-02-02T20:00:00Z")
    done = lockstep.replay("temporal/order-7", drifting.Agent, store=store)
    assert done.identical
    (told,) = (entry for entry in done.coverage if entry.source == SOURCE)
    assert "messages[].timestamp: pydantic-ai fills it anew" in told.detail
