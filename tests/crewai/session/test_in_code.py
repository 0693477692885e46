"""Crews, flows and agents in a session that is begun in code: nobody has wrapped them, and all of it is one run."""

from __future__ import annotations

import crews
import pytest

import lockstep
from lockstep.log import threads
from lockstep.log.store import open_store
from lockstep.testing import Provider

RUN = "day"


@pytest.mark.parametrize("kind", crews.KINDS, ids=crews.labelled)
def test_each_kind_is_a_lane_of_the_session(kind: crews.Kind, provider: Provider) -> None:
    with lockstep.record(RUN) as recording:
        kind.how(kind.make())
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
