"""A forged value runs nothing, imports nothing and makes nothing that is not allowed, whatever it says."""

import dataclasses
import enum
import random
import sys
import uuid
from collections.abc import Iterator
from typing import Any, NamedTuple

import ormsgpack
import pydantic
import pytest
from cipher import Xor
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command, Send

from lockstep.errors import Code, LockstepError, StoreError
from lockstep.session import builtin_values, shapes
from lockstep_langgraph.inert import Inert, InertError
from lockstep_langgraph.values import Codec

ran: list[str] = []
events: list[str] | None = None
# What a value that is loaded has no business to do.
_WATCHED = frozenset(
    (
        "import",
        "exec",
        "compile",
        "open",
        "os.system",
        "os.exec",
        "os.posix_spawn",
        "subprocess.Popen",
        "socket.connect",
    )
)


def _hook(event: str, args: tuple[Any, ...]) -> None:
    if events is not None and event in _WATCHED:
        events.append(f"{event} {args[:1]}")


sys.addaudithook(_hook)


class Meta(type):
    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        ran.append("metaclass")
        return super().__call__(*args, **kwargs)


def _tripwire(name: str) -> Any:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        ran.append(name)
        return object.__new__(self) if name == "__new__" else None

    return method


TRIPS = ("__new__", "__init__", "__setstate__", "__reduce__", "__post_init__", "__getattr__", "__setattr__", "__call__")
Trap: Any = Meta("Trap", (), {name: _tripwire(name) for name in TRIPS} | {"__module__": __name__})
TrapError: Any = Meta("TrapError", (Exception,), {name: _tripwire(name) for name in TRIPS} | {"__module__": __name__})


@dataclasses.dataclass
class TrapRecord:
    id: int = 0

    def __post_init__(self) -> None:
        ran.append("__post_init__")


class TrapModel(pydantic.BaseModel):
    id: int = 0

    @pydantic.field_validator("id")
    @classmethod
    def _check(cls, value: int) -> int:
        ran.append("validator")
        return value

    def model_post_init(self, context: Any) -> None:
        ran.append("model_post_init")


class TrapEnum(enum.Enum):
    A = 1

    @classmethod
    def _missing_(cls, value: object) -> Any:
        ran.append("_missing_")
        return cls.A


class TrapTuple(NamedTuple):
    id: int = 0


class TrapList(list[int]):
    def __init__(self, *args: Any) -> None:
        ran.append("__init__")

    def append(self, item: Any) -> None:
        ran.append("append")


TRAPS = (Trap, TrapRecord, TrapModel, TrapEnum, TrapTuple, TrapList, TrapError)
NAMES = [
    *(
        "os:system",
        "posix:system",
        "subprocess:Popen",
        "builtins:eval",
        "builtins:exec",
        "builtins:open",
        "pickle:loads",
    ),
    *("importlib:import_module", "antigravity:fly", "this:s", "langgraph.pregel.main:Pregel", "no.such:Thing", ":", ""),
    *("langchain_core.messages.ai:no_such", "langgraph.types:interrupt", "builtins:object", "builtins:type"),
    *(shapes.name_of(trap) for trap in TRAPS),
]
TAGS = [
    *builtin_values.KINDS,
    *shapes.SHAPES,
    "class",
    "enum",
    "constant",
    "exception",
    "secret",
    "typed",
    "message",
    "no such",
]


@pytest.fixture
def watched() -> Iterator[None]:
    global events
    ran.clear()
    # What the first use loads is not the forged value's doing.
    Codec().load(Codec().dump([{2}, ValueError(), uuid.UUID(int=0), TrapRecord]))
    before = set(sys.modules)
    events = []
    yield
    found, events = events, None
    assert ran == []
    assert found == []
    assert {name for name in set(sys.modules) - before if not name.startswith(("lockstep", "_lockstep"))} == set()


def _forms(name: str, tag: str) -> Iterator[dict[str, Any]]:
    command = "touch /tmp/lockstep-was-here"
    yield {"$": tag, "$class": name, "id": 1}
    yield {"$": tag, "$class": name, "$fields": {"$": "dict", "$pairs": [[1, 2]]}}
    yield {"$": tag, "$class": name, "$items": [command], "$pairs": [["a", command]], "$value": command}
    yield {"$": tag, "$class": name, "$name": "A", "$more": {"__class__": "x", "__dict__": {}}}
    yield {"$": tag, "$class": name, "$value": 99, "password": command, "type": "msgpack", "data": b"\xc7\0\0"}
    yield {"$": tag, "$factory": {"$": "class", "$class": name}, "$pairs": [["a", 1]]}
    yield {"$": tag, "$value": {"module": name.partition(":")[0], "name": name.partition(":")[2], "args": [command]}}


