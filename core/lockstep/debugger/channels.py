"""Which channels of a graph's state are its user's, and what the framework's own are."""

from __future__ import annotations

# Channels that a graph keeps for itself: what is shown of a state are those that the user declared.
_OWN = ("__", "branch:", "lg_branch:")

START = "__start__"  # what a graph was given
SENDS = "__pregel_tasks"  # tasks to begin, each with a node and what it is given
INTERRUPT, ERROR, RESUME = "__interrupt__", "__error__", "__resume__"


def is_users(channel: str) -> bool:
    """Whether a channel is one that the user declared."""
    return not channel.startswith(_OWN)
