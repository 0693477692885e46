"""Objects as inert values: what goes in comes out equal, of the same class, and no code of theirs runs."""

from __future__ import annotations

import array
import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import ipaddress
import math
import os
import pathlib
import queue
import re
import subprocess
import sys
import threading
import time
import types
import typing
import uuid
import zoneinfo
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pydantic
import pytest

from lockstep.errors import Code, LockstepError
from lockstep.log import canonical
from lockstep.session import snapshot
from lockstep.session.snapshot import from_value, to_key, to_value

RAN: list[str] = []  # what the traps below say when any code of theirs runs


class Colour(enum.Enum):
    RED = "red"
    GREEN = "green"


class Level(enum.IntEnum):
    HIGH = 3


class Right(enum.Flag):
    READ = 1
    WRITE = 2
    RUN = 4


class Point(NamedTuple):
    x: int
    y: int = 0


@dataclasses.dataclass
class Order:
    id: int
    lines: list[Point] = dataclasses.field(default_factory=list)
    total: decimal.Decimal = decimal.Decimal(0)


@dataclasses.dataclass(frozen=True, slots=True)
class Money:
    cents: int
    currency: str = "EUR"


class Struct(msgspec.Struct, frozen=True):
    name: str
    of: tuple[int, ...] = ()


class OpenStruct(msgspec.Struct, dict=True):
    name: str


class Address(pydantic.BaseModel):
    city: str
    since: datetime.date


