"""A question that gets the answer of another one (#8837): told, since nothing in LangGraph does.

A node that asks twice, and is run again with no input where the second question waits, has it answered with the answer
to the first. The checkpointer sees it: the task takes one answer more than it had, in a turn that brought none.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from lockstep_langgraph import turns
from lockstep_langgraph.entries import Write

log = logging.getLogger("lockstep")

RESUME = "__resume__"


def look(turn: turns.Turn, known: Iterable[Write], writes: Sequence[tuple[str, Any]], task: str, node: str) -> None:
    """Warns where a task takes an answer that its turn did not bring. `known`: what was written to its checkpoint."""
    given = [value for channel, value in writes if channel == RESUME and isinstance(value, list)]
    if not given or not isinstance(turn.request, dict) or turn.request.get("input", ...) is not None:
        return
    had = [each.item.value for each in known if each.task == task and each.channel == RESUME]
    taken = max(map(len, given))
    before = max((len(value) for value in had if isinstance(value, list)), default=0)
    if taken > before > 0:
        log.warning(
            "thread %r: a question of %s was answered with the answer to another: its turn brought none. A turn that "
            "answers says Command(resume=...), and not None",
            turn.thread,
            repr(node) if node else "a task",
        )