@pytest.mark.parametrize("tag", TAGS)
def test_a_forged_class_name_makes_nothing(watched: None, tag: str) -> None:
    codec = Codec()
    for name in NAMES:
        for form in _forms(name, tag):
            try:
                found = codec.load({"deep": [form]})
            except LockstepError:
                continue
            (item,) = found["deep"]
            assert not isinstance(item, (*TRAPS, type(sys)))
            codec.clone(found)
            repr(item)


def test_what_is_allowed_is_made_without_its_code(watched: None) -> None:
    codec = Codec(TRAPS)
    forms = [
        {"$": "object", "$class": shapes.name_of(Trap), "id": 1},
        {"$": "dataclass", "$class": shapes.name_of(TrapRecord), "id": 2},
        {"$": "model", "$class": shapes.name_of(TrapModel), "$set": ["id"], "id": "no number"},
        {"$": "enum", "$class": shapes.name_of(TrapEnum), "$name": "A"},
        {"$": "enum", "$class": shapes.name_of(TrapEnum), "$value": 5},
        {"$": "namedtuple", "$class": shapes.name_of(TrapTuple), "id": 3},
        {"$": "list", "$class": shapes.name_of(TrapList), "$items": [1, 2]},
        {"$": "exception", "$value": {"module": __name__, "name": "TrapError", "args": ["x"]}},
    ]

    made = codec.load(forms)

    assert [type(each) for each in made] == [
        Trap,
        TrapRecord,
        TrapModel,
        TrapEnum,
        Inert,
        TrapTuple,
        TrapList,
        TrapError,
    ]


def test_an_exception_that_names_others_inside_makes_none_of_them(watched: None) -> None:
    inner = {"exception": {"module": __name__, "name": "TrapError", "args": []}}
    forms = [
        {"module": "builtins", "name": "ValueError", "args": [inner]},
        {"module": "builtins", "name": "ValueError", "args": [], "cause": inner},
        {"module": "builtins", "name": "ValueError", "args": [], "state": {"x": {"enum": [__name__, "TrapEnum", "A"]}}},
        {"module": "builtins", "name": "ValueError", "args": [], "members": {"__class__": 1}},
        {"module": "anyio", "name": "ClosedResourceError", "args": []},
        {"module": "builtins", "name": "int", "args": []},
        {"module": "builtins", "name": "ValueError"},
        "text",
        {},
    ]

    for form in forms:
        assert type(Codec().load({"$": "exception", "$value": form})) is InertError


def test_a_factory_that_is_no_container_is_not_called_by_a_missing_key(watched: None) -> None:
    form = {"$": "defaultdict", "$factory": {"$": "class", "$class": shapes.name_of(Trap)}, "$pairs": [["a", 1]]}
    found = Codec().load(form)

    assert type(found) is Inert
    with pytest.raises(KeyError):
        found["missing"]


@pytest.mark.parametrize(
    "form",
    [
        {"$": "message", "type": "human"},
        {"$": "message", "type": "no such", "content": "x"},
        {"$": "message", "content": "x"},
        {"$": "message", "type": ["human"], "content": "x"},
        {"$": "message", "type": "human", "content": "x", "$set": 5},
        {"$": "message", "type": "human", "content": "x", "$extra": 5},
        {"$": "ndarray", "$shape": [1 << 40], "$dtype": "<f8", "$value": b"12345678"},
        {"$": "ndarray", "$shape": [1], "$dtype": "O", "$value": b"12345678"},
        {"$": "numpy", "$class": "numpy:float64", "$dtype": [["a", "O"]], "$value": b"12345678"},
        {"$": "array", "$code": "i", "$value": b"abc"},
        {"$": "timedelta", "$value": [1 << 70, 0, 0]},
        {"$": "deque", "$items": [1], "$maxlen": -1},
        {"$": "ZoneInfo", "$value": "../../etc/passwd"},
        {"$": "set", "$items": [[1]]},
        {"$": "range", "$value": ["a"]},
        {"$": "dict", "$pairs": [[1]]},
        {"$": "UUID", "$value": 5},
        {"$": "Decimal", "$value": {}},
        {"$": ["list"]},
        {"$": None, "x": 1},
    ],
    ids=str,
)
def test_a_damaged_form_is_inert_and_reported(form: Any) -> None:
    codec = Codec()
    found = codec.load([form, "after"], "channel")

    assert type(found[0]) is Inert and found[1] == "after"
    assert [loss.path for loss in codec.reports.losses] == ["channel[0]"]
    assert codec.load(codec.dump(found)) == found


