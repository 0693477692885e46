"""Packing: what comes back is what was stored, and equal parts are stored once."""

import json
import random
import threading
from typing import Any

import log_values
import pytest

from lockstep.errors import Code, StoreError
from lockstep.log import jsontext, merkle, unpack
from lockstep.log.canonical import encode_ordered, storable
from lockstep.log.pack import CAT, REF, Packer
from lockstep.log.unpack import Coder, Expander


class Shelf:
    """The blobs of a packer, to read back from."""

    def __init__(self) -> None:
        self.packer = Packer()
        self.blobs: list[bytes] = []
        self.bigs: dict[int, bytes] = {}

    def put(self, value: Any) -> tuple[bytes, bytes, int]:
        packed, code = self.packer.pack(value)
        blobs, bigs = self.packer.take()
        self.blobs += blobs
        self.bigs.update(bigs)
        return packed, code, len(packed) + sum(map(len, blobs)) + sum(len(data) for _, data in bigs)

    def blob(self, number: int) -> bytes:
        return self.blobs[number]

    def big(self, number: int) -> bytes:
        return self.bigs[number]


def test_every_nasty_value_comes_back_in_type_bits_and_order() -> None:
    shelf = Shelf()
    stored = []
    for seed in range(400):
        value = log_values.value(random.Random(seed))
        packed, code, _ = shelf.put(value)
        stored.append((seed, packed, code))
    expander, coder = Expander(shelf), Coder(shelf)
    for seed, packed, code in stored:
        value = log_values.value(random.Random(seed))
        assert log_values.same(expander.expand(packed), value), seed
        assert coder.code(packed) == code, seed


def test_one_field_is_read_without_what_the_others_refer_to() -> None:
    shelf = Shelf()
    fields = {"request": {"body": "x" * 100_000}, "reads": {"time.time": 7}, "long": list(range(2000)), "none": None}
    packed, _, _ = shelf.put(fields)

    class Nothing:
        def blob(self, number: int) -> bytes:
            raise AssertionError(f"blob {number} was looked up")

        def big(self, number: int) -> bytes:
            raise AssertionError(f"leaf {number} was looked up")

    assert Expander(Nothing()).field(packed, "reads") == {"time.time": 7}
    assert Expander(Nothing()).field(packed, "none") is None
    # What is shared, and a map that is itself, come whole.
    for name, value in fields.items():
        assert Expander(shelf).field(packed, name) == value
        assert Expander(shelf).field(shelf.put([fields, fields])[0], name) is None
        assert Expander(shelf).field(shelf.put({"a": "y" * 600, **fields})[0], name) == value
    assert Expander(shelf).field(packed, "absent") is None


def test_the_code_of_a_value_does_not_depend_on_what_was_packed_before() -> None:
    shelf = Shelf()
    for seed in range(120):
        value = log_values.value(random.Random(seed))
        code = shelf.put(value)[1]
        assert code == Shelf().put(value)[1]
        if storable(value) and not _holds_json(value) and _plain(value):
            assert code == merkle.code(value, encode_ordered, ordered=True)


def test_values_are_fresh_each_time() -> None:
    shelf = Shelf()
    packed = shelf.put({"messages": [{"role": "user", "content": "x" * 600} for _ in range(40)]})[0]
    expander = Expander(shelf)
    first: Any = expander.expand(packed)
    first["messages"][0]["content"] = "changed"
    first["messages"].clear()
    again: Any = expander.expand(packed)
    assert len(again["messages"]) == 40
    assert again["messages"][0]["content"] == "x" * 600


@pytest.mark.parametrize("as_json", [False, True])
def test_a_growing_chat_costs_what_is_new(as_json: bool) -> None:
    shelf = Shelf()
    rng = random.Random(5)
    messages: list[Any] = []
    costs = []
    for _ in range(600):
        messages.append({"role": "user", "content": log_values.text(rng, 500)})
        value: Any = {"model": "m", "messages": messages}
        costs.append(shelf.put(json.dumps(value, separators=(",", ":")).encode() if as_json else value)[2])
    early, late = sum(costs[50:150]), sum(costs[500:600])
    assert late < early * 1.2
    assert late < 100 * 1500


@pytest.mark.parametrize(
    "change",
    [
        lambda items: [*items, {"role": "user", "content": "new " * 50}],
        lambda items: items[:500] + items[501:],
        lambda items: items[200:],
        lambda items: [*items[:500], {"role": "user", "content": "edit " * 50}, *items[501:]],
        lambda items: [{"role": "system", "content": "summary " * 30}, *items[900:]],
    ],
)
def test_a_change_in_a_long_list_costs_little(change: Any) -> None:
    shelf = Shelf()
    rng = random.Random(6)
    items = [{"role": "user", "content": log_values.text(rng, 1000)} for _ in range(1000)]
    assert shelf.put(items)[2] > 900_000
    assert shelf.put(change(items))[2] < 8_000


