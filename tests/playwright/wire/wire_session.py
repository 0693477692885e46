"""A session in code. `python wire_session.py URL CHROMIUM` tells, waits for a line, and replays."""

import json
import sys
from typing import Any

from playwright.sync_api import sync_playwright

import lockstep
import lockstep_playwright  # noqa: F401  as a program does that taps a context

URL, CHROMIUM = sys.argv[1:]
selectors = ["li"]


def shop() -> Any:
    with sync_playwright() as playwright:
        page = playwright.chromium.launch(executable_path=CHROMIUM).new_page()
        page.goto(f"{URL}/basket")
        page.fill("#item", "tea")
        page.click("#add")
        return [page.inner_text(selectors[0]), page.evaluate("Math.random()")]


def say(told: Any) -> None:
    print(json.dumps(told), flush=True)


def replayed() -> None:
    replay = lockstep.replay("shop", shop)
    uncovered = [[each.source, each.detail] for each in replay.report.uncovered]
    said = str(replay.divergence) if replay.divergence is not None else None
    say({"identical": replay.identical, "result": replay.result, "divergence": said, "uncovered": uncovered})


with lockstep.record("shop"):
    bought = shop()
say(bought)
sys.stdin.readline()
replayed()
selectors[0] = "#count"
replayed()
