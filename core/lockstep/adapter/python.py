"""The first adapter: a Python program without a framework. The core's own taps record it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lockstep.adapter.contract import Adapter, Steps, Target, Versions, Way
from lockstep.log.model import Value


def _program(target: Any, given: Value) -> Callable[[], Any]:
    """The callable itself: what it works with is in its closure."""
    return target  # type: ignore[no-any-return]


adapter = Adapter(
    name="python",
    title="Python",
    distribution="",
    tested=Versions("3.12", "3.13"),
    steps=Steps(
        kind="step", what="each model, tool or HTTP call, in order of completion; lockstep.step adds named ones"
    ),
    restore=Way(exact=False, reason="a Python program has no checkpoint that it could be started from"),
    re_execute=Way(exact=True),
    target=Target(
        what="callable without arguments, or a command", inputs="closure, argv", accepts=callable, program=_program
    ),
    subject="lockstep.conformance.plain:subject",
)
