"""A framework's objects as inert data, for requests and states: what is no data counts by its class, and never by its
address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lockstep.errors import LockstepError
from lockstep.log.model import Value
from lockstep.session import snapshot

_DEPTH = 60


def inert(value: Any, depth: int = 0) -> Value:
    """Data of anything: a model of pydantic's by its fields, a class by its schema."""
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
