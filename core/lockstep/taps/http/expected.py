"""What the record holds next in a lane: for the few answers that must come before the request is known.

In a replay a request body that the program generates is drawn as far as the recording drew it, and a
connection is refused before anything was sent on it. Both look ahead here; the match itself stays
with `Call.ask`.
"""

from __future__ import annotations

from typing import Any

from lockstep.log.model import Value


def next_request(call: Any) -> dict[str, Value]:
    """The request of the next unused effect in the call's lane; {} where there is none."""
    effect = _next(call)
    if effect is None:
        return {}
    request = call.session.secrets.reveal(call.session.tape.request(effect).get("request"))
    return request if isinstance(request, dict) else {}


def is_next(call: Any, kind: str, name: str, key: Value) -> bool:
    """Whether the next unused effect in the call's lane is the one with this name and key."""
    effect = _next(call)
    return effect is not None and bool(
        effect.begin.key == call.session.secrets.key(kind, *call.session.secrets.hide([name, key]))
    )


def _next(call: Any) -> Any:
    tape = call.lane.state
    return tape.effects[tape.cursor] if tape is not None and tape.cursor < len(tape.effects) else None
