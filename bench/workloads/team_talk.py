"""A team of two that talks for many turns, with its model on loopback: what that takes, and what is kept of it.

    python team_talk.py bare|dumped|recorded TURNS URL FIGURES

With `-` for the URL, a client in the same process answers at once, so that the team's own work is all there is.
`dumped`: after each turn the team's state is saved and written as JSON, which is what users do who want to go on from
any turn. `recorded`: the team is attached.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import words
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import TerminationCondition
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_ext.models.openai import OpenAIChatCompletionClient
from autogen_ext.models.replay import ReplayChatCompletionClient


class Dumping(TerminationCondition):
    """Saves the team's state where it is whole: before the next one is chosen to speak."""

    def __init__(self) -> None:
        self.team: Any = None
        self.bytes = 0

    @property
    def terminated(self) -> bool:
        return False

    async def __call__(self, messages: Any) -> None:
        self.bytes += len(json.dumps(await self.team.save_state()))

    async def reset(self) -> None:
        pass


def made(url: str, turns: int, condition: TerminationCondition | None) -> RoundRobinGroupChat:
    client: Any = OpenAIChatCompletionClient(model="gpt-4o-2024-08-06", base_url=f"{url}/v1", api_key="any")
    if url == "-":
        client = ReplayChatCompletionClient([words.text(number) for number in range(turns)])
    agents = [AssistantAgent(name, client, system_message=f"You are {name}.") for name in ("one", "two")]
    return RoundRobinGroupChat(agents, max_turns=turns, termination_condition=condition)


async def measured(way: str, turns: int, url: str, store: str) -> dict[str, float]:
    condition = Dumping() if way == "dumped" else None
    team = made(url, turns, condition)
    if condition is not None:
        condition.team = team
    if way == "recorded":
        import lockstep_autogen

        lockstep_autogen.attach(team, store=store)
    await made(url, 2, None).run(task="warm")  # what is imported and connected at the first call
    wall, cpu = time.perf_counter(), time.process_time()
    result = await team.run(task="talk")
    found = {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}
    assert len(result.messages) == turns + 1, result.stop_reason
    if condition is not None:
        found["bytes"] = condition.bytes
    return found


def main() -> None:
    way, turns, url, figures = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder, "store.db"))
        found = asyncio.run(measured(way, int(turns), url, store))
        if way == "recorded":
            found["bytes"] = _size(store)
    Path(figures).write_text(json.dumps(found))


def _size(store: str) -> float:
    """Of the run as it is stored, with what the store has to have."""
    import gc

    from lockstep.log.sqlite.clean import clean

    gc.collect()  # the team is gone, and its journal closed
    clean(store)
    return sum(os.path.getsize(each) for each in Path(store).parent.iterdir() if each.name.startswith("store.db"))


if __name__ == "__main__":
    main()
