"""Reading a run: each question reads the rows it needs, by key, and nothing else.

Rows are found by the number of an event or blob (binary search by key), so opening, listing and seeking
take the same time however long the run is. While a writer folds small rows into large ones the answers
stay the same: numbers of events and blobs never change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from lockstep.errors import AddressError, Code, StoreError
from lockstep.log import chain, untapped
from lockstep.log.model import BranchInfo, Event, Kind, RunInfo, RunState, StreamInfo, Value
from lockstep.log.seal import Seal
from lockstep.log.sqlite import rows, schema
from lockstep.log.store import ROOT, Row, RunReader, StreamEnd, Unreadable
from lockstep.log.unpack import Coder, Expander, damaged

# One question, all its rows, whose columns have the types of the shape (see `connection.query`).
type Ask = Callable[[str, Sequence[Any], str], list[Any]]

# Reads another branch of the run, by its name.
type Others = Callable[[str], RunReader]

_CACHE_BYTES = 16 << 20
_AT_ONCE = 16  # rows a listing reads in one transaction


class SqliteRun:
    """One run of a store. See `lockstep.log.store.RunReader`."""

    def __init__(
        self, ask: Ask, info: RunInfo, started: int, meta: bytes, others: Others, leaf: int = rows.MOST_LEAF
    ) -> None:
        """`others` reads another branch; `leaf`: bytes of one long text, at most."""
        self.info = info
        self.on = others
        self.streams: tuple[StreamInfo, ...] = info.streams
        self._ask = ask
        self._started = started
        self._leaf = leaf
        self._meta = meta
        self._sources: dict[int, _Stream] = {}
        self._within: _Within | None = None

    @property
    def stored(self) -> SqliteRun:
        return self

    @property
    def branch(self) -> str:
        return self.info.branch

    @property
    def branches(self) -> tuple[BranchInfo, ...]:
        return self.info.branches

    @property
    def main(self) -> int:
        return next((one.id for one in reversed(self.streams) if one.process == ROOT), 0)

    @property
    def own(self) -> tuple[StreamInfo, ...]:
        return self.streams

    @property
    def fork(self) -> Event | None:
        return None

    @property
    def meta(self) -> Value:
        return Expander(Nothing()).expand(self._meta)

    def heads(self, stream: int, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, Event]]:
        seq, at_once = start, 2  # who asks for a single event needs no more
        last = schema.last_key(stream)
        if stop is not None:
            last = min(last, schema.first_key(stream) + stop - 1)
        while stop is None or seq < stop:
            found = self._ask(
                "SELECT id, count, cols FROM segment WHERE id BETWEEN"
                " coalesce((SELECT max(id) FROM segment WHERE id BETWEEN ? AND ?), ?) AND ? ORDER BY id LIMIT ?",
                (
                    schema.first_key(stream),
                    schema.first_key(stream) | seq,
                    schema.first_key(stream),
                    last,
                    at_once,
                ),
                "iib",
            )
            before, at_once = seq, _AT_ONCE
            for key, count, cols in found:
                first = schema.number(key)
                events = rows.events(cols)
                if len(events) != count or first > seq:
                    raise damaged(f"events are missing before number {first} of stream {stream} in {self.info.name}")
                if first + count <= seq:
                    continue
                until = count if stop is None else min(count, stop - first)
                yield from enumerate(events[seq - first : until], seq)
                seq = first + until
                if until < count:
                    return
            if seq == before:
                return

    def events(self, stream: int, start: int = 0, stop: int | None = None) -> Iterator[Event]:
        source = self._source(stream)
        for seq, head in self.heads(stream, start, stop):
            value = source.value(seq)
            yield head if value is None else msgspec.structs.replace(head, body=value)

    def body(self, stream: int, seq: int) -> Value:
        return self._source(stream).value(seq)

    def field(self, stream: int, seq: int, name: str) -> Value:
        return self._source(stream).value(seq, name)

    def rows(self, stream: int) -> Iterator[Row | Unreadable]:
        after = schema.first_key(stream) - 1
        while True:
            try:
                found = self._ask(
                    "SELECT id, count, steps, size, late, blob, head, cols, body FROM segment"
                    " WHERE id > ? AND id <= ? ORDER BY id LIMIT 1",
                    (after, schema.last_key(stream)),
                    "iiiiiibbb",
                )
            except StoreError as error:
                # Where it lies is known if its key can be read; from there on the next row is looked for.
                key = self._next_key(stream, after)
                if key is None:
                    raise
                yield Unreadable(schema.number(key), 0, error)
                after = key
                continue
            if not found:
                return
            key, count, steps, size, late, blob, head, cols, body = found[0]
            after = key
            first = schema.number(key)
            try:
                bodies, blobs = rows.body(body)
                events = rows.events(cols)
                stored = len(cols) + len(body)
                yield Row(
                    first, count, steps, size, late, blob, head, stored, tuple(events), tuple(bodies), tuple(blobs)
                )
            except StoreError as error:
                yield Unreadable(first, count, error)

    def _next_key(self, stream: int, after: int) -> int | None:
        found = self._ask(
            "SELECT id FROM segment WHERE id > ? AND id <= ? ORDER BY id LIMIT 1",
            (after, schema.last_key(stream)),
            "i",
        )
        return found[0][0] if found else None

    def end(self, stream: int) -> StreamEnd:
        found = self._ask(
            "SELECT base, state, events, steps, size, faults, head FROM stream WHERE id=?", (stream,), "biiiiib"
        )
        if not found:
            raise AddressError(Code.NO_ADDRESS, f"run {self.info.name} has no stream {stream}")
        base, number, events, steps, size, faults, head = found[0]
        sealed = self._ask("SELECT key, events, mac FROM seal WHERE stream=?", (stream,), "tib")
        return StreamEnd(
            base, STATES.get(number, RunState.GROWING), number, events, steps, size, faults, head,
            Seal(*sealed[0]) if sealed else None,
        )  # fmt: skip

    def blob(self, stream: int, number: int) -> bytes:
        return self._source(stream).blob(number)

    def big(self, stream: int, number: int) -> bytes:
        return self._source(stream).big(number)

    def leaves(self, stream: int) -> int:
        keys = (schema.first_key(stream), schema.last_key(stream))
        [(total,)] = self._ask("SELECT coalesce(sum(length(data)), 0) FROM big WHERE id BETWEEN ? AND ?", keys, "i")
        return int(total)

    def head(self, stream: int, count: int) -> bytes:
        found = self._ask(
            "SELECT id, count, head FROM segment WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 2",
            (schema.first_key(stream), schema.first_key(stream) | max(0, count - 1)),
            "iib",
        )
        if not count:
            return self.end(stream).base
        if not found or schema.number(found[0][0]) + found[0][1] < count:
            raise damaged(f"stream {stream} of {self.info.name} has no {count} events")
        key, events, head = found[0]
        if schema.number(key) + events == count:
            return bytes(head)
        # Many branches may leave from one row, which is long: each goes on from where the one before left.
        within = self._within
        if within is None or within.key != key or within.seq > count:
            before = bytes(found[1][2]) if len(found) > 1 else self.end(stream).base
            within = self._within = _Within(self._ask, key, before, Coder(self._source(stream)))
        return within.head_at(count)

    def steps_before(self, stream: int, count: int) -> int:
        """How many checkpoints of a native run are among the first `count` events of a stream."""
        found = self._ask(
            "SELECT id, count, steps FROM segment WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1",
            (schema.first_key(stream), schema.first_key(stream) | max(0, count - 1)),
            "iii",
        )
        if not found:
            return 0
        key, events, steps = found[0]
        later = self.heads(stream, count, schema.number(key) + events)
        return int(steps) - sum(event.kind is Kind.STEP for _, event in later)

    def find_step(self, stream: int, step: int) -> tuple[int, int] | None:
        last = self._ask(
            "SELECT late FROM segment WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1",
            (schema.first_key(stream), schema.last_key(stream)),
            "i",
        )
        if last and last[0][0]:
            return None
        return self._source(stream).seek_step(step) if step > 0 else (0, 0)

    def header(self) -> tuple[int, bytes]:
        return self._started, self._meta

    def check_file(self) -> list[str]:
        return [str(line) for (line,) in self._ask("PRAGMA quick_check", (), "t") if line != "ok"]

    def _source(self, stream: int) -> _Stream:
        source = self._sources.get(stream)
        if source is None:
            source = self._sources.setdefault(stream, _Stream(self._ask, self.info.name, stream, self._leaf))
        return source


STATES = {number: RunState(name) for name, number in schema.STATES.items()}


class _Within:
    """A chain inside of a row, whose stored head is that of its end."""

    def __init__(self, ask: Ask, key: int, head: bytes, coder: Coder) -> None:
        found = ask("SELECT cols, body FROM segment WHERE id=?", (key,), "bb")
        if not found:
            raise damaged("a row went away while it was read")
        [(cols, body)] = found
        self.key = key
        self.seq = self._first = schema.number(key)
        self._head = head
        self._coder = coder
        self._events, (self._bodies, _) = rows.events(cols), rows.body(body)

    def head_at(self, count: int) -> bytes:
        while self.seq < count:
            index = self.seq - self._first
            if index >= min(len(self._events), len(self._bodies)):
                raise damaged(f"a row has no event {self.seq}")
            packed = self._bodies[index]
            code = self._coder.code(packed) if packed else b""
            self._head = chain.link(self._head, self.seq, self._events[index], code)
            self.seq += 1
        return self._head


class Nothing:
    """The source of values that share nothing."""

    def blob(self, number: int) -> bytes:
        raise damaged(f"blob {number} is missing")

    def big(self, number: int) -> bytes:
        raise damaged(f"leaf {number} is missing")


def _whole_or(field: str | None, packed: bytes, expander: Expander) -> Value:
    return expander.expand(packed) if field is None else expander.field(packed, field)


class _Stream:
    """Bodies and blobs of one stream, with the rows read last."""

    def __init__(self, ask: Ask, run: str, stream: int, leaf: int) -> None:
        self._ask = ask
        self._leaf = leaf
        self._run = run
        self._stream = stream
        self._lock = untapped.RLock()
        self._expander = Expander(self)
        self._expanding = untapped.allocate_lock()  # the expander is for one at a time
        self._bodies: dict[int, bytes] = {}
        self._blobs: dict[int, bytes] = {}
        self._held = 0

    def value(self, seq: int, field: str | None = None) -> Value:
        with self._lock:
            packed = self._bodies.get(seq)
            if packed is None:
                self._load(self._row_key(seq))
                packed = self._bodies.get(seq)
                if packed is None:
                    raise damaged(f"event {seq} of stream {self._stream} in {self._run} has no body")
        if not packed:
            return None
        # Not under the lock: a value that nests deep is expanded in a thread of its own, which asks for blobs.
        if self._expanding.acquire(blocking=False):
            try:
                return _whole_or(field, packed, self._expander)
            finally:
                self._expanding.release()
        return _whole_or(field, packed, Expander(self))

    def blob(self, number: int) -> bytes:
        with self._lock:
            blob = self._blobs.get(number)
            if blob is None:
                self._load(self._row_key(self._seek_blob(number)))
                blob = self._blobs.get(number)
                if blob is None:
                    raise damaged(f"blob {number} of stream {self._stream} in {self._run} is missing")
            return blob

    def big(self, number: int) -> bytes:
        found = self._ask("SELECT data FROM big WHERE id=?", (schema.first_key(self._stream) | number,), "b")
        if not found:
            raise damaged(f"leaf {number} of stream {self._stream} in {self._run} is missing")
        return rows.expand_leaf(found[0][0], self._leaf)

    def seek_step(self, step: int) -> tuple[int, int]:
        """Number of the first event of the row in which step `step` closes, and the steps closed before it."""
        before = (0, 0)

        def reached(first: int, count: int, steps: int) -> bool:
            nonlocal before
            if steps >= step:
                return False
            before = first + count, steps
            return True

        self._search("steps", reached)
        return before

    def _seek_blob(self, number: int) -> int:
        """Number of the first event of the row that holds blob `number`."""
        found = 0

        def reached(first: int, _: int, blob: int) -> bool:
            nonlocal found
            if blob > number:
                return False
            found = first
            return True

        self._search("blob", reached)
        return found

    def _search(self, column: str, reached: Callable[[int, int, int], bool]) -> None:
        """Binary search over rows by a rising column: `reached` is told first, count and value of a row, and says
        whether what is looked for is in a later one."""
        low, high = 0, self._count()
        while low < high:
            middle = (low + high) // 2
            found = self._ask(
                f"SELECT id, count, {column} FROM segment WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1",
                (schema.first_key(self._stream), schema.first_key(self._stream) | middle),
                "iii",
            )
            if not found:
                raise damaged(f"events are missing before number {middle} of stream {self._stream} in {self._run}")
            key, count, value = found[0]
            first = schema.number(key)
            if reached(first, count, value):
                low = max(first + count, middle + 1)
            else:
                high = first

    def _count(self) -> int:
        found = self._ask(
            "SELECT id, count FROM segment WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1",
            (schema.first_key(self._stream), schema.last_key(self._stream)),
            "ii",
        )
        return schema.number(found[0][0]) + found[0][1] if found else 0

    def _row_key(self, seq: int) -> int:
        found = self._ask(
            "SELECT id, count FROM segment WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1",
            (schema.first_key(self._stream), schema.first_key(self._stream) | seq),
            "ii",
        )
        if not found or schema.number(found[0][0]) + found[0][1] <= seq:
            raise AddressError(Code.NO_ADDRESS, f"run {self._run} has no event {seq} in stream {self._stream}")
        key: int = found[0][0]
        return key

    def _load(self, key: int) -> None:
        found = self._ask("SELECT blob, body FROM segment WHERE id=?", (key,), "ib")
        if not found:
            # Folded between two questions: the row that now holds these events begins earlier.
            key = self._row_key(schema.number(key))
            found = self._ask("SELECT blob, body FROM segment WHERE id=?", (key,), "ib")
        first_blob, body = found[0]
        bodies, blobs = rows.body(body)
        size = sum(map(len, bodies)) + sum(map(len, blobs))
        if self._held + size > _CACHE_BYTES:
            self._bodies.clear()
            self._blobs.clear()
            self._held = 0
        self._held += size
        self._bodies.update(enumerate(bodies, schema.number(key)))
        self._blobs.update(enumerate(blobs, first_blob))
