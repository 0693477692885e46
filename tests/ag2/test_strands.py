"""Which strand an agent is that begins inside of another one's turn."""

from __future__ import annotations

from typing import Any

from lockstep_ag2.strands import Strand


def test_subtasks_at_once_have_the_lanes_of_their_tasks_whoever_begins_first() -> None:
    turn: Any = None
    boss = Strand(turn, "main", "boss").of_tool("subtask", 1, ["one", "two", "two"])
    begun = [boss.of_agent("worker", "worker", told) for told in ("Do two.", "Do one.", "Do two.", "Do another.")]
    assert [strand.lane for strand in begun] == ["main/subtask~2", "main/subtask", "main/subtask~3", "main/subtask~4"]
