"""Lanes: a team's is its name, an agent's that of its team and its own, as in `refund/writer`.

Names are those that the program gave, quoted as parts of an address, and never an id of AutoGen's. Two of the same name
beside each other are told apart: `inner` and `inner~2`.
"""

from __future__ import annotations

from typing import Any

from lockstep.log.address import quote

MANAGER = "manager"  # who selects speakers, or plans for them


def members(team: Any) -> list[str]:
    """The name of a team or agent, and those of its participants."""
    return [str(team.name), *(str(each.name) for each in getattr(team, "_participants", None) or ())]


class Names:
    """The lanes of one attached team."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def lane(self, within: str, name: str) -> str:
        """A new lane of this name. `within`: that of its team, "" for none."""
        wanted = f"{within}/{quote(name)}" if within else quote(name)
        found, number = wanted, 1
        while found in self._taken:
            number += 1
            found = f"{wanted}~{number}"
        self._taken.add(found)
        return found
