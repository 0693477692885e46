"""AutoGen's objects as inert data that is the same in each run that is the same.

A message draws a random id and looks at the clock, and a team's topics bear a random id of the team. None of these
reaches a model, so they are left out of what is compared. How they really were is `was`, so that a message can be
loaded again as it stood.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from lockstep.log.model import Value
from lockstep.session.native import inert as data

# Fields of messages and events that are drawn anew in each run.
DRAWN = frozenset({"id", "created_at", "request_id", "full_message_id"})
_KEPT = ("id", "created_at")

inert, of_class = data.inert, data.of_class


def message(said: Any) -> dict[str, Value]:
    """A message or event, without what is drawn anew in each run."""
    dumped = dump(said)
    return {name: value for name, value in dumped.items() if name not in DRAWN}


def was(said: Any) -> dict[str, Value]:
    """What `message` leaves out."""
    dumped = dump(said)
    return {name: dumped[name] for name in _KEPT if name in dumped}


def dump(said: Any) -> dict[str, Value]:
    """A message or event with all its fields. Of one that cannot dump itself, its text and class."""
    try:
        dumped = inert(said.dump())
    except Exception as error:
        kind = type(said)
        dumped = {
            "type": kind.__name__, "source": str(getattr(said, "source", "")),
            "$": "unstorable", "why": f"{type(error).__name__}: {error}",
        }  # fmt: skip
    return dumped if isinstance(dumped, dict) else {"type": type(said).__name__, "content": dumped}


def spoken(source: str, said: Any, inner: Iterable[Any] = ()) -> dict[str, Value]:
    """A message of a step, with what its speaker did on the way to it."""
    found = message(said)
    found["inner"] = [message(each) for each in inner]
    found.setdefault("source", source)
    return found


def state(saved: Value, ids: Sequence[str] = ()) -> Value:
    """A saved state without what is drawn anew. `ids`: those of teams, which stand in the names of topics."""
    if isinstance(saved, str):
        for id in ids:
            saved = saved.replace(f"_{id}", "")
        return saved
    if isinstance(saved, list):
        return [state(item, ids) for item in saved]
    if isinstance(saved, dict):
        # Only of a message: a map of the user's own may well have an id that counts.
        drawn = DRAWN if "created_at" in saved and "type" in saved else frozenset()
        return {name: state(item, ids) for name, item in saved.items() if name not in drawn}
    return saved
