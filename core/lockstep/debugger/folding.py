"""A streamed answer as one value: the same whatever pieces it came in.

Providers stream JSON events, in which texts arrive bit by bit (`delta`, `partial_json`, …) and everything
else is said once or over again. `fold` puts the events of one sort and place together: texts are joined, what
changes from event to event becomes the list of what was said. Nothing is dropped but the numbering of the events.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

# Fields that say which piece an event is, not what it says.
_NUMBERING = frozenset({"sequence_number", "obfuscation", "event_index"})
_TEXTS = "(text)"  # events that are no JSON: `[DONE]`
# Fields that say where a piece belongs.
_PLACES = ("index", "output_index", "content_index", "summary_index", "contentBlockIndex")
# Fields that are said as a whole, also inside of a delta.
_WHOLE = frozenset({
    "role", "type", "id", "name", "model", "object", "status", "finish_reason", "stop_reason", "finishReason",
    "stopReason", "call_id", "item_id", "created_at", "done_reason", "modelVersion", "responseId", "service_tier",
    "system_fingerprint",
})  # fmt: skip


def fold(events: Iterable[Any]) -> Any:
    """The events as one value: by type where they have one, else as one event."""
    found: dict[str, Any] = {}
    for event in events:
        if not isinstance(event, dict):
            found.setdefault(_TEXTS, []).append(event)
            continue
        sort = "/".join(str(event[name]) for name in ("type", *_PLACES) if isinstance(event.get(name), str | int))
        plain = {name: value for name, value in event.items() if name not in _NUMBERING}
        found[sort] = _merged(found[sort], plain) if sort in found else plain
    if found.keys() <= {"", _TEXTS} and "" in found:
        texts = found.get(_TEXTS)
        return found[""] if texts is None else {**found[""], _TEXTS: texts}
    return found


class _Said(list[Any]):
    """Different values that one field had, one after the other."""


def _merged(old: Any, new: Any, name: str = "") -> Any:
    if old is None or new is None:
        return new if old is None else old
    if isinstance(old, dict) and isinstance(new, dict):
        merged = dict(old)
        for key, value in new.items():
            if key not in _NUMBERING:
                merged[key] = _merged(merged[key], value, key) if key in merged else value
        return merged
    if isinstance(old, list) and isinstance(new, list) and not isinstance(old, _Said):
        return _lists(old, new)
    if isinstance(old, str) and isinstance(new, str) and name not in _WHOLE:
        return old + new
    if isinstance(old, _Said):
        return old if old[-1] == new else _Said([*old, new])
    return old if type(old) is type(new) and old == new else _Said([old, new])


def _lists(old: list[Any], new: list[Any]) -> list[Any]:
    """Items belong together by the place that they name, or, where they name none, as parts of one text."""
    merged = list(old)
    for item in new:
        at = _partner(merged, item)
        if at is None:
            merged.append(item)
        else:
            merged[at] = _merged(merged[at], item)
    return merged


def _partner(items: list[Any], item: Any) -> int | None:
    if not isinstance(item, dict):
        return None
    place = next((name for name in _PLACES if name in item), None)
    if place is not None:
        return next(
            (at for at, one in enumerate(items) if isinstance(one, dict) and one.get(place) == item[place]), None
        )
    last = items[-1] if items else None
    if isinstance(last, dict) and last.keys() == item.keys() and not any(isinstance(v, bool) for v in item.values()):
        texts = [key for key in item if isinstance(item[key], str)]
        joins = bool(texts) or "content" in item or "message" in item
        return len(items) - 1 if joins else None
    return None
