"""A run as text: one JSON object a line, with whole values, for other tools to read.

The first line describes the run, each other one an event; those of a branch follow, with its name, and share what is
before them with its parent, up to its position. What JSON cannot say is a map with one key: `{"$bytes":
base64}`, `{"$float": "nan"}` (`inf`, `-inf`); a map that looks like one of these is `{"$map": [[key, value], …]}`.
Every value is written out, so what a tape stores once (a chat's history) is here as often as it was sent.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator
from typing import Any

from lockstep.log.address import MAIN
from lockstep.log.model import Event, StreamInfo, Value
from lockstep.log.sqlite.schema import FORMAT
from lockstep.log.store import ROOT, RunReader

BYTES, FLOAT, MAP = "$bytes", "$float", "$map"
_MARKS = frozenset({BYTES, FLOAT, MAP})


def lines(reader: RunReader) -> Iterator[bytes]:
    """The lines of a run with its branches, or of one branch with what it shares; each with its end."""
    info = reader.info
    head: dict[str, Any] = {"lockstep": "run", "format": FORMAT, "run": info.name}
    if reader.branch != MAIN:
        head["branch"] = reader.branch
    head |= {"state": info.state.value, "started": info.started, "meta": plain(reader.meta)}
    head["streams"] = [_stream(reader, stream) for stream in info.streams]
    others = [one for one in reader.branches if one.name != MAIN] if reader.branch == MAIN else []
    if others:
        head["branches"] = [
            {
                "branch": one.name, "parent": one.parent, "pos": one.pos, "base": one.base, "state": one.state.value,
                "streams": [_stream(reader, stream) for stream in one.streams],
            }
            for one in others
        ]  # fmt: skip
    yield _line(head)
    for stream in info.streams:
        for seq, event in reader.heads(stream.id):
            yield _line(_row(stream.process, seq, event, reader.body(stream.id, seq)))
    for one in others:
        for stream in one.streams:
            base = one.base if stream.process == ROOT else 0
            for seq, event in reader.stored.heads(stream.id):
                row = _row(stream.process, base + seq, event, reader.stored.body(stream.id, seq))
                yield _line({"branch": one.name, **row})


def _stream(reader: RunReader, stream: StreamInfo) -> dict[str, Any]:
    return {"process": stream.process, "events": stream.events, "head": reader.end(stream.id).head.hex()}


def _row(process: str, seq: int, event: Event, body: Value) -> dict[str, Any]:
    row: dict[str, Any] = {"process": process, "seq": seq, "kind": event.kind.name}
    row |= {"pos": event.pos, "at": event.at, "lane": event.lane}
    for name in ("what", "name", "of"):
        if found := getattr(event, name):
            row[name] = str(found) if name != "of" else found
    if event.tick != -1:
        row["tick"] = event.tick
    if event.key:
        row["key"] = event.key.hex()
    if body is not None:
        row["body"] = plain(body)
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
