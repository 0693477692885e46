"""The adapter passes the tests that every adapter must pass; here a cheap part, `lockstep conformance ag2` has all."""

from __future__ import annotations

import pytest

from lockstep.conformance import suite
from lockstep_ag2.subject import subject

CHEAP = ("records_steps", "replays_identical_offline", "no_tool_on_replay", "changed_call_diverges", "secrets_absent")


@pytest.mark.timeout(300)
def test_a_cheap_part_of_the_conformance_tests_passes() -> None:
    report = suite.run(subject, reference="lockstep_ag2.subject:subject", name="ag2", only=CHEAP)
    assert not report.failures
