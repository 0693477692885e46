"""What a run drew from its own entropy: the ids that no two live runs share.

Random bytes are derived from the run's seed, lane by lane (`lockstep.taps.entropy.streams`), so that an id which
turns up in a request or in what was printed can be found again in what the run drew: which lane, which draw. Two runs
whose ids are the same draw of the same lane did the same.
"""

from __future__ import annotations

import base64
import binascii
import random  # before the taps below: they ask whether anybody can have seeded it yet
import re
from collections.abc import Callable
from typing import Any

from lockstep.debugger.sides import Side
from lockstep.log.model import Kind
from lockstep.session import reads
from lockstep.taps.entropy.streams import ByteStream, derive

# A draw: lane, source and the place in it.
type Draw = tuple[str, str, int]

_BYTES = ("os.urandom", "SystemRandom", "os.getrandom")
_TEMPORARY = "tempfile"
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789_"  # of tempfile's names
_MOST = 1 << 20  # bytes looked at in one lane
_SIZE = 64  # bytes of one draw at most; longer ones are found in part
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile(r"(?:[0-9a-f]{2}){6,}", re.IGNORECASE)


class Drawn:
    """The draws of one run, found by what they look like in a text."""

    def __init__(self, side: Side) -> None:
        self._side = side
        self._streams: list[tuple[str, str, bytes]] | None = None
        self._values: dict[int, Draw] | None = None
        self._names: dict[str, Draw] = {}
        self._known: dict[str, Draw | None] = {}

    def find(self, word: str) -> Draw | None:
        """The draw that an id, token or temporary name is; None where the run did not draw it."""
        if word not in self._known:
            self._known[word] = self._find(word)
        return self._known[word]

    def _find(self, word: str) -> Draw | None:
        streams = self._drawn()
        if not streams and not self._names and not self._values:
            return None
        uuid = _UUID.fullmatch(word)
        if uuid is not None:
            return self._uuid(bytes.fromhex(word.replace("-", "")))
        if _HEX.fullmatch(word):
            found = self._bytes(bytes.fromhex(word))
            if found is not None:
                return found
        if len(word) >= 12 and (raw := _from_base64(word)) is not None:
            found = self._bytes(raw)
            if found is not None:
                return found
        name = word[-8:]  # a prefix may come before it
        return self._names.get(name)

    def _uuid(self, raw: bytes) -> Draw | None:
        assert self._values is not None
        value = self._values.get(int.from_bytes(raw))
        if value is not None:
            return value
        for lane, source, drawn in self._drawn():
            at = drawn.find(raw[:6])
            while at >= 0:
                there = bytearray(drawn[at : at + 16])
                if len(there) == 16:
                    there[6] = there[6] & 0x0F | raw[6] & 0xF0  # where its version and variant are written over
                    there[8] = there[8] & 0x3F | raw[8] & 0xC0
                    if bytes(there) == raw:
                        return lane, source, at
                at = drawn.find(raw[:6], at + 1)
        return self._bytes(raw)

    def _bytes(self, raw: bytes) -> Draw | None:
        for lane, source, drawn in self._drawn():
            at = drawn.find(raw)
            if at >= 0:
                return lane, source, at
        return None

    def _drawn(self) -> list[tuple[str, str, bytes]]:
        if self._streams is None:
            self._streams = []
            self._values = {}
            seed = self._side.meta.get("seed")
            if isinstance(seed, bytes):
                for lane, counts in self._counts().items():
                    self._lane(seed, lane, counts)
            self._read_values()
        return self._streams

    def _lane(self, seed: bytes, lane: str, counts: dict[str, int]) -> None:
        assert self._streams is not None
        for source in _BYTES:
            count = counts.get(source, 0)
            if count:
                size = min(count * _SIZE, _MOST)
                stream = ByteStream(derive(seed, lane, source))
                drawn = b"".join(stream.draw(_SIZE) for _ in range(-(-size // _SIZE)))
                self._streams.append((lane, source, drawn))
        for number in range(1, min(counts.get(_TEMPORARY, 0), _MOST >> 10) + 1):
            rng = random.Random(int.from_bytes(derive(seed, lane, _TEMPORARY, str(number))))
            self._names["".join(rng.choices(_LETTERS, k=8))] = (lane, _TEMPORARY, number)

    def _counts(self) -> dict[str, dict[str, int]]:
        """How often each lane drew from each source: as said at the end, or, where the run was cut, as of the last
        call of each lane."""
        found: dict[str, dict[str, int]] = {}
        for stream in range(len(self._side.streams)):
            said = self._side.finish(stream).get("reads")
            if isinstance(said, dict):
                found.update({lane: counts for lane, counts in said.items() if isinstance(counts, dict)})
        for name, lane in self._side.lanes.items():
            last = next((call for call in reversed(lane.calls) if call.kind != "step"), None)
            if name not in found and last is not None:
                body: Any = self._side.body(last.stream, last.seq)
                counts = body.get("reads") if isinstance(body, dict) else None
                if isinstance(counts, dict):
                    found[name] = counts
        return found

    def _read_values(self) -> None:
        """UUIDs that are recorded as they came: those made from the clock, or outside of Python."""
        assert self._values is not None
        for stream, seq, event in self._side.heads(Kind.READS):
            source = event.what
            if source.startswith(("uuid.", "uuid_utils.")):
                made: Callable[[int], int] = _standard if source.startswith("uuid.") else int
                body: Any = self._side.body(stream, seq)
                try:
                    values = reads.unpack(body["values"])
                except (KeyError, TypeError, ValueError):
                    continue  # damaged: `verify` says so
                for index, value in enumerate(values, int(body.get("first", 0))):
                    self._values[made(value)] = (event.lane, source, index)


def _standard(value: int) -> int:
    return value >> 2  # two bits say how safe its making was


def _from_base64(word: str) -> bytes | None:
    try:
        raw = base64.urlsafe_b64decode(word + "=" * (-len(word) % 4))
    except (binascii.Error, ValueError):
        return None
    return raw if len(raw) >= 9 else None
