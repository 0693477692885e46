"""Temporal's conformance: a part of it, in one way to run an agent, and the report that is kept of all."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest
from live_server import Server

from lockstep.conformance import CAPABILITIES, Report, run
from lockstep_temporal import subject_server
from lockstep_temporal.subject import Temporal, subject

ROOT = Path(__file__).parents[3]


class OneWay(Temporal):
    """Everything costs four times as much in all of them."""

    modes = subject.modes[2:3]


def test_a_worker_that_dies_in_the_middle_of_local_activities_is_gone_on_with(
    temporal_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(subject_server.VARIABLE, temporal_server.address)
    tried = ["records_steps", "changed_call_diverges", "interrupted_recording", "continued_turns"]
    report = run(OneWay(), reference="lockstep_temporal.subject:subject", only=tried)
    assert report.failures == {}
    assert report.passed


def test_the_kept_report_is_of_all_ways_and_nothing_in_it_failed() -> None:
    kept: Report = runpy.run_path(str(ROOT / "docs" / "table.py"))["kept"]()["temporal"]
    assert [*kept.capabilities] == [*CAPABILITIES]
    assert kept.modes == tuple(mode.name for mode in subject.modes)
    others = {name: told for name, told in kept.capabilities.items() if told != "passed"}
    assert others == {name: f"not supported: {reason}" for name, reason in subject.unsupported.items()}
