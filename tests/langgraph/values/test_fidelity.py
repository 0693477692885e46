"""What is put into a graph's state comes back as itself, or is reported by its path."""

import collections
import dataclasses
import datetime
import decimal
import enum
import fractions
import ipaddress
import pathlib
import re
import time
import types
import uuid
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import msgspec
import numpy
import pydantic
import pytest
from alike import same
from langchain_core import messages
from langchain_core.documents import Document
from langgraph.checkpoint.serde import types as serde_types
from langgraph.store.base import Item
from langgraph.types import Command, Interrupt, Overwrite, Send

from lockstep.errors import Code, Cut, StoreError
from lockstep.log import canonical
from lockstep_langgraph.inert import Inert, InertError
from lockstep_langgraph.values import Codec


class Colour(enum.Enum):
    RED = "r"
    GREEN = ("g", 1)


class Level(enum.IntEnum):
    LOW = 1


class Permission(enum.Flag):
    READ = 1
    WRITE = 2


class Word(enum.StrEnum):
    YES = "yes"


class Point(NamedTuple):
    x: int
    y: Any = None


@dataclasses.dataclass
class Order:
    id: int
    items: list[str] = dataclasses.field(default_factory=list)
    total: float = dataclasses.field(init=False, default=0.0)


@dataclasses.dataclass(frozen=True, slots=True)
class Key:
    name: str


class Customer(pydantic.BaseModel):
    name: str
    tags: set[str] = set()
    _visits: int = pydantic.PrivateAttr(default=0)


class Place(msgspec.Struct):
    city: str
    zip: str | None = None


class Plain:
    def __init__(self, value: int) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is Plain and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]


class Tags(list[str]):
    pass


OWN = (Colour, Level, Permission, Word, Point, Order, Key, Customer, Place, Plain, Tags)


def _order() -> Order:
    order = Order(7, ["a", "b"])
    order.total = 1.5
    return order


def _customer() -> Customer:
    customer = Customer(name="Ann", tags={"x", "y"})
    customer._visits = 3
    return customer


VALUES: dict[str, Any] = {
    "None": None,
    "bool": True,
    "big int": 1 << 200,
    "negative big int": -(1 << 64),
    "float": -0.0,
    "infinity": float("inf"),
    "text": "héllo \N{SNOWMAN}",
    "lone surrogate": "a\ud800b",
    "bytes": b"\0\xff",
    "bytearray": bytearray(b"ab"),
    "tuple": (1, ("a", [2])),
    "empty tuple": (),
    "set": {1, "a", (2, 3)},
    "frozenset": frozenset({1, frozenset({2})}),
    "map with odd keys": {1: "a", (2, 3): "b", None: "c", 2.5: "d"},
    "map with a tag": {"$": "dataclass", "$class": "os:system"},
    "map like a message": {"$": "message", "type": "human", "content": "no"},
    "defaultdict": collections.defaultdict(list, {"a": [1]}),
    "defaultdict of counters": collections.defaultdict(collections.Counter, {"a": collections.Counter("aab")}),
    "Counter": collections.Counter("hello"),
    "OrderedDict": collections.OrderedDict([("b", 1), ("a", 2)]),
    "deque": collections.deque([1, 2, 3], maxlen=3),
    "deque without end": collections.deque(["a"]),
    "range": range(1, 9, 2),
    "slice": slice(1, None, 2),
    "complex": 1 + 2j,
    "Decimal": decimal.Decimal("1.10"),
    "Fraction": fractions.Fraction(1, 3),
    "UUID": uuid.UUID(int=5),
    "path": pathlib.PurePosixPath("/a/b"),
    "this system's path": pathlib.Path("a/b"),
    "datetime": datetime.datetime(2026, 1, 2, 3, 4, 5, 6),
    "datetime of a zone": datetime.datetime(2026, 10, 25, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=1),
    "datetime of an offset": datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=2), "x")),
    "date": datetime.date(2026, 1, 2),
    "time": datetime.time(1, 2, tzinfo=datetime.UTC),
    "timedelta": datetime.timedelta(days=-1, microseconds=3),
    "address": ipaddress.ip_address("10.0.0.1"),
    "network": ipaddress.ip_network("fe80::/10"),
    "array": numpy.arange(6, dtype="<i4").reshape(2, 3),
    "pattern": re.compile("a+", re.IGNORECASE),
    "namespace": types.SimpleNamespace(a=1),
    "chain of maps": collections.ChainMap({"a": 1}, {"b": (2,)}),
    "read-only map": types.MappingProxyType({"a": 1}),
    "numpy scalar": numpy.float32(1.5),
    "URL": pydantic.HttpUrl("https://example.org/a?b=c"),
    "time tuple": time.gmtime(0),
    "class": int,
    "class of None": type(None),
    "ellipsis": ...,
    "enum": Colour.GREEN,
    "int enum": Level.LOW,
    "flags": Permission.READ | Permission.WRITE,
    "text enum": Word.YES,
    "named tuple": Point(1, [2]),
    "dataclass": _order(),
    "frozen dataclass with slots": Key("a"),
    "set of dataclasses": {Key("a"), Key("b")},
    "model": _customer(),
    "struct": Place("Bonn"),
    "plain object": Plain(3),
    "list of its own class": Tags(["a"]),
    "document": Document("text", metadata={"page": 1}, id="d"),
    "send": Send("node", {"x": (1,)}),
    "command": Command(goto=[Send("a", 1), "b"], update={"x": {1}}, resume={"i": 1}),
    "interrupt": Interrupt({"question": (1,)}, id="i"),
    "overwrite": Overwrite([1]),
    "item": Item(
        value={"a": 1},
        key="k",
        namespace=("n",),
        created_at=datetime.datetime(2026, 1, 1),
        updated_at=datetime.datetime(2026, 1, 2),
    ),
}

