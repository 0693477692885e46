"""Reads are packed into bytes and come back as they were."""

import random
from typing import Any

import pytest

from lockstep.session import reads
from lockstep.session.reads import compare, pack, unpack

EDGES = [
    [],
    [0],
    [-1],
    [127, 128, 0, -128],
    [5, 5, 5],
    [1_795_981_240_260_289_200, 1_795_981_240_260_489_211, 1_795_981_240_260_489_210],
    [2**63 - 1, -(2**63), 2**63 - 1],
    [2**130 - 1, 0, -(2**129)],
]


@pytest.mark.parametrize("values", EDGES, ids=str)
def test_values_of_any_size_survive_packing(values: list[int]) -> None:
    assert unpack(pack(values)) == values


def test_random_values_survive_packing() -> None:
    draw = random.Random(1)
    for _ in range(500):
        bits = draw.choice([1, 8, 31, 64, 130])
        values = [draw.getrandbits(bits) * draw.choice([1, -1]) for _ in range(draw.randrange(8))]
        assert unpack(pack(values)) == values


def test_readings_of_a_busy_loop_take_two_bytes_each() -> None:
    values = [1_795_981_240_260_289_200 + 150 * n for n in range(1024)]
    assert len(pack(values)) < 2 * 1024 + 16


@pytest.mark.parametrize(
    "packed", [b"", b"\x01", b"\x08\x02\x00", b"\x00\x05\x01", b"\x01\x02\x05\x07", b"\xff\x01\x00"]
)
def test_bytes_that_pack_cannot_have_made_are_refused(packed: bytes) -> None:
    with pytest.raises(ValueError, match="packed reads"):
        unpack(packed)


def test_a_value_without_bound_is_refused() -> None:
    with pytest.raises(ValueError, match="more than 64 bytes"):
        pack([2**600])


def test_compare_names_the_first_source_that_differs() -> None:
    assert compare({"a": 1, "b": 2}, {"a": 1, "b": 2}) is None
    assert compare({"a": 1, "b": 2}, {"a": 1, "b": 3}) == ("b", 2, 3)
    assert compare({"b": 2}, {}) == ("b", 2, 0)
    assert compare({}, {"a": 1}) == ("a", 0, 1)


class Noted:
    """A session that keeps the events it is given."""

    recording = True
    resumes = False

    def __init__(self) -> None:
        self.events: list[tuple[str, str, Any]] = []
        self.faults: list[str] = []

    def position(self) -> int:
        return len(self.events) + 1

    def emit(self, kind: Any, lane: str, pos: int, what: str = "", body: Any = None, hidden: bool = False) -> None:
        self.events.append((lane, what, body))

    def fault(self, where: str, error: BaseException) -> None:
        self.faults.append(f"{where}: {error}")

    def values(self, what: str) -> list[int]:
        found: list[int] = []
        for _, source, body in self.events:
            if source == what:
                assert body["first"] == len(found)
                found += unpack(body["values"])
        return found


def test_a_full_buffer_becomes_an_event() -> None:
    session = Noted()
    lane = reads.Lane(session, "main", None, None)
    numbers = iter(range(3000))
    taken = [reads.read(lane, "counter", lambda: next(numbers)) for _ in range(3000)]
    assert taken == list(range(3000))
    assert len(session.events) == 2
    assert reads.flush(lane) == {"counter": 3000}
    assert session.values("counter") == taken
    assert reads.flush(lane) == {"counter": 3000}
    assert len(session.events) == 3


def test_another_thread_may_flush_while_values_come() -> None:
    import threading

    session = Noted()
    lane = reads.Lane(session, "main", None, None)
    done = threading.Event()

    def flush() -> None:
        while not done.is_set():
            reads.flush_all(session)

    flusher = threading.Thread(target=flush)
    flusher.start()
    taken = [reads.read(lane, "counter", lambda: len(session.events)) for _ in range(20_000)]
    done.set()
    flusher.join()
    reads.flush(lane)
    assert session.values("counter") == taken
    assert session.faults == []


def test_what_is_quiet_is_flushed_by_the_interval_once() -> None:
    session = Noted()
    lane = reads.Lane(session, "main", None, None)
    reads.read(lane, "counter", lambda: 7)
    reads.flush_all(session)
    reads.flush_all(session)
    reads.read(lane, "counter", lambda: 8)
    reads.flush_all(session)
    assert session.values("counter") == [7, 8]
    assert len(session.events) == 2


def test_soft_reads_are_stored_and_not_counted() -> None:
    session = Noted()
    lane = reads.Lane(session, "main", None, None)
    reads.soft(lane, "soft counter", lambda: 1)
    reads.count(lane, "drawn", 3)
    assert reads.flush(lane) == {"drawn": 3}
    assert session.values("soft counter") == [1]


def test_a_store_that_fails_is_a_fault_and_the_program_goes_on() -> None:
    class Broken(Noted):
        def emit(self, *_: Any, **__: Any) -> None:
            raise OSError("full")

    session = Broken()
    lane = reads.Lane(session, "main", None, None)
    assert [reads.read(lane, "counter", lambda: 1) for _ in range(2000)] == [1] * 2000
    reads.flush(lane)
    assert session.faults
    assert session.faults[0] == "reads of counter: full"


def test_a_forked_child_forgets_what_the_parent_will_write() -> None:
    session = Noted()
    lane = reads.Lane(session, "main", None, None)
    reads.read(lane, "counter", lambda: 1)
    reads.forget()
    reads.flush(lane)
    assert session.events == []
