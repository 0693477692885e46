"""Models that CrewAI asks by another client than OpenAI's: Anthropic's, and LiteLLM."""

from __future__ import annotations

from typing import Any

import crew_runs
import crews
import pytest
from crewai import Crew

import lockstep
import lockstep_crewai
from lockstep.testing import Answer, Provider, Request, ToolCall


def _answer(request: Request) -> Answer:
    """Looks the order up, and says what that came to."""
    if "40.00" in str(request.json["messages"]):
        return Answer("it cost 40.00")
    return Answer(calls=(ToolCall("look_up", {"order": 7}),))


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("model", "more"),
    [("anthropic/claude-sonnet-4-5", {}), ("openai/gpt-4o", {"is_litellm": True})],
    ids=["anthropic", "litellm"],
)
def test_it_is_replayed_with_its_tool_and_its_tokens(
    model: str, more: dict[str, Any], stream: bool, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.script = _answer

    def make() -> Crew:
        clerk = crews.agent("clerk", tools=[crews.LookUp()], llm=crews.LLM(model=model, stream=stream, **more))
        return Crew(name="desk", agents=[clerk], tasks=[crews.task("look", clerk)])

    result = lockstep_crewai.wrap(make()).kickoff(crews.INPUTS)
    assert result.raw == "it cost 40.00"
    assert crews.ran == ["look_up"]
    assert result.token_usage.total_tokens > 0
    monkeypatch.setenv("ANTHROPIC_BASE_URL", crew_runs.NOWHERE)
    crew_runs.silence(provider, monkeypatch)
    crew_runs.is_again(lockstep.replay("crewai/desk", make), result)
    assert crews.ran == []
