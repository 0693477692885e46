"""LangChain's messages as data, and back: most of what graphs keep is these.

    {"$": "message", "type": "human", "content": "hello", "id": "…"}

What a message was given stands there, and nothing that only is its class's default. A field that was given but holds
the default, or the reverse, is told by `$set`, the names that `model_fields_set` has. No code of the class runs: the
fields are read and written where they lie.

Written for langchain-core 1.0 to 1.8.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable
from typing import Any

import msgspec
from langchain_core import messages as _core
from pydantic import BaseModel

from lockstep.log.canonical import LEAVES
from lockstep.log.model import Value

TAG = "message"
_NAMES = ("HumanMessage", "AIMessage", "SystemMessage", "ToolMessage", "ChatMessage", "FunctionMessage")
_EMPTY = (dict, list)
_REQUIRED: Any = object()

type Dump = Callable[[Any, str], Value]
type Load = Callable[[Value, str], Any]


class Plan(msgspec.Struct, frozen=True):
    """One class of messages: the fields in their order, and what each holds when it was not given: a plain value, or
    an empty container of the class in `empty`."""

    cls: type
    type: str
    defaults: dict[str, Any]
    empty: dict[str, Any]


def _plan(cls: Any) -> Plan | None:
    defaults: dict[str, Any] = {}
    empty: dict[str, Any] = {}
    for name, field in cls.__pydantic_fields__.items():
        factory = field.default_factory
        if factory is not None:
            if factory not in _EMPTY:
                return None
            empty[name] = factory
            defaults[name] = _REQUIRED
        elif field.is_required():
            defaults[name] = _REQUIRED
        elif type(field.default) in LEAVES:
            defaults[name] = field.default
        else:
            return None
    kind = defaults.get("type")
    return Plan(cls, kind, defaults, empty) if isinstance(kind, str) else None


def _plans() -> list[Plan]:
    names = [*_NAMES, *(f"{name}Chunk" for name in _NAMES), "RemoveMessage"]
    made = (_plan(getattr(_core, name)) for name in names if hasattr(_core, name))
    return [plan for plan in made if plan is not None]


BY_CLASS = {plan.cls: plan for plan in _plans()}
BY_TYPE = {plan.type: plan for plan in BY_CLASS.values()}


def dump(message: Any, plan: Plan, below: Dump) -> Value:
    """The message as data; None for one that is odd and must be stored as any other object. `below` stores what a
    field holds."""
    fields = message.__dict__
    given = message.__pydantic_fields_set__
    extra = message.__pydantic_extra__
    if fields.get("type") != plan.type or type(extra) is not dict or message.__pydantic_private__ is not None:
        return None
    if len(fields) != len(plan.defaults):
        return None
    form: dict[str, Value] = {"$": TAG, "type": plan.type}
    defaults = plan.defaults
    stored = 0
    differs = "type" in given
    for name, item in fields.items():
        kind = type(item)
        if name in given:
            stored += 1
        else:
            default = defaults.get(name, _REQUIRED)
            if item is default or (kind in LEAVES and kind is type(default) and item == default):
                continue
            if not item and kind is plan.empty.get(name):
                continue
            differs = True
        form[name] = item if kind in LEAVES else below(item, name)
    if differs or stored != len(given):
        form["$set"] = sorted(given)
    if extra:
        form["$extra"] = below(extra, "$extra")
    return form


def is_as_stored(message: Any, plan: Plan, form: dict[str, Any]) -> bool | None:
    """Whether it still is what it was stored as; None where only `dump` tells."""
    given = message.__pydantic_fields_set__
    if message.__pydantic_extra__ or "$extra" in form or form.get("type") != plan.type or "type" in given:
        return None
    count = 2
    for name, item in message.__dict__.items():
        if name in form:
            stored = form[name]
            if name == "type":
                continue
            count += 1
            if item is stored:
                continue
            kind = type(item)
            if kind in LEAVES:
                if kind is not type(stored) or item != stored:
                    return False
            elif kind not in _EMPTY or not equal(item, stored):
                return None
        elif name in given:
            return False
        elif item is not plan.defaults[name] and (item or type(item) is not plan.empty.get(name)):
            return None
    if "$set" in form:
        return None
    return count == len(form) and count - 2 == len(given)


def watch(message: Any) -> Callable[[], bool] | None:
    """What tells whether the message still is as it is now; None for one that is not worth it. It may say no where
    nothing is changed. Hot: each put asks about a hundred messages."""
    if message.__pydantic_extra__:
        return None
    before = dict(message.__dict__)
    given = message.__pydantic_fields_set__.copy()
    empty: list[Any] = []
    others: list[tuple[Any, bytes]] = []
    for item in before.values():
        if type(item) in _EMPTY:
            if item:
                try:
                    others.append((item, marshal.dumps(item, 2)))
                except ValueError:
                    return None
            else:
                empty.append(item)
        elif item is not None and type(item) is not str:
            return None  # True would pass for 1
    dumps = marshal.dumps

    def same() -> bool:
        # Containers are compared by identity here, and by content below.
        if message.__dict__ != before or message.__pydantic_fields_set__ != given or message.__pydantic_extra__:
            return False
        if any(empty):
            return False
        for item, data in others:
            if dumps(item, 2) != data:
                return False
        return True

    return same


def equal(item: Any, stored: Any) -> bool:
    """Whether plain data is equal, of the same types and in the same order: False also where it may be."""
    try:
        # Not `==`: an object deep in it might answer that by its own code, and True is equal to 1.
        return marshal.dumps(item, 2) == marshal.dumps(stored, 2)
    except ValueError:
        return False


def load(form: dict[str, Any], below: Load) -> Any:
    """The message of a form. Raises ValueError or KeyError where it is none."""
    plan = BY_TYPE[form["type"]]
    fields: dict[str, Any] = {}
    given = set()
    for name, default in plan.defaults.items():
        if name in form:
            item = form[name]
            fields[name] = item if type(item) in LEAVES else below(item, name)
            given.add(name)
        elif name in plan.empty:
            fields[name] = plan.empty[name]()
        elif default is _REQUIRED:
            raise ValueError(f"it has no {name}")
        else:
            fields[name] = default
    given.discard("type")
    if "$set" in form:
        given = {name for name in form["$set"] if type(name) is str}
    extra = below(form["$extra"], "$extra") if "$extra" in form else {}
    if not isinstance(extra, dict):
        raise ValueError("its extra fields are none")
    # Fields of another version of the class are kept as the extra ones that such a class would take.
    for name, item in form.items():
        if name not in fields and not name.startswith("$"):
            extra[name] = below(item, name)
    return _made(plan.cls, fields, given, extra)


def pattern(message: Any, below: Callable[[Any], Any]) -> Callable[[], Any]:
    """What makes copies of a message, whose containers are copies. Hot: a history of n steps asks for n * n / 2."""
    cls = type(message)
    fields: dict[str, Any] = message.__dict__
    given: set[str] = message.__pydantic_fields_set__
    extra = message.__pydantic_extra__
    dicts: list[str] = []
    lists: list[str] = []
    others: list[tuple[str, Any]] = []
    for name, item in fields.items():
        if type(item) is dict and not item:
            dicts.append(name)
        elif type(item) is list and not item:
            lists.append(name)
        elif type(item) not in LEAVES:
            others.append((name, item))
    new, put_fields, put_given = object.__new__, _put_fields, _put_given
    put_extra, put_private = _put_extra, _put_private

    def make() -> Any:
        copied = fields.copy()
        for name in dicts:
            copied[name] = {}
        for name in lists:
            copied[name] = []
        for name, item in others:
            copied[name] = below(item)
        made: Any = new(cls)
        put_fields(made, copied)
        put_given(made, given.copy())
        put_extra(made, below(extra))
        put_private(made, None)
        return made

    return make


def clone(message: Any, below: Callable[[Any], Any]) -> Any:
    """A copy, whose containers are copies."""
    return pattern(message, below)()


def _made(cls: type, fields: dict[str, Any], given: set[str], extra: Any) -> Any:
    message: Any = object.__new__(cls)
    _put_fields(message, fields)
    _put_given(message, given)
    _put_extra(message, extra)
    _put_private(message, None)
    return message


def _slot(name: str) -> Callable[[Any, Any], None]:
    """What writes one of the places of a model's instance, whatever `__setattr__` its class has."""
    put: Callable[[Any, Any], None] = vars(BaseModel)[name].__set__
    return put


_put_fields = _slot("__dict__")
_put_given = _slot("__pydantic_fields_set__")
_put_extra = _slot("__pydantic_extra__")
_put_private = _slot("__pydantic_private__")
