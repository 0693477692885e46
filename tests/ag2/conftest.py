"""What the tests of AG2 share: agents that are recorded, and the store of the test."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import agents

import lockstep_ag2
from lockstep_ag2 import attaching


class Recorded:
    """What an agent did while it was recorded. `said`: its words, one a question; `runs`: the names of its runs."""

    def __init__(self, said: list[str], error: Exception | None, owner: Any, ran: list[str]) -> None:
        self.said = said
        self.error = error
        self.runs: list[str] = owner.runs()
        self.faults: list[str] = owner.faults
        self.ran = ran

    @property
    def run(self) -> str:
        return self.runs[0]


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    agents.ran.clear()


@pytest.fixture
def record() -> Callable[..., Recorded]:
    """Asks an attached agent some questions, each a reply to the answer before."""

    def recorded(agent: Any, *questions: str) -> Recorded:
        async def talk() -> tuple[list[str], Exception | None]:
            said: list[str] = []
            asked = agent
            try:
                for question in questions or ("Go on.",):
                    asked = await asked.ask(question)
                    said.append(str(asked.body))
            except RuntimeError as error:
                return said, error
            return said, None

        agents.ran.clear()
        lockstep_ag2.attach(agent)
        said, error = asyncio.run(talk())
        owner = attaching.owner(agent)
        owner.close()
        ran = list(agents.ran)
        agents.ran.clear()
        return Recorded(said, error, owner, ran)

    return recorded
