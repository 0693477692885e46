"""Where an answer stands in a run: in the step in which its page had it, however late its end is heard of."""

import asyncio

import pytest
from native_agents import Shop

import lockstep_playwright
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline
from lockstep_playwright.cdp.line import Line

_LATE = 0.2  # seconds that all which the browser tells us takes, as on a machine that is busy


def test_an_answer_that_a_page_had_is_in_the_step_of_its_action_though_its_end_is_heard_of_late(
    chromium: str, shop: Shop, store: str, monkeypatch: pytest.MonkeyPatch
):
    real = Line.data_received

    def late(line: Line, data: bytes) -> None:
        asyncio.get_running_loop().call_later(_LATE, real, line, data)

    with lockstep_playwright.launch(run="late", store=store, executable=chromium) as context:
        page = context.new_page()
        page.goto(f"{shop.url}/form/1")
        monkeypatch.setattr(Line, "data_received", late)
        for _ in range(2):
            page.evaluate("fetch('/chunks').then(answer => answer.text()).then(text => text.length)")
        page.evaluate("fetch('/dropped').catch(() => 0)")
        page.evaluate("1")
    with open_store(store) as opened:
        steps = [step for step in Timeline(opened.run("playwright/late")).steps if step.name.startswith("evaluate")]
    asked = [[effect.name.rpartition("/")[2] for effect in step.effects] for step in steps]
    assert asked == [["chunks"], ["chunks"], ["dropped"], []]
