"""Lockstep: record an agent's run, replay it offline, and prove that it was the same run.

    with lockstep.record("refund") as session: ...      # or @lockstep.record("refund") on a function
    lockstep.replay("refund", target).identical
    lockstep.diff("refund", "refund-2").first           # what two runs did differently
    @lockstep.tool                                      # any function as an effect
    lockstep.mark(obj, effect="read")                   # what any tool may do to the outside
    lockstep.step("triaged", state)                     # a named step

Nothing of it does anything without a session.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lockstep.debugger.diff import Diff, diff
    from lockstep.errors import Divergence, LockstepError
    from lockstep.inprocess import Replay, areplay, record, replay
    from lockstep.tools import mark, step, tool

__all__ = [
    "Diff", "Divergence", "LockstepError", "Replay", "areplay", "diff", "mark", "record", "replay", "step", "tool",
]  # fmt: skip

_HOMES = {
    "Diff": "debugger.diff",
    "Divergence": "errors",
    "LockstepError": "errors",
    "Replay": "inprocess",
    "areplay": "inprocess",
    "diff": "debugger.diff",
    "mark": "tools",
    "record": "inprocess",
    "replay": "inprocess",
    "step": "tools",
    "tool": "tools",
}


def __getattr__(name: str) -> Any:
    # Loaded when asked for: a program's start pays only for what it uses.
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'lockstep' has no attribute {name!r}")
    found = globals()[name] = getattr(import_module(f"lockstep.{home}"), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
