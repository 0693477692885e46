"""What people look at behind a step: the page's accessibility snapshot and a picture of it. Never part of a digest: two
pictures of the same page differ by a caret."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

from lockstep_playwright.actions.driven import Ask, Both, Wait
from lockstep_playwright.actions.looking import State
from lockstep_playwright.actions.pipe import Pipe
from lockstep_playwright.actions.underway import Page

_LARGE = 1500  # elements of a page of which no snapshot is taken: it would take the page longer than the action


async def taken(pipe: Pipe, page: Page, state: State, attach: Callable[[str, str | bytes], None]) -> None:
    """Takes what there is to take; a page that does not answer has none."""
    if state.text:
        attach("dom", state.text)
    shot = {"format": "png", "optimizeForSpeed": True, "captureBeyondViewport": False}
    asked: list[Wait] = [
        Ask(pipe, page.looker.session, "send", {"method": "Page.captureScreenshot", "params": shot}),
    ]
    if state.elements <= _LARGE and page.main is not None:
        asked.append(Ask(pipe, page.main._guid, "ariaSnapshot", {"selector": "body", "timeout": 1000}))
    drawn, *read = await Both(*asked)
    if drawn[0]:
        attach("screenshot", base64.b64decode(drawn[0]["result"]["data"]))
    if read and read[0][0] and isinstance(snapshot := read[0][0].get("snapshot"), str):
        attach("aria", _without(snapshot, state.secrets))


def _without(snapshot: str, secrets: tuple[str, ...]) -> str:
    """The snapshot without what stands in password fields, which it reads out."""
    lines = snapshot.splitlines()
    for secret in secrets:
        shown = (f": {secret}", f": {json.dumps(secret)}")
        lines = [f"{line[: -len(end)]}: ***" if (end := _end(line, shown)) else line for line in lines]
    return "\n".join(lines)


def _end(line: str, ends: tuple[str, ...]) -> str:
    return next((end for end in ends if line.endswith(end)), "")