class Customer(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    name: str
    address: Address | None = None
    tags: set[str] = set()
    _seen: int = 0


class Names(pydantic.RootModel[list[str]]):
    pass


class Plain:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = None  # type: ignore[assignment]


class Slotted:
    __slots__ = ("__hidden", "shown")

    def __init__(self) -> None:
        self.__hidden = 1

    def hidden(self) -> int:
        return self.__hidden


class Tagged(str):
    """Text with an attribute, and a `__str__` that lies."""

    origin: str

    def __str__(self) -> str:
        return "something else"


class Stack(list[Any]):
    def extend(self, items: Any) -> None:
        raise AssertionError("this is the program's own")


class Registry(dict[str, Any]):
    def __setitem__(self, name: str, item: Any) -> None:
        raise AssertionError("this is the program's own")


class Meeting(datetime.datetime):
    pass


class Trap:
    """Everything that pickle and copy would call."""

    def __new__(cls, *args: Any, **named: Any) -> Any:
        RAN.append("__new__")
        return super().__new__(cls)

    def __init__(self) -> None:
        RAN.append("__init__")
        self.kept = [1]

    def __getstate__(self) -> object:
        RAN.append("__getstate__")
        return {}

    def __setstate__(self, state: object) -> None:
        RAN.append("__setstate__")

    def __reduce_ex__(self, protocol: typing.SupportsIndex) -> Any:
        RAN.append("__reduce_ex__")
        return Trap, ()

    def __setattr__(self, name: str, value: object) -> None:
        RAN.append("__setattr__")
        super().__setattr__(name, value)

    def __eq__(self, other: object) -> bool:
        RAN.append("__eq__")
        return True

    def __hash__(self) -> int:
        RAN.append("__hash__")
        return 1

    def __repr__(self) -> str:
        RAN.append("__repr__")
        return "Trap()"


@dataclasses.dataclass
class TrapData:
    kept: list[int]

    def __post_init__(self) -> None:
        RAN.append("__post_init__")


class TrapStruct(msgspec.Struct, frozen=True):
    kept: list[int]

    def __post_init__(self) -> None:
        RAN.append("__post_init__")


class TrapChild(TrapStruct, frozen=True):
    more: int = 0


class TrapModel(pydantic.BaseModel):
    kept: list[int]

    @pydantic.field_validator("kept")
    @classmethod
    def _check(cls, kept: list[int]) -> list[int]:
        RAN.append("validator")
        return kept

    def model_post_init(self, context: object) -> None:
        RAN.append("model_post_init")


class Owner:
    def __del__(self) -> None:
        pass


def _there_and_back(obj: Any) -> Any:
    """As the store does it: through bytes, which hold nothing but plain data."""
    value = to_value(obj)
    assert canonical.storable(value)
    canonical.canonical(value)
    return from_value(value)


Berlin = zoneinfo.ZoneInfo("Europe/Berlin")
Model = pydantic.create_model("Model", x=(int, ...))

VALUES: list[Any] = [
    None,
    True,
    -1,
    10**40,
    0.1,
    "text",
    "lone \ud800",
    b"\x00\xff",
    [1, [2, {"a": None}]],
    {"a": {"b": [1.5]}},
    {"$": "tuple", "$items": []},
    {"$ref": "#/defs/Order", "$": 1},
    {1: "int", "1": "text", (1, 2): "tuple", None: 0},
    (1, (2, [3]), ()),
    {1, "a", (2, 3)},
    frozenset({frozenset({1})}),
    bytearray(b"ab"),
    1 + 2j,
    decimal.Decimal("1.10"),
    decimal.Decimal("-Infinity"),
    fractions.Fraction(-1, 3),
    datetime.datetime(2026, 2, 3, 4, 5, 6, 7),
    datetime.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=Berlin),
    datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    Meeting(2026, 1, 1, 9, tzinfo=datetime.timezone(datetime.timedelta(hours=-3), "BRT")),
    datetime.date(33, 4, 3),
    datetime.time(23, 59, 59, 1, tzinfo=datetime.UTC),
    datetime.timedelta(days=-1, microseconds=5),
    datetime.timezone(datetime.timedelta(minutes=330)),
    Berlin,
    uuid.UUID(int=5),
    Path("/tmp/a"),
    pathlib.PurePosixPath("b/c"),
    pathlib.PureWindowsPath("c:\\d"),
    Colour.RED,
    Level.HIGH,
    Right.READ | Right.RUN,
    range(1, 10, 3),
    slice(None, 3),
    collections.deque([1, 2], maxlen=3),
    collections.OrderedDict([("b", 1), ("a", 2)]),
    collections.defaultdict(list, {"a": [1], 2: [3]}),
    collections.Counter("abca"),
    types.MappingProxyType({"a": 1}),
    types.SimpleNamespace(a=1, **{"$": 2}),
    array.array("d", [1.5, 2.5]),
    ipaddress.ip_address("10.0.0.1"),
    time.gmtime(1_000_000),
    os.stat("/"),
    Point(1),
    Order(1, [Point(1, 2)], decimal.Decimal("9.99")),
    Money(5),
    Struct("a", (1, 2)),
    OpenStruct("a"),
    Customer(name="A", address=Address(city="B", since=datetime.date(2026, 1, 1)), tags={"x"}, more=[1]),  # type: ignore[call-arg]
    Names(["a"]),
    Plain({"a": Plain(1)}),
    Stack([1, Stack([2])]),
    Registry(a=1),
    Order,
    int,
    Ellipsis,
    NotImplemented,
    np.float64(0.1),
    np.int8(-3),
    np.bool_(True),
    np.str_("ab"),
    np.datetime64("2026-01-01T00:00", "m"),
]


@pytest.mark.parametrize("obj", VALUES, ids=lambda obj: f"{type(obj).__name__}")
def test_an_object_comes_back_equal_and_of_its_class(obj: Any) -> None:
    back = _there_and_back(obj)
    assert back == obj
    assert type(back) is type(obj)


def test_inner_values_keep_their_classes() -> None:
    back = _there_and_back(Order(1, [Point(1, 2)], decimal.Decimal("1.10")))
    assert type(back.lines[0]) is Point
    assert str(back.total) == "1.10"
    assert type(_there_and_back({"a": (True, 1, 1.0)})["a"][0]) is bool


def test_floats_keep_their_bits() -> None:
    back = _there_and_back([math.nan, math.inf, -math.inf, -0.0])
    assert math.isnan(back[0])
    assert back[1:3] == [math.inf, -math.inf]
    assert math.copysign(1, back[3]) == -1


