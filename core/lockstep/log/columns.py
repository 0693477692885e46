"""Events without their bodies, in columns: what listing and matching read, and what the chain links.

A row of the store holds a run of events of one stream. Each field is a column of its own, differences
where a field counts up, so that a burst of stream chunks or wakes costs a few bytes an event. Texts
(lanes, names) are numbered inside the row: a row can be read alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec

from lockstep.errors import Code, StoreError
from lockstep.log.model import Event, Kind, Status

# More than any writer puts into a row: nothing is reserved for what only claims to be longer.
_MOST = msgspec.Meta(max_length=1 << 16)

type _Numbers = Annotated[list[int], _MOST]


class _Columns(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    kinds: bytes
    pos: _Numbers  # difference to the event before
    at: _Numbers  # difference to the event before
    lane: _Numbers  # index into texts, like what and name
    what: _Numbers
    name: _Numbers
    of: Annotated[list[int | None], _MOST]  # pos - of; None is 0
    tick: Annotated[list[int | None], _MOST]  # difference to the last tick of the row; None is -1
    keys: bytes  # joined
    sizes: bytes | _Numbers  # the keys' sizes; bytes where all are below 256
    texts: Annotated[list[str], msgspec.Meta(max_length=1 << 18)]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Columns).decode
_KINDS = {int(kind): kind for kind in Kind}


def encode(events: Sequence[Event]) -> bytes:
    """The columns of events. Raises UnicodeEncodeError for texts with lone surrogates (see `legible`)."""
    texts: dict[str, int] = {}
    index = texts.setdefault
    lanes: list[int] = []
    whats: list[int] = []
    names: list[int] = []
    poses: list[int] = []
    ats: list[int] = []
    ofs: list[int | None] = []
    ticks: list[int | None] = []
    keys: list[bytes] = []
    sizes: list[int] = []
    pos = at = tick = 0
    for event in events:
        lanes.append(index(event.lane, len(texts)))
        whats.append(index(event.what, len(texts)))
        names.append(index(event.name, len(texts)))
        poses.append(event.pos - pos)
        ats.append(event.at - at)
        pos, at = event.pos, event.at
        ofs.append(pos - event.of if event.of else None)
        if event.tick == -1:
            ticks.append(None)
        else:
            ticks.append(event.tick - tick)
            tick = event.tick
        keys.append(event.key)
        sizes.append(len(event.key))
    small = bytes(sizes) if max(sizes, default=0) < 256 else sizes
    kinds = bytes([event.kind for event in events])
    return _encode(_Columns(kinds, poses, ats, lanes, whats, names, ofs, ticks, b"".join(keys), small, list(texts)))


def decode(data: bytes) -> list[Event]:
    """The events, with `body` None. Raises StoreError LS202."""
    try:
        columns = _decode(data)
        return _rows(columns)
    except (msgspec.DecodeError, msgspec.ValidationError, LookupError, ValueError) as error:
        raise StoreError(Code.DAMAGED, f"stored event columns do not decode: {error}") from error


def _rows(columns: _Columns) -> list[Event]:
    texts = columns.texts
    events = []
    pos = at = tick = start = 0
    rows = zip(
        columns.kinds,
        columns.pos,
        columns.at,
        columns.lane,
        columns.what,
        columns.name,
        columns.of,
        columns.tick,
        columns.sizes,
        strict=True,
    )
    for kind, step, delta, lane, what, name, of, wake, size in rows:
        pos += step
        at += delta
        if wake is not None:
            tick += wake
        key = columns.keys[start : start + size] if size else b""
        start += size
        events.append(
            Event(
                _KINDS[kind],
                pos,
                at,
                texts[lane],
                texts[what],
                texts[name],
                0 if of is None else pos - of,
                -1 if wake is None else tick,
                key,
            )
        )
    if start != len(columns.keys):
        raise ValueError("match keys are left over")
    return events


def sound(event: Event) -> bool:
    """Whether the fields have their types: one wrong field would make its whole row unreadable."""
    return (
        type(event.lane) is str
        and type(event.name) is str
        and (type(event.what) is str or type(event.what) is Status)
        and type(event.pos) is int
        and type(event.at) is int
        and type(event.of) is int
        and type(event.tick) is int
        and type(event.key) is bytes
    )


def legible(event: Event) -> Event:
    """The event with its fields such that they can be stored: lone surrogates are escaped."""
    lane, what, name = (
        str(text).encode("utf-8", "backslashreplace").decode() for text in (event.lane, event.what, event.name)
    )
    return Event(
        event.kind,
        int(event.pos),
        int(event.at),
        lane,
        what,
        name,
        int(event.of or 0),
        int(-1 if event.tick is None else event.tick),
        bytes(event.key),
        event.body,
    )