def test_equal_lists_built_differently_are_stored_once() -> None:
    rng = random.Random(7)
    items = [{"n": n, "content": log_values.text(rng, 200)} for n in range(300)]
    grown = Shelf()
    for length in range(1, 301):
        packed, code, _ = grown.put(items[:length])
    assert Shelf().put(items)[1] == code
    assert grown.put([dict(item) for item in items])[2] == len(packed)


def test_the_order_of_keys_is_kept_apart() -> None:
    shelf = Shelf()
    one = {"a": "x" * 600, "b": "y" * 600}
    two = {"b": "y" * 600, "a": "x" * 600}
    packed_one, code_one, _ = shelf.put([one])
    packed_two, code_two, _ = shelf.put([two])
    assert code_one != code_two
    expander = Expander(shelf)
    assert log_values.same(expander.expand(packed_one), [one])
    assert log_values.same(expander.expand(packed_two), [two])


@pytest.mark.parametrize(
    "body",
    [
        b'{"a":1,"a":2, "pad":"' + b"x" * 600 + b'"}',
        b'{"a": 1.10, "pad": "' + b"x" * 600 + b'"}',
        b'{"a":"\\ud800","pad":"' + b"x" * 600 + b'"}',
        b"[" * 3000 + b"]" * 3000,
        b"[" * 100_000,
        b'{"pad":"' + b"x" * 600,
        b"\xef\xbb\xbf{}" + b" " * 600,
        b"[1E5,NaN,1e400,-0,0.10" + b",1" * 600 + b"]",
    ],
)
def test_json_that_no_formatter_makes_stays_byte_for_byte(body: bytes) -> None:
    shelf = Shelf()
    packed = shelf.put({"body": body})[0]
    found: Any = Expander(shelf).expand(packed)
    assert found["body"] == body


@pytest.mark.parametrize("options", [{}, {"separators": (",", ":")}, {"ensure_ascii": False}])
def test_json_as_libraries_write_it_is_stored_as_a_tree(options: Any) -> None:
    body = json.dumps({"messages": [{"content": f"é\u2028 {n} " * 20} for n in range(50)]}, **options).encode()
    parsed = jsontext.parse(body)
    assert parsed is not None
    assert jsontext.text(*parsed) == body
    shelf = Shelf()
    shelf.put(body)
    assert shelf.put(json.dumps(json.loads(body) | {"new": 1}, **options).encode())[2] < 300


def test_a_large_leaf_is_stored_once() -> None:
    shelf = Shelf()
    picture = random.Random(8).randbytes(300_000)
    shelf.put({"picture": picture, "n": 1})
    assert shelf.put({"picture": picture, "n": 2})[2] < 100
    assert list(shelf.bigs) == [0]


def test_the_deepest_value_expands_in_a_small_stack() -> None:
    shelf = Shelf()
    value: Any = {"end": "e" * 600}
    for _ in range(190):
        value = {"in": value, "pad": "p" * 600}
    packed = shelf.put(value)[0]
    found: list[Any] = []
    before = threading.stack_size(512 << 10)
    try:
        thread = threading.Thread(target=lambda: found.append(Expander(shelf).expand(packed)))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert found == [value]


def test_forged_references_are_refused() -> None:
    shelf = Shelf()
    reference = encode_ordered(_ext(REF, b"\x00"))
    shelf.blobs = [reference, encode_ordered([_ext(REF, b"\x00"), _ext(REF, b"\x05")])]
    for packed in (reference, encode_ordered(_ext(REF, b"\x01")), encode_ordered(_ext(CAT, encode_ordered([0])))):
        for read in (Expander(shelf).expand, Coder(shelf).code):
            with pytest.raises(StoreError) as caught:
                read(packed)
            assert caught.value.code is Code.DAMAGED


def test_a_bomb_of_references_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpack, "EXPANDED", 3_000_000)
    shelf = Shelf()
    shelf.blobs = [encode_ordered(["x"] * 10)]
    for number in range(30):
        shelf.blobs.append(encode_ordered([_ext(REF, bytes((number,)))] * 10))
    with pytest.raises(StoreError, match="expands to more"):
        Expander(shelf).expand(encode_ordered(_ext(REF, b"\x1e")))


def _ext(code: int, data: bytes) -> Any:
    import msgspec

    return msgspec.msgpack.Ext(code, data)


def _holds_json(value: Any) -> bool:
    if isinstance(value, bytes):
        return jsontext.parse(value) is not None
    if isinstance(value, dict):
        value = list(value.values())
    return isinstance(value, list) and any(map(_holds_json, value))


def _plain(value: Any) -> bool:
    try:
        encode_ordered(value)
    except (OverflowError, UnicodeEncodeError):
        return False
    return True