def test_what_equality_does_not_look_at_comes_back_too() -> None:
    late = datetime.datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=Berlin)
    assert _there_and_back(late).fold == 1
    assert _there_and_back(late).tzinfo is Berlin
    assert _there_and_back(datetime.timezone(datetime.timedelta(0), "GMT")).tzname(None) == "GMT"
    assert _there_and_back(collections.deque([1], maxlen=3)).maxlen == 3
    assert list(_there_and_back(collections.OrderedDict([("b", 1), ("a", 2)]))) == ["b", "a"]
    assert list(_there_and_back({"b": 1, "a": 2})) == ["b", "a"]
    assert _there_and_back(collections.defaultdict(list))["new"] == []
    assert _there_and_back(os.stat("/")).st_mtime_ns == os.stat("/").st_mtime_ns
    ordered = collections.OrderedDict([("a", 1), ("b", 2)])
    ordered.move_to_end("a")
    assert list(_there_and_back(ordered)) == ["b", "a"]
    assert [list(_there_and_back(made)) for made in ({0, 8}, {8, 0})] == [[0, 8], [8, 0]]
    struct = OpenStruct("a")
    struct.later = 1  # type: ignore[attr-defined]
    assert _there_and_back(struct).later == 1


def test_a_slot_that_was_not_set_stays_so_and_private_ones_come_back() -> None:
    back = _there_and_back(Slotted())
    assert back.hidden() == 1
    assert not hasattr(back, "shown")


def test_a_subclass_of_a_builtin_keeps_its_content_and_attributes() -> None:
    tagged = Tagged("said")
    tagged.origin = "model"
    back = _there_and_back(tagged)
    assert (type(back), str.__str__(back), back.origin) == (Tagged, "said", "model")


def test_a_model_keeps_what_was_set_and_its_private_state() -> None:
    customer = Customer(name="A", other=2)  # type: ignore[call-arg]
    customer._seen = 4
    back = _there_and_back(customer)
    assert back.model_fields_set == {"name", "other"}
    assert back.model_extra == {"other": 2}
    assert back._seen == 4
    back.tags.add("y")
    assert back.model_dump_json() == '{"name":"A","address":null,"tags":["y"],"other":2}'


def test_a_model_that_is_no_longer_valid_comes_back_as_it_was() -> None:
    address = Address.model_construct(city=5, since="never")
    assert _there_and_back(address).city == 5


def test_a_class_made_in_a_function_is_found_among_what_is_loaded() -> None:
    @dataclasses.dataclass
    class Local:
        a: int

    assert _there_and_back(Local(3)) == Local(3)
    assert _there_and_back(Model(x=1)) == Model(x=1)


@pytest.mark.parametrize(
    "made",
    [
        np.arange(6, dtype=np.int16).reshape(2, 3),
        np.asfortranarray(np.ones((3, 2))),
        np.array([], dtype=np.float32),
        np.array(5),
        np.array([[1, "a"], [None, (2, 3)]], dtype=object),
        np.array([(1, 2.5)], dtype=[("a", "<i4"), ("b", "<f8")]),
        np.array(["2026-01-01"], dtype="datetime64[D]"),
        np.arange(10)[::3],
    ],
    ids=["c", "fortran", "empty", "scalar", "objects", "records", "dates", "view"],
)
def test_arrays_come_back_with_dtype_shape_and_order(made: Any) -> None:
    back = _there_and_back(made)
    assert back.dtype == made.dtype
    assert back.shape == made.shape
    assert np.isfortran(back) == np.isfortran(made)
    assert back.tolist() == made.tolist()
    back.fill(back.flat[0] if back.size else 0)  # writable


def test_a_read_only_array_stays_so() -> None:
    made = np.ones(2)
    made.flags.writeable = False
    assert not _there_and_back(made).flags.writeable


def test_exceptions_are_values() -> None:
    error = ValueError("no", {"order": 5})
    error.__cause__ = KeyError("k")
    back = _there_and_back({"error": error})["error"]
    assert (type(back), back.args, type(back.__cause__)) == (ValueError, ("no", {"order": 5}), KeyError)