if hasattr(serde_types, "_DeltaSnapshot"):  # since langgraph-checkpoint 4.1
    VALUES["delta snapshot"] = serde_types._DeltaSnapshot([messages.HumanMessage("a", id="1")])

MESSAGES: dict[str, messages.BaseMessage] = {
    "human": messages.HumanMessage("hello", id="1"),
    "named": messages.HumanMessage("hello", id="1", name="ann"),
    "with its type said": messages.HumanMessage(content="hello", type="human"),
    "with a default said": messages.AIMessage("hi", tool_calls=[], usage_metadata=None),
    "blocks": messages.HumanMessage([{"type": "text", "text": "a"}, "b"]),
    "bytes in a block": messages.HumanMessage([{"type": "file", "data": b"\0", "pages": (1, 2)}]),
    "extra fields": messages.HumanMessage("hello", example=True, mood=("good",)),
    "ai": messages.AIMessage(
        "",
        id="2",
        tool_calls=[{"name": "search", "args": {"q": "x", "n": 1 << 70}, "id": "c1"}],
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
        response_metadata={"model_name": "m", "at": datetime.date(2026, 1, 1)},
        additional_kwargs={"reasoning": ["a", {"b": None}]},
    ),
    "invalid call": messages.AIMessage(
        "", invalid_tool_calls=[{"name": "x", "args": "{", "id": "1", "error": "bad", "type": "invalid_tool_call"}]
    ),
    "ai chunk": messages.AIMessageChunk(
        "he", id="2", tool_call_chunks=[{"name": "s", "args": "{", "id": "c", "index": 0, "type": "tool_call_chunk"}]
    ),
    "system": messages.SystemMessage("be kind"),
    "tool": messages.ToolMessage("4", tool_call_id="c1", artifact={"rows": {1, 2}}, status="error"),
    "chat": messages.ChatMessage("x", role="critic"),
    "function": messages.FunctionMessage("x", name="f"),
    "removal": messages.RemoveMessage(id="1"),
}


@pytest.fixture
def codec() -> Codec:
    return Codec(OWN)


def _stored(value: Any) -> Any:
    """As the log gives it back: through bytes."""
    assert canonical.storable(value)
    return value


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_value_comes_back_as_itself(codec: Codec, value: Any) -> None:
    found = codec.load(_stored(codec.dump(value)))

    assert same(found, value)
    assert codec.reports.losses == []


@pytest.mark.parametrize("message", MESSAGES.values(), ids=MESSAGES)
def test_a_message_comes_back_as_itself(codec: Codec, message: messages.BaseMessage) -> None:
    found = codec.load(_stored(codec.dump(message)))

    assert same(found, message)
    assert list(found.__dict__) == list(message.__dict__)
    assert found.model_dump() == message.model_dump()


