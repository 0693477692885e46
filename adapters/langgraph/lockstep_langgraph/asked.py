"""What a turn was asked and what it gave, as data: enough to invoke the graph again in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from types import CodeType
from typing import Any

from lockstep.errors import LockstepError
from lockstep.log.model import Value
from lockstep.session import snapshot

INTERRUPT = "__interrupt__"
EVENTS = "astream_events"

# What of a config says how the graph runs. The rest is the program's own machinery (callbacks), or langgraph's.
_CONFIG = ("tags", "metadata", "run_name", "run_id", "recursion_limit", "max_concurrency", "configurable")
_PRIVATE = "__"  # configurable keys of langgraph's own: live objects
_V3 = "__pregel_stream_messages_v2"  # the one of them that changes what is streamed
_EVENTS_HANDLER = "_AstreamEventsCallbackHandler"


def entry(streamed: str, caller: CodeType, config: Mapping[str, Any]) -> str:
    """The method that the program called, of which `stream` or `astream` is the inner half."""
    if caller.co_name in ("invoke", "ainvoke") and caller.co_filename.endswith("main.py"):
        return caller.co_name
    callbacks = config.get("callbacks")
    handlers = callbacks if isinstance(callbacks, list) else getattr(callbacks, "handlers", ())
    events = streamed == "astream" and any(type(handler).__name__ == _EVENTS_HANDLER for handler in handlers)
    return EVENTS if events else streamed


def request(codec: Any, given: Any, config: Mapping[str, Any], options: Mapping[str, Any]) -> Value:
    """The body of a turn's beginning."""
    kept: dict[str, Any] = {}
    for name in _CONFIG:
        value = config.get(name)
        if value is None or (not value and name != "configurable"):
            continue
        if name == "recursion_limit" and type(value) is not int:
            continue  # langgraph's own default, which is a kind of number of its own
        if name == "configurable":
            value = {key: item for key, item in value.items() if not key.startswith(_PRIVATE) or key == _V3}
        kept[name] = dict(value) if isinstance(value, Mapping) else value
    settings = {name: value for name, value in options.items() if value is not None and name != "control"}
    return {
        "input": dumped(codec, given, "input"),
        "config": dumped(codec, kept, "config"),
        "options": dumped(codec, settings, "options"),
    }


def returned(codec: Any, last: Any, mode: Any) -> Value:
    """The body of a turn's end: the shape of the state that it gave last, and what it waits for; of a stream without
    states only that. The values themselves are in its last checkpoint: a thread of n turns would store n states again.

    mode  the stream's: one, or several
    """
    payload = last
    if isinstance(payload, tuple) and len(payload) in (2, 3) and isinstance(mode, (list, tuple)):
        mode, payload = payload[-2:]
    elif isinstance(payload, tuple) and len(payload) == 2:
        payload = payload[1]  # of a stream that tells the namespace too
    elif isinstance(payload, dict) and {"type", "ns", "data"} <= payload.keys():
        mode, waits, payload = payload["type"], payload.get("interrupts"), payload["data"]
        payload = {**payload, INTERRUPT: waits} if waits and isinstance(payload, dict) else payload
    told: dict[str, Value] = {}
    if isinstance(payload, dict) and (waits := payload.get(INTERRUPT)):
        told["interrupts"] = [dumped(codec, getattr(each, "value", each), "interrupt") for each in waits]
    if mode != "values":
        return told
    if isinstance(payload, dict):
        return {**told, "keys": [*sorted(str(key) for key in payload if key != INTERRUPT)]}
    if payload is None or isinstance(payload, (bool, int, float, str)):
        return {**told, "value": payload}
    return {**told, "type": type(payload).__qualname__}


def dumped(codec: Any, value: Any, path: str) -> Value:
    """As data; what the saver could not store is kept as far as it can be shown."""
    try:
        return codec.dump(value, path)  # type: ignore[no-any-return]
    except LockstepError:
        return snapshot.to_value(value)