def test_json_like_data_stands_as_itself() -> None:
    data = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "$schema": "x", "n": None}
    assert to_value(data) == data
    assert to_value(Order(1)) == {
        "$": "dataclass",
        "$class": f"{__name__}:Order",
        "id": 1,
        "lines": [],
        "total": {"$": "Decimal", "$value": "0"},
    }


def test_later_changes_do_not_reach_the_snapshot() -> None:
    order = Order(1, [Point(1, 1)])
    data: dict[str, Any] = {"order": order, "list": [[1]], "set": {1}, "bytes": bytearray(b"a"), "array": np.ones(2)}
    value = to_value(data)
    before = canonical.canonical(value)
    order.id = 2
    order.lines.append(Point(2, 2))
    data["list"][0].append(2)
    data["set"].add(2)
    data["bytes"].extend(b"b")
    data["array"][0] = 9
    data["new"] = 1
    assert canonical.canonical(value) == before


def test_one_value_can_be_restored_many_times_independently() -> None:
    value = to_value({"items": [1], "order": Order(1)})
    first, second = from_value(value), from_value(value)
    first["items"].append(2)
    first["order"].lines.append(Point(0))
    assert second == {"items": [1], "order": Order(1)}


def test_one_object_met_twice_becomes_two_equal_ones() -> None:
    shared = [1]
    back = _there_and_back([shared, shared])
    assert back == [[1], [1]]
    assert back[0] is not back[1]


def test_keys_do_not_depend_on_the_order_of_sets_and_maps() -> None:
    # 0 and 8 collide in a small table: who came first is first.
    one = to_value({"s": {0, 8}, "m": {1: "a", "b": None}})
    other = to_value({"s": {8, 0}, "m": {"b": None, 1: "a"}})
    assert one != other
    assert canonical.key("tool", "t", to_key(one)) == canonical.key("tool", "t", to_key(other))
    assert to_key(to_value([2, 1])) == [2, 1]
    assert to_key(to_value((2, 1))) != to_key(to_value((1, 2)))


def _generator() -> Any:
    yield 1


def _cycle() -> Any:
    items: list[Any] = [1]
    items.append({"again": items})
    return {"items": items}


def _deep() -> Any:
    value: Any = 1
    for _ in range(300):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (lambda: {"items": [0, 1, 2, Plain(threading.Lock())]}, "$.items[3].value"),
        (lambda: Order(1, lines=[_generator()]), "$.lines[0]"),
        (lambda: {"a b": {1: open(os.devnull)}}, "$['a b'][1]"),  # noqa: SIM115
        (lambda: {(1, 2): object()}, "$[tuple]"),
        (lambda: [lambda: 0], "$[0]"),
        (lambda: [len], "$[0]"),
        (lambda: Customer(name="A", x=sys), "$.x"),  # type: ignore[call-arg]
        (lambda: collections.defaultdict(lambda: 0), "$.factory"),
        (lambda: [Owner()], "$[0]"),
        (lambda: [re.compile("x").match("x")], "$[0]"),
        (lambda: [queue.Queue()], "$[0].mutex"),
        (lambda: [memoryview(b"a")], "$[0]"),
        (lambda: np.array([threading.Lock()]), "$[0]"),
        (_cycle, "$.items[1].again"),
        (_deep, "$[0][0]"),
    ],
)
def test_what_cannot_be_stored_is_named_with_its_path(make: Any, path: str) -> None:
    with pytest.raises(LockstepError) as caught:
        to_value(make())
    assert caught.value.code is Code.UNSTORABLE
    assert path in caught.value.message


def test_nothing_of_a_class_runs_when_it_is_taken_or_restored() -> None:
    objects: list[Any] = [Trap(), TrapData([1]), TrapStruct([1]), TrapChild([1], 2), TrapModel(kept=[1])]
    RAN.clear()
    back = from_value(to_value(objects))
    assert RAN == []
    assert [type(made) for made in back] == [Trap, TrapData, TrapStruct, TrapChild, TrapModel]
    assert [made.kept for made in back] == [[1]] * 5
    assert (back[3].more, hash(type(back[3]))) == (2, hash(TrapChild))
    assert back[4].model_dump() == {"kept": [1]}


