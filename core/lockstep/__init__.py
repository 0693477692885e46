"""Lockstep: record an agent's run, replay it offline, and prove that it was the same run.

    with lockstep.record("refund") as session: ...      # or @lockstep.record("refund") on a function
    lockstep.replay("refund", target).identical
    lockstep.fork("refund:7", target, edits={"7.1": {...}})     # run on from a step, with another answer
    lockstep.diff("refund", "refund-2").first           # what two runs did differently
    lockstep.why("refund:12.1", "total").origins        # where a value came from
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
    from lockstep.debugger.verdict import Verdict
    from lockstep.debugger.why import Why, why
    from lockstep.errors import Divergence, LockstepError, Refused
    from lockstep.inprocess import Replay, Run, afork, areplay, fork, record, replay
    from lockstep.inprocess_bisect import abisect, bisect
    from lockstep.tools import mark, step, tool

__all__ = [
    "Diff", "Divergence", "LockstepError", "Refused", "Replay", "Run", "Verdict", "Why", "abisect", "afork", "areplay",
    "bisect", "diff", "fork", "mark", "record", "replay", "step", "tool",
    "why",
]  # fmt: skip

_HOMES = {
    "Diff": "debugger.diff",
    "Divergence": "errors",
    "LockstepError": "errors",
    "Replay": "inprocess",
    "Refused": "errors",
    "Run": "inprocess",
    "Verdict": "debugger.verdict",
    "Why": "debugger.why",
    "abisect": "inprocess_bisect",
    "bisect": "inprocess_bisect",
    "afork": "inprocess",
    "areplay": "inprocess",
    "fork": "inprocess",
    "diff": "debugger.diff",
    "mark": "tools",
    "record": "inprocess",
    "replay": "inprocess",
    "step": "tools",
    "tool": "tools",
    "why": "debugger.why",
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
