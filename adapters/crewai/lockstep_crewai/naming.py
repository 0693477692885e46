"""Lanes: a crew's is its name, a task's that of its crew and its own, as in `research/find`.

Whatever may run beside something else has a lane of its own, so that two equal calls at once are told apart:

    research/find               a task of the crew `research`; a method of the flow `research`
    research/find~2             the same once more, in the order of beginning
    research/input-1/find       a task of the first input of `kickoff_for_each`
    research/find/tool-1        the first of several tools that a model called at once; a single one has none
    research/find/writer        an agent (crew, flow) that the method `find` has kicked off

Names are those that the program gave, quoted as parts of an address, and never an id of CrewAI's. What has none is
called after what it does.
"""

from __future__ import annotations

import re
from typing import Any

from lockstep.log import untapped
from lockstep.log.address import quote

_LONGEST = 40  # characters of a name that is made of a description
_WORD = re.compile(r"\w+")


def slug(said: str) -> str:
    """The first words of a description as a name: "Find new papers on {topic}" is "find-new-papers-on-topic"."""
    found = ""
    for word in _WORD.findall(said.lower()):
        if len(found) + len(word) + bool(found) > _LONGEST:
            break
        found = f"{found}-{word}" if found else word
    return found


def of_task(task: Any) -> str:
    """A task's name: its own, else one of the first words of its description as it was written, without its inputs."""
    name = getattr(task, "name", None)
    described = getattr(task, "_original_description", None) or getattr(task, "description", "") or ""
    return str(name) if name else slug(str(described)) or "task"


def of_agent(agent: Any) -> str:
    """An agent's: one of its role as it was written, without its inputs."""
    role = getattr(agent, "_original_role", None) or getattr(agent, "role", "") or ""
    return slug(str(role)) or "agent"


def of_crew(crew: Any) -> str:
    return str(getattr(crew, "name", None) or "crew")


def of_flow(flow: Any) -> str:
    """A flow's: its own, else its class's."""
    return str(getattr(flow, "name", None) or type(flow).__name__)


def tool_lane(lane: str, index: int) -> str:
    """The lane of one of several tools that a model called at once. `index`: from 0, as the model named them."""
    return f"{lane}/tool-{index + 1}"


def input_lane(lane: str, number: int) -> str:
    """The lane of one input of `kickoff_for_each`. `number`: from 1."""
    return f"{lane}/input-{number}"


class Names:
    """The lanes of one turn. Usable from any thread."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._attempts: dict[str, int] = {}
        self._lock: Any = untapped.RLock()

    def lane(self, within: str, name: str) -> str:
        """A new lane of this name. `within`: the one that it is a part of, "" for none."""
        wanted = f"{within}/{quote(name)}" if within else quote(name)
        found, number = wanted, 1
        with self._lock:
            while found in self._taken:
                number += 1
                found = f"{wanted}~{number}"
            self._taken.add(found)
        return found

    def attempt(self, lane: str) -> int:
        """The number of one more attempt in a lane, from 1."""
        with self._lock:
            self._attempts[lane] = found = self._attempts.get(lane, 0) + 1
        return found
