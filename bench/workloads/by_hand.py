"""A function as a tool, by whichever of the two tools is installed here; and when what it did is durable.

The peer has no decorator. Its session's methods are used as its own `OrderedExecutor` uses them, but for one
thing: in a replay the call's arguments are compared too.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

if find_spec("lockstepd") is not None:
    import itertools

    from lockstepd.core.events import EventKind
    from lockstepd.runtime import auto_session

    _calls = itertools.count()

    def tool(function: Callable[[int], Any]) -> Callable[[int], Any]:
        session = auto_session()
        name = function.__name__

        def run(order: int) -> Any:
            number = next(_calls)
            asked = {"call_id": str(number), "name": name, "args": {"order": order}}
            if session.mode_is_replaying:
                session.expect_exact(EventKind.TOOL_CALL, asked)
                return session.expect_exact(EventKind.TOOL_RESULT, None)["value"]
            session.emit(EventKind.TOOL_CALL, asked)
            value = function(order)
            answer = {"call_id": str(number), "ok": True, "value": value, "duration_ns": 0, "completion_index": number}
            session.emit(EventKind.TOOL_RESULT, answer)
            return value

        return run

    def done() -> None:
        """Each of its events is written when it is made."""

elif any(name.startswith("lockstep.session") for name in sys.modules):
    import lockstep

    tool = lockstep.tool(effect="read")

    def done() -> None:
        lockstep.step("block")

else:

    def tool(function: Callable[[int], Any]) -> Callable[[int], Any]:
        return function

    def done() -> None:
        """There is nothing to store."""