@pytest.mark.parametrize("value", [*VALUES.values(), *MESSAGES.values()], ids=[*VALUES, *MESSAGES])
def test_a_copy_is_the_same(codec: Codec, value: Any) -> None:
    assert same(codec.clone(value), value)


def test_a_class_that_nobody_named_comes_back_as_its_fields_and_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    codec = Codec()
    stored = codec.dump({"order": _order()}, "state")
    found = codec.load(stored, "state")["order"]

    assert type(found) is Inert
    assert found["items"] == ["a", "b"] and found["total"] == 1.5
    assert found.type.endswith(":Order")
    assert [loss.path for loss in codec.reports.losses] == ["state.order"]
    assert "types=[Order]" in caplog.text and "state.order" in caplog.text


def test_it_is_stored_again_as_what_it_was(codec: Codec) -> None:
    stored = codec.dump(_order())
    found = Codec().load(stored)
    found["id"] = 8

    assert (
        codec.load(Codec().dump(found)) == dataclasses.replace(_order(), id=8)
        or codec.load(Codec().dump(found)).id == 8
    )


def test_what_lockstep_itself_stopped_a_node_with_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    codec = Codec()
    codec.dump(Cut("the end of the recording"), "__error__")
    codec.dump(Key("a"), "key")
    assert [record.getMessage().partition(" ")[0] for record in caplog.records] == ["key"]


def test_each_type_is_reported_once_for_each_place(caplog: pytest.LogCaptureFixture) -> None:
    codec = Codec()
    for _ in range(3):
        codec.load(codec.dump([Key("a"), Key("b"), {"deep": Key("c")}], "channel"), "channel")

    assert [(loss.path, loss.what.rpartition(":")[2]) for loss in codec.reports.losses] == [
        ("channel[0]", "Key"),
        ("channel[2].deep", "Key"),
    ]
    assert len(caplog.records) == 2


@pytest.mark.parametrize(
    ("value", "where"),
    [({"f": len}, "x.f"), ([1, lambda: 0], "x[1]"), ({"a": {"b": object()}}, "x.a.b"), ((1, (i for i in ())), "x[1]")],
    ids=["builtin", "lambda", "object", "generator"],
)
def test_what_cannot_be_stored_is_one_short_error_with_its_path(codec: Codec, value: Any, where: str) -> None:
    with pytest.raises(StoreError) as error:
        codec.dump(value, "x")

    assert error.value.code is Code.UNSTORABLE
    assert str(error.value).endswith(f"at {where}")
    assert len(str(error.value)) < 200


def test_an_error_comes_back_as_itself(codec: Codec) -> None:
    error = ValueError("bad", 3)
    error.__cause__ = KeyError("k")
    found = codec.load(codec.dump(error))

    assert type(found) is ValueError and found.args == ("bad", 3)
    assert type(found.__cause__) is KeyError


def test_what_an_extension_makes_of_a_built_in_class_comes_back_as_that_and_is_reported(codec: Codec) -> None:
    found = codec.load(codec.dump({"data": memoryview(b"ab")}, "state"), "state")

    assert found == {"data": b"ab"}
    assert [loss.text() for loss in codec.reports.losses] == [
        "state.data holds a builtins:memoryview, which does not come back as itself: it comes back as a plain bytes"
    ]


class PaymentError(Exception):
    pass


def test_an_error_of_the_programs_own_prints_as_it_did_and_is_stored_again_as_it_was() -> None:
    strict, knowing = Codec(), Codec([PaymentError])
    stored = strict.dump(PaymentError("declined"), "error")
    found = strict.load(stored)

    assert type(found) is InertError and "declined" in str(found) and "PaymentError" in str(found)
    assert type(knowing.load(strict.dump(found))) is PaymentError
    assert strict.reports.losses[0].path == "error"


def test_a_defaultdict_of_a_function_comes_back_without_it_and_is_reported(codec: Codec) -> None:
    found = codec.load(codec.dump({"counts": collections.defaultdict(lambda: 0, a=1)}, "state"), "state")["counts"]

    assert type(found) is collections.defaultdict and found == {"a": 1} and found.default_factory is None
    assert codec.reports.losses[0].path == "state.counts"
