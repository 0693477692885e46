"""A CrewAI that lacks what is needed is told of, and nothing is recorded by halves."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import crews
import pytest
from crewai import Crew

import lockstep_crewai
from lockstep.errors import AdapterError
from lockstep_crewai import fitting
from lockstep_crewai.executors import AgentExecutor


@pytest.fixture(autouse=True)
def _anew() -> Iterator[None]:
    fitting.probe.cache_clear()
    yield
    fitting.probe.cache_clear()


def test_this_one_has_all_of_it() -> None:
    fitting.probe()


def test_a_method_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(AgentExecutor, "_execute_single_native_tool_call")
    with pytest.raises(AdapterError, match="LS410 AgentExecutor has no '_execute_single_native_tool_call' in this"):
        lockstep_crewai.wrap(crews.sequential())


def test_a_method_that_takes_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Crew, "kickoff_for_each", lambda self, many: None)
    with pytest.raises(AdapterError, match=r"LS410 Crew\.kickoff_for_each takes no 'inputs' in this environment"):
        lockstep_crewai.wrap(crews.sequential())


def test_a_module_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "crewai.hooks.contexts", None)
    with pytest.raises(AdapterError, match=r"LS410 there is no crewai\.hooks\.contexts .* install one of these"):
        lockstep_crewai.wrap(crews.sequential())
