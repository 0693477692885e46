"""Where an answer stands in a run: in the step in which its page had it, however late its end is heard of."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from native_agents import Shop

import lockstep_playwright
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline
from lockstep_playwright.actions.driven import Pause
from lockstep_playwright.actions.looking import Looker
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
    assert _asked(store, "playwright/late") == [["chunks"], ["chunks"], ["dropped"], []]


def test_an_answer_that_comes_while_the_page_before_is_looked_at_is_in_the_step_of_its_own_action(
    tapped: Callable[[], AbstractContextManager[Any]], shop: Shop, store: str, monkeypatch: pytest.MonkeyPatch
):
    real = Looker.look

    async def slow(looker: Looker) -> Any:
        await Pause(looker._pipe.loop, 0.2)
        return await real(looker)

    with tapped() as context:
        page = context.new_page()
        page.goto(f"{shop.url}/form/1")
        monkeypatch.setattr(Looker, "look", slow)
        for number in (1, 2, 3):
            page.evaluate(f"fetch('/small/{number}').then(answer => answer.text())")
        page.title()
    assert _asked(store, "playwright/slow") == [["1"], ["2"], ["3"]]


@pytest.fixture(params=["own socket", "sessions"])
def tapped(request: pytest.FixtureRequest, chromium: str, store: str) -> Callable[[], AbstractContextManager[Any]]:
    """A context in each of the two ways in which one is reached."""

    @contextmanager
    def own() -> Iterator[Any]:
        with lockstep_playwright.launch(run="slow", store=store, executable=chromium) as context:
            yield context

    @contextmanager
    def sessions() -> Iterator[Any]:
        context = request.getfixturevalue("browser").new_context()
        yield lockstep_playwright.tap(context, run="slow", store=store)
        context.close()

    return own if request.param == "own socket" else sessions


def _asked(store: str, run: str) -> list[list[str]]:
    """What each evaluation has asked for."""
    with open_store(store) as opened:
        steps = [step for step in Timeline(opened.run(run)).steps if step.name.startswith("evaluate")]
    return [[effect.name.rpartition("/")[2] for effect in step.effects] for step in steps]
