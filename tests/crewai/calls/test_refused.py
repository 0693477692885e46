"""What is not recorded yet is refused, or stops its replay."""

from __future__ import annotations

from typing import Any

import pytest
from asked import Tape
from crewai import LLM, Agent, Crew, Task
from crewai.knowledge.source.string_knowledge_source import StringKnowledgeSource
from crewai.memory.unified_memory import Memory

import lockstep
from lockstep.errors import Code, Divergence, TargetError
from lockstep.testing import Provider
from lockstep_crewai import refused


def agent(**more: Any) -> Agent:
    more.setdefault("llm", LLM(model="openai/gpt-4o"))
    return Agent(role="writer", goal="write", backstory="You do your work.", **more)


def crew(writer: Agent, **more: Any) -> Crew:
    return Crew(agents=[writer], tasks=[Task(description="write", expected_output="a text", agent=writer)], **more)


def test_a_crew_that_has_none_of_it_is_fine(provider: Provider) -> None:
    refused.check(crew(agent()))
    refused.check(agent())


def test_memory_is_refused(provider: Provider) -> None:
    with pytest.raises(TargetError, match=r"^LS411 .*the crew has a memory, .*: set memory=False$"):
        refused.check(crew(agent(), memory=True))
    with pytest.raises(TargetError, match=r"^LS411 .*agent writer has a memory"):
        refused.check(crew(agent(memory=True)))
    with pytest.raises(TargetError, match=r"agent writer has a memory"):
        refused.check(agent(memory=True))


def test_knowledge_is_refused(provider: Provider) -> None:
    writer = agent()
    writer.knowledge_sources = [StringKnowledgeSource(content="an order is 40.00")]
    with pytest.raises(TargetError, match=r"^LS411 .*agent writer has knowledge, .*: leave it out"):
        refused.check(crew(writer))


def test_a_model_that_cannot_be_seen_is_refused(provider: Provider) -> None:
    llm: Any = LLM(model="openai/gpt-4o")
    llm.call = lambda *args, **options: "mine"
    with pytest.raises(TargetError, match=r"agent writer's llm has a call of its own, put on the object"):
        refused.check(crew(agent(llm=llm)))


def test_in_a_session_it_is_told_and_the_program_goes_on(provider: Provider) -> None:
    llm: Any = LLM(model="openai/gpt-4o")
    llm.call = lambda *args, **options: "mine"
    with lockstep.record("desk") as session:
        assert crew(agent(llm=llm)).kickoff().raw == "mine"
    (fault,) = session.report.faults
    assert fault.startswith("crew crew: TargetError: LS411 agent writer's llm has a call of its own, put on the object")


def test_a_memory_that_is_used_all_the_same_is_told_and_stops_its_replay(
    tape: Tape, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[str] = []
    plain = Memory.recall.lockstep_plain  # type: ignore[attr-defined]
    monkeypatch.setattr(Memory, "_embedder", property(lambda self: None), raising=False)
    assert plain is not Memory.recall
    memory = Memory()
    monkeypatch.setattr(type(memory), "_storage", _Storage(used), raising=False)
    tape.record(lambda: memory.list_scopes("/"))
    assert len(tape.faults) == 1 and "LS411 what memory answers is not recorded yet" in tape.faults[0]
    assert tape.calls()[0][1:] == ("tool", "memory.list_scopes")
    assert isinstance(tape.serve(lambda: memory.list_scopes("/")), Divergence)
    assert tape.difference is not None and tape.difference.code == Code.UNSERVABLE


class _Storage:
    def __init__(self, used: list[str]) -> None:
        self._used = used

    def list_scopes(self, path: str) -> list[str]:
        self._used.append(path)
        return [path]
