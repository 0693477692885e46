"""How many events a workflow's commands make in its history, whose length a workflow can ask for."""

from __future__ import annotations

from typing import Any

_NONE = frozenset(
    {"cancel_signal_workflow", "request_cancel_local_activity", "schedule_local_activity", "respond_to_query"}
)


def of_command(kind: str, command: Any, patched: set[str]) -> int:
    """Of one command. `patched`: the patches that have their marker; grows. Events of local activities are counted when
    they are over, and what is cancelled before it was sent counts as if it had been."""
    if kind in _NONE:
        return 0
    if kind == "set_patch_marker":
        if command.patch_id in patched:
            return 0
        patched.add(command.patch_id)
        return 2  # and the search attribute that lists it
    if kind == "update_response":
        return 0 if command.HasField("rejected") else 1
    return 1
