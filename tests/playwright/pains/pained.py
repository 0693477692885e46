"""One browser in which agents are recorded, and done again.

first = tapped.record(agent)           # the run `playwright/pain`; what the agent returned
done = tapped.replay(agent)            # in another context of the same browser
tapped.asked()                         # what its pages asked and got: [("GET", "/again", b"…"), …]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Playwright

import lockstep
import lockstep_playwright
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline
from lockstep_playwright.hosting import free_port

type Agent = Callable[[Any], Any]


class Tapped:
    """`store`: where runs go; `endpoint`: of the browser."""

    def __init__(self, playwright: Playwright, chromium: str) -> None:
        port = free_port()
        self.store = ""
        self.endpoint = f"http://127.0.0.1:{port}"
        self.browser = playwright.chromium.launch(executable_path=chromium, args=[f"--remote-debugging-port={port}"])

    def record(self, agent: Agent, run: str = "pain", **options: Any) -> Any:
        context = self.tap(run, **options)
        try:
            return agent(context)
        finally:
            context.close()

    def tap(self, run: str = "pain", **options: Any) -> Any:
        context = self.browser.new_context(**options)
        return lockstep_playwright.tap(context, run=run, store=self.store, endpoint=self.endpoint)

    def fork(self, step: int, agent: Agent, **more: Any) -> Any:
        return lockstep.fork(f"playwright/pain:{step}", agent, store=self.store, endpoint=self.endpoint, **more)

    def replay(self, agent: Agent, run: str = "pain", **own: Any) -> Any:
        return lockstep.replay(f"playwright/{run}", agent, store=self.store, endpoint=self.endpoint, **own)

    def steps(self, run: str = "pain") -> list[tuple[str, str]]:
        """Of each step, its kind and name."""
        with open_store(self.store) as opened:
            return [(step.kind, step.name) for step in Timeline(opened.run(f"playwright/{run}")).steps]

    def effects(self, run: str = "pain") -> list[str]:
        """Of each exchange with the network, its number and name: "3.1 GET …"."""
        with open_store(self.store) as opened:
            steps = Timeline(opened.run(f"playwright/{run}")).steps
            return [f"{step.number}.{effect.number} {effect.name}" for step in steps for effect in step.effects]

    def asked(self, run: str = "pain") -> list[tuple[str, str, bytes]]:
        """Of each exchange with the network, its method, path and the body of its answer, in order."""
        with open_store(self.store) as opened:
            timeline = Timeline(opened.run(f"playwright/{run}"))
            found = []
            for effect in (each for step in timeline.steps for each in step.effects if each.kind == "http"):
                request: Any = timeline.request(effect)
                body = b"".join(part for part in timeline.parts(effect) if isinstance(part, bytes))
                found.append((request["method"], "/" + request["url"].split("/", 3)[3], body))
            return found

    def close(self) -> None:
        self.browser.close()
