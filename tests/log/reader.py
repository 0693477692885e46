"""Reads a tape by what docs/format.md says and nothing else: as somebody would in another language.

It shares no code with Lockstep, msgpack included. SQLite and Zstandard are what the page says they are.
"""

import sqlite3
import struct
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import zstandard


def hash_of(person: bytes, data: bytes, size: int = 32, key: bytes = b"") -> bytes:
    return blake2b(data, digest_size=size, person=person, key=key).digest()


# msgpack


@dataclass(frozen=True)
class Extension:
    code: int
    data: bytes


class Decoder:
    """One value of msgpack after the other."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        taken = self.data[self.at : self.at + count]
        assert len(taken) == count
        self.at += count
        return taken

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "big")

    def array(self, count: int) -> list[Any]:
        return [self.value() for _ in range(count)]

    def map(self, count: int) -> dict[str, Any]:
        found = [(self.value(), self.value()) for _ in range(count)]
        assert len(dict(found)) == count
        return dict(found)

    def extension(self, count: int) -> Extension:
        code = self.number(1)
        return Extension(code, self.take(count))

    def value(self) -> Any:
        head = self.number(1)
        if head < 0x80:
            return head
        if head < 0x90:
            return self.map(head & 15)
        if head < 0xA0:
            return self.array(head & 15)
        if head < 0xC0:
            return self.take(head & 31).decode()
        if head >= 0xE0:
            return head - 256
        if head in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[head]
        if head in (0xC4, 0xC5, 0xC6):
            return self.take(self.number(1 << head - 0xC4))
        if head in (0xC7, 0xC8, 0xC9):
            return self.extension(self.number(1 << head - 0xC7))
        if head == 0xCB:
            return struct.unpack(">d", self.take(8))[0]
        if head in (0xCC, 0xCD, 0xCE, 0xCF):
            return self.number(1 << head - 0xCC)
        if head in (0xD0, 0xD1, 0xD2, 0xD3):
            return int.from_bytes(self.take(1 << head - 0xD0), "big", signed=True)
        if head in (0xD4, 0xD5, 0xD6, 0xD7, 0xD8):
            return self.extension(1 << head - 0xD4)
        if head in (0xD9, 0xDA, 0xDB):
            return self.take(self.number(1 << head - 0xD9)).decode()
        if head in (0xDC, 0xDD):
            return self.array(self.number(2 << head - 0xDC))
        assert head in (0xDE, 0xDF), hex(head)
        return self.map(self.number(2 << head - 0xDE))


def decode(data: bytes) -> Any:
    decoder = Decoder(data)
    value = decoder.value()
    assert decoder.at == len(data)
    return value


def sized(size: int, small: int, room: int, heads: bytes, first: int) -> bytes:
    """The head of something that has a size: in the shortest of the forms that it has."""
    if size < room:
        return bytes((small | size,))
    for power, head in enumerate(heads, first):
        if size < 1 << (8 << power):
            return bytes((head,)) + size.to_bytes(1 << power, "big")
    raise AssertionError(size)


def encode(value: Any) -> bytes:
    """Shortest form, maps in their own order."""
    match value:
        case None:
            return b"\xc0"
        case bool():
            return b"\xc3" if value else b"\xc2"
        case int() if value >= 0:
            return sized(value, 0, 128, b"\xcc\xcd\xce\xcf", 0)
        case int():
            if value >= -32:
                return struct.pack("b", value)
            width = next(width for width in (1, 2, 4, 8) if value >= -(1 << 8 * width - 1))
            return bytes((0xD0 + width.bit_length() - 1,)) + value.to_bytes(width, "big", signed=True)
        case float():
            return b"\xcb" + struct.pack(">d", value)
        case str():
            return sized(len(value.encode()), 0xA0, 32, b"\xd9\xda\xdb", 0) + value.encode()
        case bytes():
            return sized(len(value), 0, 0, b"\xc4\xc5\xc6", 0) + value
        case list() | tuple():
            return sized(len(value), 0x90, 16, b"\xdc\xdd", 1) + b"".join(map(encode, value))
        case dict():
            head = sized(len(value), 0x80, 16, b"\xde\xdf", 1)
            return head + b"".join(encode(name) + encode(item) for name, item in value.items())
        case Extension():
            size = len(value.data)
            fixed = {1: b"\xd4", 2: b"\xd5", 4: b"\xd6", 8: b"\xd7", 16: b"\xd8"}.get(size)
            return (fixed or sized(size, 0, 0, b"\xc7\xc8\xc9", 0)) + bytes((value.code,)) + value.data
    raise TypeError(type(value))


# Values and their codes


@dataclass(frozen=True)
class JsonText:
    """Bytes that are the text of a value, made by a known formatter."""

    formatter: int
    tree: Any


REF, CAT, JSON, BIG_TEXT, BIG_BYTES = range(32, 37)


def expand(value: Any, blobs: list[bytes], leaves: dict[int, bytes]) -> Any:
    """The value that was packed. Extensions of the canonical form stay: they are their own codes."""
    match value:
        case list():
            return [expand(item, blobs, leaves) for item in value]
        case dict():
            return {name: expand(item, blobs, leaves) for name, item in value.items()}
        case Extension(code=code, data=data) if code == REF:
            return expand(decode(blobs[int.from_bytes(data, "big")]), blobs, leaves)
        case Extension(code=code, data=data) if code == CAT:
            return [item for n in decode(data) for item in expand(decode(blobs[n]), blobs, leaves)]
        case Extension(code=code, data=data) if code == JSON:
            return JsonText(data[0], expand(decode(data[1:]), blobs, leaves))
        case Extension(code=code, data=data) if code == BIG_TEXT:
            return leaves[int.from_bytes(data, "big")].decode()
        case Extension(code=code, data=data) if code == BIG_BYTES:
            return leaves[int.from_bytes(data, "big")]
    return value


def has_json(value: Any) -> bool:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return isinstance(value, JsonText) or any(map(has_json, items))


def code(value: Any) -> bytes:
    if isinstance(value, JsonText):
        return b"\xc7\x20\x13" + hash_of(b"lockstep.json", bytes((value.formatter,)) + code(value.tree))
    encoded = b"" if has_json(value) else encode(value)
    large = not encoded or len(encoded) >= 512
    if isinstance(value, list) and large:
        return b"\xc7\x20\x11" + hash_of(b"lockstep.list", b"".join(map(code, value)))
    if isinstance(value, dict) and large:
        parts = b"".join(encode(name) + code(item) for name, item in value.items())
        return b"\xc7\x20\x12" + hash_of(b"lockstep.map", parts)
    return encoded if len(encoded) <= 40 else b"\xc7\x20\x10" + hash_of(b"lockstep.leaf", encoded)


# The tape


def payload(data: bytes) -> bytes:
    if data[:4] == b"\x28\xb5\x2f\xfd":
        return zstandard.ZstdDecompressor().decompress(data)
    return data


def leaf(data: bytes) -> bytes:
    return data[1:] if data[:1] == b"=" else payload(data[1:])


def columns(data: bytes) -> list[list[Any]]:
    """The events of a row: kind, pos, at, lane, what, name, of, tick, key."""
    kinds, poses, ats, lanes, whats, names, ofs, ticks, keys, sizes, texts = decode(payload(data))
    found: list[list[Any]] = []
    pos = at = tick = start = 0
    for index, kind in enumerate(kinds):
        pos, at = pos + poses[index], at + ats[index]
        if ticks[index] is not None:
            tick += ticks[index]
        key = keys[start : start + sizes[index]]
        start += sizes[index]
        found.append([
            kind, pos, at, texts[lanes[index]], texts[whats[index]], texts[names[index]],
            0 if ofs[index] is None else pos - ofs[index], -1 if ticks[index] is None else tick, key,
        ])  # fmt: skip
    return found


@dataclass
class Stream:
    process: str
    head: bytes
    events: list[list[Any]]
    bodies: list[Any]
    sealed: bool | None  # None: it has no seal, or there is no key
    branch: int = 0
    heads: list[bytes] = field(default_factory=list)  # after each event


@dataclass
class Branch:
    id: int
    name: str
    parent: int
    pos: int
    seq: int
    steps: int
    head: bytes
    flying: bytes


def read(path: Path, key: bytes = b"") -> list[Stream]:
    """All streams of a tape, after checking every head and, with a key, every seal."""
    return read_all(path, key)[1]


def read_all(path: Path, key: bytes = b"") -> tuple[list[Branch], list[Stream]]:
    """The same, with the branches, of which it checks that each begins from what it shares."""
    connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
    assert connection.execute("PRAGMA application_id").fetchone() == (0x4C535470,)
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    [(started, meta)] = connection.execute("SELECT started, meta FROM run").fetchall()
    columns = "id, name, parent, pos, seq, steps, head, flying"
    branches = [Branch(*row) for row in connection.execute(f"SELECT {columns} FROM branch ORDER BY id")]
    found: list[Stream] = []
    for number, branch, process, base, state, events, faults, head in connection.execute(
        "SELECT id, branch, process, base, state, events, faults, head FROM stream ORDER BY id"
    ).fetchall():
        own = next(one for one in branches if one.id == branch)
        if own.parent:
            above = next(one for one in branches if one.id == own.parent)
            shared = main(found, above)
            assert shared.heads[own.seq - above.seq - 1] == own.head
            bound = encode((started, meta, process, own.name, own.pos, own.seq, own.head))
            assert base == hash_of(b"lockstep.branch", bound)
        else:
            assert base == hash_of(b"lockstep.base", encode((started, meta, process)))
        stream = _stream(connection, number, process, base)
        stream.branch = branch
        if state:
            assert (len(stream.events), stream.head) == (events, head)
        seal = connection.execute("SELECT key, events, mac FROM seal WHERE stream=?", (number,)).fetchone()
        if seal is not None and key:
            stream.sealed = _sealed(seal, key, base, state, faults, stream)
        found.append(stream)
    connection.close()
    return branches, found


def main(streams: list[Stream], branch: Branch) -> Stream:
    return [stream for stream in streams if stream.branch == branch.id and stream.process == "main"][-1]


KIND, POS, LANE, OF = 0, 1, 3, 6
BEGIN, PART, END, OUTPUT, STEP = 3, 4, 5, 9, 10


def states(events: list[list[Any]], bodies: list[Any]) -> dict[int, dict[str, Any]]:
    """The states of a native run, by the positions of their checkpoints."""
    found: dict[int, dict[str, Any]] = {0: {}}
    for event, record in zip(events, bodies, strict=True):
        if event[KIND] != STEP:
            continue
        state = {} if record.get("whole") else dict(found[event[OF]])
        for name, change in record["channels"].items():
            state[name] = change["value"] if "value" in change else state[name][: change["keep"]] + change["items"]
        for name in record.get("gone", []):
            del state[name]
        found[event[POS]] = state
    return found


def events_of(branches: list[Branch], streams: list[Stream], branch: Branch) -> list[tuple[int, list[Any]]]:
    """The main stream of a branch as a reader sees it: numbers and events."""
    own = [(branch.seq + number, event) for number, event in enumerate(main(streams, branch).events)]
    if not branch.parent:
        return own
    above = next(one for one in branches if one.id == branch.parent)
    shared = [
        (seq, event)
        for seq, event in events_of(branches, streams, above)
        if seq < branch.seq and event[POS] <= branch.pos
    ]
    flying = {pos: begun for pos, _, _, begun in decode(branch.flying)} if branch.flying else {}
    nested: set[int] = set()
    kept = []
    for seq, event in shared:
        kind, of = event[KIND], event[OF]
        if kind == BEGIN and (of in flying or of in nested):
            nested.add(event[POS])
        elif kind == OUTPUT and not flying.get(of, True):
            pass
        elif not (kind in (PART, END, OUTPUT) and of in nested):
            kept.append((seq, event))
    return kept + own


def _stream(connection: sqlite3.Connection, number: int, process: str, base: bytes) -> Stream:
    keys = (number << 40, (number + 1) << 40)
    big = connection.execute("SELECT id, data FROM big WHERE id >= ? AND id < ?", keys)
    leaves = {key - keys[0]: leaf(data) for key, data in big}
    blobs: list[bytes] = []
    stream = Stream(process, base, [], [], None)
    rows = connection.execute(
        "SELECT id, count, blob, head, cols, body FROM segment WHERE id >= ? AND id < ? ORDER BY id", keys
    )
    for key, count, blob, head, cols, body in rows:
        assert (key - keys[0], blob) == (len(stream.events), len(blobs))
        events = columns(cols)
        bodies, more = decode(payload(body))
        assert len(events) == len(bodies) == count
        blobs += more
        for event, packed in zip(events, bodies, strict=True):
            value = expand(decode(packed), blobs, leaves) if packed else None
            record = encode([len(stream.events), *event]) + (code(value) if packed else b"")
            stream.head = hash_of(b"lockstep.event", stream.head + record)
            stream.events.append(event)
            stream.heads.append(stream.head)
            stream.bodies.append(value)
        assert stream.head == head
    return stream


def _sealed(seal: tuple[str, int, bytes], key: bytes, base: bytes, state: int, faults: int, stream: Stream) -> bool:
    name, events, mac = seal
    secret = hash_of(b"lockstep.secret", key)
    assert name == hash_of(b"lockstep.keyid", secret, 8).hex()
    record = encode([base, state, events, faults, stream.head])
    return events == len(stream.events) and mac == hash_of(b"lockstep.seal", record, key=secret)