def test_whatever_a_record_is_changed_to_only_lockstep_complains(watched: None) -> None:
    chance = random.Random(11)
    codec = Codec(TRAPS)
    good = Codec(TRAPS).dump(
        [
            AIMessage("x", tool_calls=[{"name": "a", "args": {"b": (1,)}, "id": "1"}]),
            Send("a", {"b": {1, 2}}),
            Command(goto="x", update=[("a", frozenset("ab"))]),
            TrapTuple(5),
            ValueError("x", KeyError("y")),
            {1: 2, (3,): b"4"},
        ]
    )
    scalars: list[Any] = [
        None,
        True,
        -1,
        1 << 80,
        0.5,
        "",
        "text",
        b"\0",
        [],
        {},
        [[]],
        {"$": "set"},
        {"$": "class", "$class": "os:system"},
    ]

    def changed(value: Any) -> Any:
        if chance.random() < 0.08:
            return chance.choice(scalars)
        if isinstance(value, list):
            return [changed(item) for item in value]
        if isinstance(value, dict):
            return {name: changed(item) for name, item in value.items() if chance.random() > 0.03}
        return value

    for _ in range(400):
        form = changed(good)
        try:
            codec.clone(codec.load(form))
        except LockstepError:
            continue


@pytest.mark.parametrize("depth", [100, 190])
def test_deep_values_come_back(depth: int) -> None:
    value: Any = "end"
    for number in range(depth):
        value = [value] if number % 2 else {"below": value}

    codec = Codec()
    found = codec.load(value)
    assert found == value and codec.clone(found) == value


def test_a_value_that_nests_deeper_than_any_that_is_stored_is_refused() -> None:
    for wrap in (lambda below: [below], lambda below: {"a": below}, lambda below: {"$": "tuple", "$items": [below]}):
        value: Any = "end"
        for _ in range(100_000):
            value = wrap(value)
        with pytest.raises(LockstepError) as error:
            Codec().load(value, "channel")
        assert error.value.code is Code.DAMAGED
        assert len(str(error.value)) < 500
        while isinstance(value, list | dict):  # freed step by step: CPython's own stack would not do for it at once
            value = value[0] if isinstance(value, list) else value.get("a", value.get("$items"))


ATTACK = ormsgpack.packb(
    ormsgpack.Ext(0, ormsgpack.packb(("os", "system", "touch /tmp/lockstep-was-here"))),
    option=ormsgpack.OPT_NON_STR_KEYS,
)


@pytest.mark.parametrize("kind", ["msgpack", "json", "pickle", "msgpack+xor", "pickle+xor", "null", "lockstep"])
def test_an_encrypting_checkpointer_takes_only_what_it_encrypted_itself(watched: None, kind: str) -> None:
    codec = Codec(serde=EncryptedSerializer(Xor()))
    data = ATTACK if "+" not in kind else Xor().encrypt(ATTACK)[1]

    with pytest.raises(StoreError) as error:
        codec.load({"$": "typed", "type": kind, "data": data}, "messages")

    assert error.value.code is Code.DAMAGED and "messages" in str(error.value)


@pytest.mark.parametrize("pickles", [False, True])
@pytest.mark.parametrize("kind", ["msgpack", "pickle"])
def test_langgraph_s_own_serializer_is_not_asked_to_read_bytes(watched: None, kind: str, pickles: bool) -> None:
    codec = Codec(serde=JsonPlusSerializer(pickle_fallback=pickles))
    found = codec.load({"$": "typed", "type": kind, "data": ATTACK})

    assert type(found) is Inert and "serde=" in found.why
    assert codec.load(codec.dump({"a": (1,)})) == {"a": (1,)}


def test_encrypted_state_comes_back_exactly_and_stands_nowhere_in_clear() -> None:
    codec = Codec([TrapTuple], serde=EncryptedSerializer(Xor()))
    state = {"talk": [HumanMessage("hunter2", id="1")], "t": (1, TrapTuple(2)), "n": 1 << 90, "odd": "a\ud800"}
    stored = codec.dump(state)

    assert codec.load(stored) == state
    assert b"hunter2" not in stored["data"] and "hunter2" not in str(stored)  # type: ignore[index, call-overload]
    assert type(codec.load(codec.dump("text"))) is str
    assert codec.dump("text") != "text"


def test_a_wrong_key_is_an_error_and_no_empty_state() -> None:
    stored = Codec(serde=EncryptedSerializer(Xor())).dump({"a": 1}, "state")

    with pytest.raises(StoreError, match=r"LS208.*state.*MAC check failed"):
        Codec(serde=EncryptedSerializer(Xor(key=1))).load(stored, "state")


class Upper:
    """A serializer of the program's own."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        return "upper", repr(obj).upper().encode()

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return data


def test_a_serializer_of_the_programs_own_stores_and_reads_all() -> None:
    codec = Codec(serde=Upper())

    assert codec.dump("a") == {"$": "typed", "type": "upper", "data": b"'A'"}
    assert codec.load(codec.dump("a")) == ("upper", b"'A'")
