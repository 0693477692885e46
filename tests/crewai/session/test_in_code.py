"""Crews, flows and agents in a session that is begun in code: nobody has wrapped them, and all of it is one run."""

from __future__ import annotations

from typing import Any

import crew_runs
import crews
import pytest

import lockstep
from lockstep.log import threads
from lockstep.log.store import open_store
from lockstep.testing import Provider

RUN = "day"


@pytest.mark.parametrize("kind", crews.KINDS, ids=crews.labelled)
def test_each_kind_is_a_lane_of_the_session_and_replays(
    kind: crews.Kind, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    def program() -> Any:
        return crews.alike(kind.how(kind.make()), racy=kind.racy)

    with lockstep.record(RUN) as recording:
        result = program()
    report = recording.report
    assert report is not None and report.faults == ()
    # Where another test has had a flow, this process has the database that CrewAI opens for one.
    assert [each for each in report.uncovered if "made before the session began" not in each.detail] == []
    assert provider.requests == kind.requests
    assert sorted(crews.ran) == sorted(kind.tools)
    with open_store(None) as store:
        reader = store.run(RUN)
        lanes = threads.threads(event for stream in reader.streams for _, event in reader.heads(stream.id))
    assert any(lane.endswith(kind.run) for lane in lanes), lanes
    crew_runs.silence(provider, monkeypatch)

    replay = lockstep.replay(RUN, program)
    assert replay.divergence is None, replay.divergence
    assert replay.identical, replay.report
    assert replay.result == result
    assert crews.ran == []
    assert provider.requests == kind.requests