def test_a_class_that_is_not_loaded_is_named_and_not_imported(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "import dataclasses, pathlib\n"
        "pathlib.Path(__file__).with_name('imported').touch()\n"
        "@dataclasses.dataclass\n"
        "class Order:\n    id: int\n"
    )
    code = (
        "from lockstep.session.snapshot import from_value\n"
        "try:\n"
        "    from_value({'orders': [{'$': 'dataclass', '$class': 'shop:Order', 'id': 1}]})\n"
        "except Exception as error:\n"
        "    print(error)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("LS110 ")
    assert "shop:Order is not loaded" in ended.stdout
    assert not (tmp_path / "imported").exists()


def test_taking_and_restoring_plain_data_imports_nothing_more() -> None:
    code = (
        "import sys\n"
        "from lockstep.session.snapshot import from_value, to_value\n"
        "before = set(sys.modules)\n"
        "from_value(to_value({'a': [1, (2,), {3}]}))\n"
        "print(sorted(set(sys.modules) - before))\n"
        "print(sorted({'dataclasses', 'numpy', 'pydantic', 'asyncio'} & before))\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["[]", "[]"]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"$": "dataclass", "$class": f"{__name__}:Order", "id": 1}, "has no lines"),
        ({"$": "dataclass", "$class": f"{__name__}:Money", "cents": 1, "currency": "E", "new": 2}, "has no new"),
        ({"$": "dataclass", "$class": f"{__name__}:Point", "x": 1}, "is none here"),
        ({"$": "struct", "$class": f"{__name__}:Struct", "name": "a"}, "other fields: of"),
        ({"$": "namedtuple", "$class": f"{__name__}:Point", "x": 1}, "other fields: x"),
        ({"$": "model", "$class": f"{__name__}:Address", "city": "a"}, "has no since"),
        ({"$": "enum", "$class": f"{__name__}:Colour", "$name": "BLUE"}, "no member BLUE"),
        ({"$": "enum", "$class": f"{__name__}:Order", "$name": "BLUE"}, "is none here"),
        ({"$": "object", "$class": "subprocess:Popen", "pid": 1}, "is none here"),
        ({"$": "object", "$class": "builtins:function"}, "is none here"),
        ({"$": "class", "$class": "os:system"}, "not loaded"),
        ({"$": "class", "$class": f"{__name__}:Trap.__init__"}, "not loaded"),
        ({"$": "defaultdict", "$factory": None}, "can't be restored"),
        ({"$": "list", "$class": f"{__name__}:Registry", "$items": []}, "is none here"),
        ({"$": "novelty"}, "does not know"),
        ({"$": "ZoneInfo", "$value": "No/Where"}, "no time zone data"),
    ],
)
def test_what_cannot_be_restored_says_why(value: Any, words: str) -> None:
    with pytest.raises(LockstepError, match=words) as caught:
        from_value(value)
    assert caught.value.code is Code.UNSERVABLE


def test_classes_of_one_name_are_not_confused() -> None:
    def make() -> Any:
        @dataclasses.dataclass
        class Twin:
            a: int

        return Twin

    first, second = make(), make()
    with pytest.raises(LockstepError, match="2 classes") as caught:
        from_value(to_value(first(1)))
    assert caught.value.code is Code.UNSERVABLE
    assert second(1).a == 1


def test_what_is_no_data_counts_by_its_class_and_all_else_as_it_is() -> None:
    class Client:
        def __init__(self) -> None:
            self.lock = threading.Lock()

    one, other = snapshot.taken(Client()), snapshot.taken(Client())
    assert one == other == {"$": "object", "$class": f"{__name__}:{Client.__qualname__}"}
    for value in (7, "x", [1, {"a": (2, 3)}], datetime.date(2026, 11, 30)):
        assert snapshot.taken(value) == to_value(value)
