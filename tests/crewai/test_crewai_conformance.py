"""The adapter passes what every adapter must pass; here a cheap part: `lockstep conformance crewai` has all."""

from __future__ import annotations

import pytest

from lockstep.conformance import suite
from lockstep_crewai.subject import subject

CHEAP = ("records_steps", "replays_identical_offline", "no_tool_on_replay", "changed_call_diverges", "secrets_absent")


@pytest.mark.timeout(300)
def test_a_cheap_part_of_the_conformance_tests_passes() -> None:
    report = suite.run(subject, reference="lockstep_crewai.subject:subject", name="crewai", only=CHEAP)
    assert not report.failures
