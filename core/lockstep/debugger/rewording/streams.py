"""The two ways in which events of a model come in pieces: server-sent events, and Amazon's binary frames."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from collections.abc import Iterable
from typing import Any

import msgspec

from lockstep.debugger import bodies

_BLANK = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE = re.compile(rb"\r\n|\n|\r")
_STRING = 7  # the type of a frame's header


class Event(msgspec.Struct, frozen=True):
    """One event: its name ("" for none), and its data as JSON, or as text where it is none (`[DONE]`)."""

    name: str
    data: Any


def events(body: bytes) -> list[Event]:
    """The server-sent events of a body. Comments are left out."""
    found = []
    for block in _BLANK.split(body):
        data, name = [], ""
        for line in _LINE.split(block):
            field, _, value = line.partition(b":")
            if field == b"data":
                data.append(value.removeprefix(b" "))
            elif field == b"event":
                name = bodies.text(value.strip())
        if data:
            text = b"\n".join(data)
            value = bodies.json(text)
            found.append(Event(name, bodies.text(text) if value is None else value))
    return found


def written(events: Iterable[Event]) -> bytes:
    """Server-sent events as bytes."""
    pieces = []
    for event in events:
        data = event.data.encode() if isinstance(event.data, str) else msgspec.json.encode(event.data)
        name = f"event: {event.name}\n".encode() if event.name else b""
        pieces.append(name + b"data: " + data + b"\n\n")
    return b"".join(pieces)


def frames(events: Iterable[tuple[str, Any]]) -> bytes:
    """Frames of application/vnd.amazon.eventstream, each an event of that type with a JSON payload: total length,
    headers' length, their checksum, headers, payload, checksum."""
    made = []
    for name, data in events:
        head = b"".join(
            _header(*pair)
            for pair in ((":event-type", name), (":content-type", "application/json"), (":message-type", "event"))
        )
        payload = msgspec.json.encode(data)
        prelude = struct.pack(">II", 16 + len(head) + len(payload), len(head))
        frame = prelude + struct.pack(">I", zlib.crc32(prelude)) + head + payload
        made.append(frame + struct.pack(">I", zlib.crc32(frame)))
    return b"".join(made)


def _header(name: str, value: str) -> bytes:
    return struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", _STRING, len(value)) + value.encode()


def unwrapped(frames: Iterable[tuple[str, Any]]) -> list[Any]:
    """The events of an invoked model, each of which comes as base64 in a frame."""
    found = [bodies.json(bodies.from_base64(data.get("bytes"))) for _, data in frames if isinstance(data, dict)]
    return [event for event in found if event is not None]


def wrapped(events: Iterable[Any]) -> bytes:
    """The reverse."""
    return frames(
        ("chunk", {"bytes": base64.b64encode(msgspec.json.encode(event)).decode("ascii")}) for event in events
    )
