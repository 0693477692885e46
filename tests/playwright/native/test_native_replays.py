"""What a function did with a context is done again, with nothing there, and what differs is named."""

import sys

import pytest
from browser_site import Site
from native_agents import Shop

import lockstep
import lockstep_playwright
from lockstep.errors import TargetError


@pytest.fixture
def recorded(shop: Shop, store: str, chromium: str) -> Shop:
    with lockstep_playwright.launch(run="shop", store=store, executable=chromium) as context:
        assert shop.one_form(context) == "Part 1, visit 1"
    return shop


def test_a_run_is_replayed_without_its_site_and_nothing_leaves(recorded: Shop, site: Site, store: str):
    with site.gone() as canary:
        done = lockstep.replay("playwright/shop", recorded.one_form, store=store)
        assert (done.identical, done.divergence, done.result) == (True, None, "Part 1, visit 1")
        assert canary.connects() == []


def test_an_action_that_is_told_something_else_diverges_there(recorded: Shop, store: str):
    done = lockstep.replay("playwright/shop", recorded.other_name, store=store)
    assert done.report.difference is not None
    assert (done.identical, done.report.difference.code, done.report.difference.step) == (False, "LS101", 3)
    assert '"jim"' in done.report.difference.actual
    assert "native_agents.py" in done.report.difference.source


def test_an_action_that_is_not_made_is_missing(recorded: Shop, store: str):
    done = lockstep.replay("playwright/shop", recorded.not_sent, store=store)
    assert done.report.difference is not None
    assert (done.report.difference.code, done.report.difference.name) == ("LS104", 'click "#send"')


def test_an_action_too_many_stops_the_function(recorded: Shop, store: str):
    done = lockstep.replay("playwright/shop", recorded.sent_twice, store=store)
    assert done.report.difference is not None
    assert (done.report.difference.code, done.report.difference.step) == ("LS103", 5)


def test_a_function_that_raises_before_it_is_through_is_told_with_its_exception(recorded: Shop, store: str):
    def lost(context):
        context.new_page()
        raise LookupError("nothing is where it was")

    done = lockstep.replay("playwright/shop", lost, store=store)
    found = done.report.difference
    assert found is not None
    assert (found.code, found.step, found.actual) == ("LS107", 2, "LookupError: nothing is where it was")
    assert found.source.endswith("lost")
    assert isinstance(done.error, LookupError)


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (
            {"endpoint": "http://127.0.0.1:9"},
            "no Chromium answers at endpoint='http://127.0.0.1:9': connect ECONNREFUSED",
        ),
        ({"executable": sys.executable}, "does not start as a browser: "),
        ({"headless": False}, "needs a display, and there is none: run it under xvfb-run, or with headless=True"),
    ],
)
def test_a_browser_that_is_not_there_or_does_not_start_is_told_in_a_line(
    own: dict, said: str, recorded: Shop, store: str, monkeypatch: pytest.MonkeyPatch
):
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(TargetError, match="LS412") as told:
        lockstep.replay("playwright/shop", recorded.one_form, store=store, **own)
    assert said in str(told.value)
    assert "\n" not in str(told.value)


def test_a_page_that_has_become_another_one_differs(shop: Shop, store: str, chromium: str):
    with lockstep_playwright.launch(run="mocked", store=store, executable=chromium) as context:
        shop.mocked(context)
    shop.shown = "something new"
    done = lockstep.replay("playwright/mocked", shop.mocked, store=store)
    assert done.report.difference is not None
    assert (done.report.difference.code, done.report.difference.step) == ("LS112", 2)
    assert "something new" in done.report.difference.actual
    shop.shown = "as ever"
    assert lockstep.replay("playwright/mocked", shop.mocked, store=store).identical


def test_a_replay_stops_after_the_step_that_is_asked_for(recorded: Shop, store: str):
    done = lockstep.replay("playwright/shop", recorded.one_form, store=store, until=2)
    assert (done.identical, done.report.cut, done.report.steps) == (True, True, 2)


@pytest.mark.parametrize(
    ("own", "said"),
    [
        ({"misses": "perhaps"}, "misses= is one of fail, strict"),
        ({"headless": "no"}, "headless= is True or False"),
        ({"depth": "node"}, "nothing that a browser's run has"),
        ({"turn": 2}, "has no turn 2"),
        ({"until": 9}, "has no step 9: its last is 4"),
        ({"data_converter": None}, "is nothing that a run of Playwright knows"),
    ],
)
def test_what_makes_no_sense_is_told(own: dict, said: str, recorded: Shop, store: str):
    with pytest.raises(TargetError, match="LS402") as told:
        lockstep.replay("playwright/shop", recorded.one_form, store=store, **own)
    assert said in str(told.value)
