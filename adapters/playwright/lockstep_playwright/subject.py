"""A program that drives a browser as a subject of `lockstep.conformance`.

Needs a Chromium beside Playwright.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import lockstep
from lockstep.conformance import telling
from lockstep.conformance.subject import Done, Found, Mode, Work
from lockstep.log.model import Value
from lockstep_playwright import layout, subject_agent

_numbers = itertools.count(1)


class Browser:
    """Runs agents as a program does that taps its context, and replays, forks and bisects its runs."""

    modes = (Mode("sync", False), Mode("async", True), Mode("own socket", False))
    unsupported: Mapping[str, str] = {}
    hooks: tuple[str, ...] = (
        "lockstep_playwright.recording:Recorder.begin",
        "lockstep_playwright.recording:Recorder.end",
    )
    core_hooks: tuple[str, ...] = (
        "lockstep.session.secrets:Secrets.asked",
        "lockstep.session.secrets:Secrets.hide",
        "lockstep.session.native.journal:Journal.emit",
        "lockstep.session.native.journal:Journal.step",
        "lockstep.log.sqlite.shared:SharedStream.append",
    )

    def run(self, work: Work) -> Done:
        return _used(work, None)

    def record(self, work: Work) -> Done:
        from msgspec.structs import replace

        name = f"{work.scenario.name}-{os.getpid()}-{next(_numbers)}"
        with telling.faults() as told:
            done = _used(work, name)
        return replace(done, run=f"playwright/{name}", faults=tuple(told))

    def replay(self, work: Work, run: str) -> Done:
        pieces: list[str] = []
        replay = lockstep.replay(run, target(work, pieces), store=work.store)
        return telling.replayed(replay, run, replay.result or (), pieces)

    def fork(self, work: Work, address: str, edits: Mapping[str, Value], live: Collection[str]) -> Done:
        allowed = [f"POST {subject_agent.tool_url(work, name)}" for name in live]
        run = telling.fork(address, target(work, []), edits=edits, live=allowed, store=work.store)
        return telling.forked(run, (run.result or ()) if run.state == "complete" else ())

    def bisect(self, work: Work, run: str, bad: Callable[[str], bool]) -> Found:
        def judge(view: Any) -> bool | None:
            shown = [call.outcome for call in view.calls if call.kind == layout.BROWSER]
            return bad(str(shown[-1])) if view.state == "complete" and shown else None

        verdict = lockstep.bisect(run, target(work, []), bad=judge, store=work.store)
        return telling.found(verdict)


def target(work: Work, pieces: list[str]) -> Any:
    """The agent of a scenario, for a replay, a fork or a bisect."""
    return (subject_agent.aagent if work.mode.asynchronous else subject_agent.agent)(work, pieces)


def _used(work: Work, name: str | None) -> Done:
    """The agent as its user runs it: recorded under a name, or without Lockstep."""
    pieces: list[str] = []
    try:
        if work.mode.asynchronous:
            words = asyncio.run(_arun(work, name, subject_agent.aagent(work, pieces)))
        else:
            with _context(work, name) as context:
                words = subject_agent.agent(work, pieces)(context)
    except Exception as error:
        return Done(error=telling.raised(error), pieces=tuple(pieces))
    return Done(outputs=tuple(words), pieces=tuple(pieces))


@contextmanager
def _context(work: Work, name: str | None) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    import lockstep_playwright
    from lockstep_playwright.browsers import find_chromium

    if work.mode.name == "own socket" and name is not None:
        with lockstep_playwright.launch(run=name, store=work.store) as context:
            yield context
        return
    with sync_playwright() as playwright:
        executable = find_chromium(bundled=playwright.chromium.executable_path)
        browser = playwright.chromium.launch(executable_path=executable)
        context = browser.new_context()
        yield context if name is None else lockstep_playwright.tap(context, run=name, store=work.store)
        context.close()
        browser.close()


async def _arun(work: Work, name: str | None, run: Callable[[Any], Awaitable[list[str]]]) -> list[str]:
    async with _acontext(work, name) as context:
        return await run(context)


@asynccontextmanager
async def _acontext(work: Work, name: str | None) -> Any:
    from playwright.async_api import async_playwright

    import lockstep_playwright
    from lockstep_playwright.browsers import find_chromium

    async with async_playwright() as playwright:
        executable = find_chromium(bundled=playwright.chromium.executable_path)
        browser = await playwright.chromium.launch(executable_path=executable)
        context = await browser.new_context()
        yield context if name is None else await lockstep_playwright.tap(context, run=name, store=work.store)
        await context.close()
        await browser.close()


subject = Browser()
