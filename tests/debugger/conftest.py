"""Agents that are recorded in process, to be compared."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest

import lockstep
from lockstep.testing import Answer, Provider, Request, ToolCall


def said(request: Request) -> Answer:
    """A model that wants an order first, and then sums up what it was told."""
    told = [message for message in request.json["messages"] if message["role"] == "tool"]
    if not told:
        return Answer(calls=(ToolCall("get_order", {"order": 452}),))
    return Answer(f"You told me {len(told)} things.")


@pytest.fixture(scope="package")
def server() -> Iterator[Provider]:
    """One provider for all: where a program asks is part of what it asks."""
    with Provider(said) as started:
        yield started


@pytest.fixture
def model(server: Provider) -> Iterator[Provider]:
    yield server
    server.script = said


class Agent:
    """What a test's agent has at hand."""

    def __init__(self, url: str) -> None:
        self.url = url

    def client(self) -> httpx.Client:
        return httpx.Client(base_url=self.url, trust_env=False)

    def ask(self, client: httpx.Client, *messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
        body = {"model": "gpt-4o", "messages": list(messages), **fields}
        answer: dict[str, Any] = client.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]
        return answer


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


@pytest.fixture
def record(model: Provider) -> Callable[..., str]:
    """Records a call of a function, which is given an `Agent`, and returns the run's name."""

    def run(name: str, function: Callable[[Agent], Any]) -> str:
        agent = Agent(model.url)
        with suppress(ZeroDivisionError, KeyError), lockstep.record(name) as session:
            result = function(agent)
            if asyncio.iscoroutine(result):
                asyncio.run(result)
        assert session.report is not None and session.report.faults == ()
        return session.run

    return run
