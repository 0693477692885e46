"""A run as text: one JSON object a line, with whole values, for other tools to read.

The first line describes the run, each other one an event. What JSON cannot say is a map with one key: `{"$bytes":
base64}`, `{"$float": "nan"}` (`inf`, `-inf`); a map that looks like one of these is `{"$map": [[key, value], …]}`.
Every value is written out, so what a tape stores once (a chat's history) is here as often as it was sent.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from typing import Any

from lockstep.log.model import Event, Value
from lockstep.log.sqlite.schema import FORMAT
from lockstep.log.store import RunReader

BYTES, FLOAT, MAP = "$bytes", "$float", "$map"
_MARKS = frozenset({BYTES, FLOAT, MAP})


def lines(reader: RunReader) -> Iterator[bytes]:
    """The lines of a run, each with its end."""
    info = reader.info
    yield _line({
        "lockstep": "run", "format": FORMAT, "run": info.name, "state": info.state.value, "started": info.started,
        "meta": plain(reader.meta),
        "streams": [
            {"process": stream.process, "events": stream.events, "head": reader.end(stream.id).head.hex()}
            for stream in info.streams
        ],
    })  # fmt: skip
    for stream in info.streams:
        for seq, event in enumerate(reader.events(stream.id)):
            yield _line(_row(stream.process, seq, event))


def _row(process: str, seq: int, event: Event) -> dict[str, Any]:
    row: dict[str, Any] = {"process": process, "seq": seq, "kind": event.kind.name}
    row |= {"pos": event.pos, "at": event.at, "lane": event.lane}
    for name in ("what", "name", "of"):
        if found := getattr(event, name):
            row[name] = str(found) if name != "of" else found
    if event.tick != -1:
        row["tick"] = event.tick
    if event.key:
        row["key"] = event.key.hex()
    if event.body is not None:
        row["body"] = plain(event.body)
    return row


def plain(value: Value) -> Any:
    """A value in what JSON has."""
    match value:
        case bytes():
            return {BYTES: base64.b64encode(value).decode()}
        case float() if not math.isfinite(value):
            return {FLOAT: str(value)}
        case list():
            return [plain(item) for item in value]
        case dict():
            if len(value) == 1 and not _MARKS.isdisjoint(value):
                return {MAP: [[name, plain(item)] for name, item in value.items()]}
            return {name: plain(item) for name, item in value.items()}
    return value


def _line(row: dict[str, Any]) -> bytes:
    text = json.dumps(row, ensure_ascii=False, separators=(",", ":"))
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can say
        return json.dumps(row, separators=(",", ":")).encode() + b"\n"
