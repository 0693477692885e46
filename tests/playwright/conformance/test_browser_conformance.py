"""Playwright's conformance: a part of it, in one way to run an agent, and the report that is kept of all."""

import runpy
from pathlib import Path

from lockstep.conformance import CAPABILITIES, Report, run
from lockstep_playwright.subject import Browser, subject

ROOT = Path(__file__).parents[3]


class OneWay(Browser):
    """Everything costs three times as much in all of them."""

    modes = subject.modes[:1]


def test_a_page_is_recorded_replayed_and_forked_as_any_agent():
    tried = ["records_steps", "changed_call_diverges", "refused_side_effects"]
    report = run(OneWay(), reference="lockstep_playwright.subject:subject", only=tried)
    assert report.failures == {}
    assert report.passed


def test_the_kept_report_is_of_all_ways_and_nothing_in_it_failed():
    kept: Report = runpy.run_path(str(ROOT / "docs" / "table.py"))["kept"]()["playwright"]
    assert [*kept.capabilities] == [*CAPABILITIES]
    assert kept.modes == tuple(mode.name for mode in subject.modes)
    others = {name: told for name, told in kept.capabilities.items() if told != "passed"}
    assert others == {name: f"not supported: {reason}" for name, reason in subject.unsupported.items()}
