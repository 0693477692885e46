"""Canonical bytes, match keys and digests."""

import enum
import random
import threading
import uuid
from typing import Any

import log_values
import pytest

from lockstep.errors import Code, StoreError
from lockstep.log import canonical


class Colour(enum.StrEnum):
    RED = "red"


class Text(str):
    __slots__ = ()


def test_a_key_ignores_the_order_of_maps_and_nothing_else() -> None:
    base = canonical.key("tool", "f", {"a": 1, "b": [1, 2]})
    assert base == canonical.key("tool", "f", {"b": [1, 2], "a": 1})
    others = [
        canonical.key("http", "f", {"a": 1, "b": [1, 2]}),
        canonical.key("tool", "g", {"a": 1, "b": [1, 2]}),
        canonical.key("tool", "f", {"a": 1, "b": [2, 1]}),
        canonical.key("tool", "f", {"a": 1.0, "b": [1, 2]}),
        canonical.key("tool", "f", {"a": True, "b": [1, 2]}),
        canonical.key("tool", "f", {"a": "1", "b": [1, 2]}),
        canonical.key("tool", "f", {"a": b"1", "b": [1, 2]}),
    ]
    assert len({base, *others}) == 8
    assert len(base) == 16


@pytest.mark.parametrize("make", [canonical.canonical, canonical.digest])
def test_values_that_differ_in_one_bit_differ(make: Any) -> None:
    values = [*log_values.INTEGERS, *log_values.FLOATS, *log_values.TEXTS, *log_values.BYTES, None, True, False, [], {}]
    made = {make(value) for value in values}
    assert len(made) == len(values)
    assert len({make({"in": [value]}) for value in values}) == len(values)


def test_the_same_value_made_twice_is_the_same() -> None:
    for seed in range(150):
        one, two = log_values.value(random.Random(seed)), log_values.value(random.Random(seed))
        assert canonical.canonical(one) == canonical.canonical(two)
        assert canonical.digest(one) == canonical.digest(two)


def test_a_digest_ignores_the_order_of_maps_however_large_and_odd() -> None:
    items = [(f"k{n}", {"text": "x" * n, "n": 2**70 + n}) for n in range(100)] + [("\ud800", 1), ("\udfff", 2)]
    one, two = dict(items), dict(reversed(items))
    assert canonical.digest(one) == canonical.digest(two)
    assert canonical.canonical(one) == canonical.canonical(two)


def test_known_vectors_stay_what_they_are() -> None:
    # Stored keys and digests are compared with ones computed later: the definition must not drift.
    value: Any = {"b": [1, -0.0, "é"], "a": {"x": b"\x00", "n": 2**80}, "long": ["item " * 20] * 12}
    assert canonical.key("model", "gpt-4o", value).hex() == "902da20dd3a700364ea5aedc56ebc9d4"
    assert canonical.digest(value).hex() == "f2421d7fd981f98819a29a961a7bac86bf12a7afeec1f29c402c528805e32ab4"
    assert canonical.digest(None).hex() == "298883e4e55a341ce8a7518cbd1aeb64a48cb429ac31885ec650da5c674d766b"


def test_subclasses_and_buffers_become_plain() -> None:
    plain = canonical.key("tool", "f", {"a": "red", "b": b"x", "c": [1]})
    assert canonical.key("tool", "f", {Text("a"): Colour.RED, "b": memoryview(b"x"), "c": (1,)}) == plain
    number = enum.IntEnum("Number", "ONE").ONE
    assert canonical.key("tool", "f", {"a": Text("red"), "b": bytearray(b"x"), "c": [number]}) == plain


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"a": [1, {"b": uuid.UUID(int=0)}]}, "a[1].b"),
        ({"a": {1, 2}}, "at a"),
        ({"a": {3: 4}}, "at a"),
        ([object()], "[0]"),
        (uuid.UUID(int=0), "the top"),
    ],
)
def test_what_cannot_be_stored_is_named_with_its_path(value: Any, where: str) -> None:
    for make in (canonical.canonical, canonical.digest, lambda v: canonical.key("tool", "f", v)):
        with pytest.raises(StoreError, match="LS207") as caught:
            make(value)
        assert where in str(caught.value)
        assert caught.value.code is Code.UNSTORABLE


def test_depth_is_bounded_and_the_bound_is_safe_in_a_small_stack() -> None:
    canonical.digest(log_values.deep(canonical.MAX_DEPTH - 1))
    found: list[BaseException | None] = []

    def make() -> None:
        for levels in (canonical.MAX_DEPTH + 1, 100_000):
            try:
                canonical.key("tool", "f", log_values.deep(levels))
                found.append(None)
            except BaseException as error:
                found.append(error)
        canonical.key("tool", "f", log_values.deep(canonical.MAX_DEPTH - 2))

    before = threading.stack_size(512 << 10)
    try:
        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert [type(error) for error in found] == [StoreError, StoreError]
    assert "deeper than 200" in str(found[0])
