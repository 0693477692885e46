"""AutoGen's objects as inert data that is the same in each run that is the same.

A message draws a random id and looks at the clock, and a team's topics bear a random id of the team. None of these
reaches a model, so they are left out of what is compared. How they really were is `was`, so that a message can be
loaded again as it stood.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from lockstep.errors import LockstepError
from lockstep.log.model import Value
from lockstep.session import snapshot

# Fields of messages and events that are drawn anew in each run.
DRAWN = frozenset({"id", "created_at", "request_id", "full_message_id"})
_KEPT = ("id", "created_at")
_DEPTH = 60


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


def inert(value: Any, depth: int = 0) -> Value:
    """Data of anything: what is no data counts by its class, and never by its address."""
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return value if type(value) in (type(None), bool, int, float, str, bytes) else _scalar(value)
    if depth < _DEPTH:
        if isinstance(value, Mapping):
            return {str(name): inert(item, depth + 1) for name, item in value.items()}
        if isinstance(value, Sequence):
            return [inert(item, depth + 1) for item in value]
        if isinstance(value, type):
            return of_class(value)
        dumping = getattr(value, "model_dump", None)
        if dumping is not None and not isinstance(value, type):
            try:
                return inert(dumping(mode="json"), depth + 1)
            except Exception:
                return snapshot.by_class(value)  # a field of it that JSON has no word for
    try:
        return snapshot.to_key(snapshot.to_value(value))
    except LockstepError:
        return snapshot.by_class(value)


def of_class(value: type) -> Value:
    """A class that says what an answer is to look like: by its schema."""
    named: dict[str, Value] = {"$": "class", "$class": f"{value.__module__}:{value.__qualname__}"}
    schema = getattr(value, "model_json_schema", None)
    if schema is not None:
        try:
            named["schema"] = inert(schema())
        except Exception:
            return named  # it has none: a field of a type that JSON has no word for
    return named


def _scalar(value: Any) -> Value:
    plain: Any
    for plain in (int, float, str, bytes):
        if isinstance(value, plain):
            found: Value = plain(value)
            return found
    return None


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
