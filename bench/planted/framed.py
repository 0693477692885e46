"""The frameworks' ordinary agents, which their adapters' conformance tests build too: the model says which tool is to
be used next, and has a last word to each prompt. Model and tools are asked over loopback.

Here every kind but the wrong argument is a tool's answer: also the instructions, which the model asks for and follows,
since not each framework lets its program change the system prompt in the middle of a run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import msgspec
from bench.planted import faults
from bench.planted.faults import INBOX, PROMPT, SEARCH, TOOL, Case
from bench.planted.provider import Provider, last_total

from lockstep.conformance.scenario import Scenario, Tool
from lockstep.conformance.subject import Work
from lockstep.debugger import calls
from lockstep.debugger.view import View
from lockstep.testing import Provider as Loopback

_TOOLS = tuple(Tool(name) for name in (TOOL, SEARCH, INBOX, PROMPT))
_PROMPTS = ("Settle what is open.", "Is there anything else?")


class Framework(msgspec.Struct, frozen=True):
    """A framework's agent.

    subject  where its conformance subject is
    mode     in which of its ways it runs
    target   what a bisect is given, of the subject and the work
    word     the agent's last word, of the subject and a run that ended by itself
    """

    subject: str
    mode: str
    target: Callable[[Any, Work], Any]
    word: Callable[[Any, View], str]


def _made(subject: Any, work: Work) -> Any:
    return lambda: subject.make(work, [])


def _module(subject: Any) -> Any:
    return import_module(type(subject).__module__)


def _shown(subject: Any, view: View) -> str:
    shown = [call.outcome for call in view.calls if call.kind == calls.BROWSER]
    return str(shown[-1]) if shown else ""


FRAMEWORKS: Mapping[str, Framework] = {
    "plain-http": Framework(
        "lockstep.conformance.plain", "sync", lambda subject, work: subject.target(work, []),
        lambda subject, view: str(view.result[-1]),
    ),
    "create_agent": Framework(
        "lockstep_langgraph.subject", "invoke", lambda subject, work: _module(subject).agent(work, None, []),
        lambda subject, view: str(_module(subject)._word(view.result)),
    ),
    "autogen": Framework("lockstep_autogen.subject", "team", _made, lambda subject, view: subject.word(view.result)),
    "crewai": Framework("lockstep_crewai.subject", "crew", _made, lambda subject, view: subject.word(view.result)),
    "playwright": Framework(
        "lockstep_playwright.subject", "sync", lambda subject, work: _module(subject).target(work, []), _shown
    ),
    "ag2": Framework("lockstep_ag2.subject", "sync tools", _made, lambda subject, view: subject.word(view.result)),
}  # fmt: skip


class Framed:
    """The agent of one framework, and the loopback provider that it asks, for as long as the process lives."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.provider = Provider()
        self._framework = FRAMEWORKS[name]
        self._subject: Any = import_module(self._framework.subject).subject
        self._mode = next(mode for mode in self._subject.modes if mode.name == self._framework.mode)
        self._url = Loopback(self.provider).start().url

    def places(self, steps: int, kind: str) -> Sequence[int]:
        return faults.places(steps, kind)

    def case(self, steps: int, kind: str, at: int, seed: str) -> Case:
        return faults.by_model(steps, kind, at, seed)

    def record(self, case: Case, store: str) -> str:
        self.provider.record(case)
        done = self._subject.record(self._work(store, case.steps))
        total = last_total(done.outputs[-1]) if done.outputs else None
        if done.error or done.faults or total in (None, case.total(case.steps)):
            raise RuntimeError(f"no bad run of {self.name} was recorded: {done}")
        return str(done.run)

    def target(self, store: str) -> Any:
        return self._framework.target(self._subject, self._work(store, self.provider.steps))

    def total(self, view: View) -> int | None:
        return last_total(self._framework.word(self._subject, view)) if view.state == "complete" else None

    def _work(self, store: str, steps: int) -> Work:
        prompts = _PROMPTS if steps % 2 == 0 else _PROMPTS[:1]
        return Work(Scenario("clerk", (), _TOOLS, prompts, "You settle refunds."), self._mode, self._url, store)
