"""Python objects as inert values and back: arguments and results of tools, states of steps.

`to_value` takes a snapshot in the calling thread: what the program does to the object later does not
change it. JSON-like data stands as itself, so that it reads well and can be edited. Everything else is
a *tagged* map whose key `$` says what it is: `{"$": "tuple", "$items": […]}`,
`{"$": "dataclass", "$class": "shop.models:Order", "id": 452, "status": "paid"}`. A map of the program's
own that has such a key, or keys that are no text, is tagged itself: `{"$": "dict", "$pairs": [[k, v], …]}`.

Two references to one object become two equal objects; cycles are refused.

`from_value` makes objects of the same classes again, which must be loaded already, and runs none of
their code (see `lockstep.session.shapes`).
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any

from lockstep.errors import Code, LockstepError, StoreError
from lockstep.log import canonical
from lockstep.log.model import Value
from lockstep.session import builtin_values, shapes

TAG = "$"

# Session and store put a few levels around a value.
_DEPTH = canonical.MAX_DEPTH - 20

# (where the container is, the step from it): only an error turns this into text.
type At = tuple[At, str] | None


def to_value(obj: Any) -> Value:
    """The object as data, as it is now. Raises StoreError LS207 with the path to what can't be stored."""
    cls = type(obj)
    if cls in canonical.LEAVES:
        plain: Value = obj
        return plain
    if cls is dict:
        # Most are flat. The copy comes first: another thread may add to it meanwhile.
        fields: dict[Any, Any] = dict(obj)
        if _flat(fields.values()) and _TEXT.issuperset(map(type, fields)) and TAG not in fields:
            return fields
    elif cls is list:
        items: list[Any] = list(obj)
        if _flat(items):
            return items
    return Taker().value(obj, None)


_TEXT = frozenset({str})


def _flat(items: Iterable[Any]) -> bool:
    return canonical.LEAVES.issuperset(map(type, items))


def _plain(value: Value) -> bool:
    """Whether it stands for itself, and holds nothing that might not."""
    if type(value) is dict:
        return TAG not in value and _flat(value.values())
    return _flat(value) if type(value) is list else True


def from_value(value: Value) -> Any:
    """The object that `to_value` was given, or one equal to it. Raises LockstepError LS110 where a class
    isn't loaded here, is another kind of class now, or has other fields."""
    return value if _plain(value) else _Maker().value(value)


def taken(obj: Any) -> Value:
    """An object as `to_value` has it; one that is no data (a client, a connection) counts by its class."""
    try:
        return to_value(obj)
    except LockstepError:
        return by_class(obj)


def by_class(obj: Any) -> Value:
    """What stands for an object that is no data: its class, and never its address."""
    cls = type(obj)
    return {TAG: "object", "$class": f"{cls.__module__}:{cls.__qualname__}"}


def to_key(value: Value) -> Value:
    """The value with what has no order (sets, maps) in one order, for match keys and comparisons.

    `to_value` keeps the order in which a set was iterated, since the program may depend on it.
    """
    if _plain(value):
        return value
    if isinstance(value, list):
        return [to_key(item) for item in value]
    if not isinstance(value, dict):
        return value
    parts = {name: to_key(item) for name, item in value.items()}
    name = builtin_values.UNORDERED.get(str(parts.get(TAG)), "")
    items = parts.get(name)
    if isinstance(items, list):
        parts[name] = sorted(items, key=canonical.canonical)
    return parts


class Taker:
    """Takes one object apart. Holds the containers that are open, to find cycles.

    An adapter's own knows more kinds of objects (`_tagged`). `root`: what an error calls the whole.
    """

    def __init__(self, root: str = "$") -> None:
        self._root = root
        self._open: set[int] = set()

    def value(self, obj: Any, at: At, depth: int = 0) -> Value:
        cls = type(obj)
        if cls in canonical.LEAVES:
            plain: Value = obj
            return plain
        if depth > _DEPTH:
            raise self._unstorable("this nests too deep to be stored", at)
        if id(obj) in self._open:
            raise self._unstorable(f"a {_shown(cls)} contains itself", at)
        self._open.add(id(obj))
        try:
            if cls is list:
                return self._list(obj, at, depth)
            if cls is dict and TAG not in obj and all(type(name) is str for name in list(obj)):
                return self._map(obj, at, depth)
            return self._tagged(obj, cls, at, depth)
        finally:
            self._open.discard(id(obj))

    def _list(self, items: Iterable[Any], at: At, depth: int) -> list[Value]:
        return [
            item if type(item) in canonical.LEAVES else self.value(item, (at, f"[{number}]"), depth + 1)
            for number, item in enumerate(items)
        ]

    def _map(self, fields: dict[str, Any], at: At, depth: int) -> dict[str, Value]:
        # The items are copied first: another thread may add some meanwhile.
        return {
            name: item if type(item) in canonical.LEAVES else self.value(item, (at, step(name)), depth + 1)
            for name, item in list(fields.items())
        }

    def _tagged(self, obj: Any, cls: type, at: At, depth: int) -> Value:
        if isinstance(obj, type):
            return {TAG: "class", "$class": shapes.name_of(obj)}
        if obj is Ellipsis or obj is NotImplemented:
            return {TAG: "constant", "$value": repr(obj)}
        if isinstance(obj, BaseException):
            from lockstep.session import exceptions

            return {TAG: "exception", "$value": exceptions.encode(obj)}
        if isinstance(obj, enum.Enum):
            return self._enum(obj, cls, at, depth)
        kind = None if shapes.is_namedtuple(cls) else builtin_values.kind_of(cls)
        if kind is not None:
            return self._builtin(obj, cls, kind, at, depth)
        shape = shapes.shape_of(cls)
        if shape is None:
            raise self._unstorable(f"a {_shown(cls)} can't be stored", at)
        return self._shaped(obj, cls, shape, at, depth)

    def _enum(self, obj: enum.Enum, cls: type, at: At, depth: int) -> Value:
        form: dict[str, Value] = {TAG: "enum", "$class": shapes.name_of(cls)}
        if shapes.in_class(cls, "_member_map_").get(obj._name_) is obj:
            return {**form, "$name": obj._name_}
        # A combination of flags is no member of its own.
        return {**form, "$value": self.value(obj._value_, (at, ".value"), depth + 1)}

    def _builtin(self, obj: Any, cls: type, kind: builtin_values.Kind, at: At, depth: int) -> Value:
        try:
            taken = kind.take(obj)
        except ValueError as problem:
            raise self._unstorable(f"a {_shown(cls)} can't be stored: {problem}", at) from None
        form: dict[str, Value] = {TAG: kind.tag}
        if not builtin_values.is_exactly(cls, kind):
            form["$class"] = shapes.name_of(cls)
            more = {} if kind.named else shapes.attributes(obj)
            if more:
                form["$more"] = self.value(more, at, depth + 1)
        for name, part in taken.items():
            if type(part) is builtin_values.Pairs:
                form[name] = [self._pair(key, item, at, depth + 3) for key, item in part]
            elif type(part) is list:
                form[name] = self._list(part, at, depth + 1)
            else:
                form[name] = self.value(part, (at, step(name.removeprefix(TAG))), depth + 1)
        return form

    def _pair(self, key: Any, item: Any, at: At, depth: int) -> Value:
        # Its own `__repr__` is the program's code; the shown class must do.
        shown = f"[{key!r}]" if type(key) in canonical.LEAVES else f"[{_shown(type(key))}]"
        return [self.value(key, (at, f"{shown} (key)"), depth), self.value(item, (at, shown), depth)]

    def _shaped(self, obj: Any, cls: type, shape: shapes.Shape, at: At, depth: int) -> Value:
        parts = shape.take(obj)
        form: dict[str, Value] = {TAG: shape.name, "$class": shapes.name_of(cls)}
        for name, part in parts.hidden.items():
            form[f"${name}"] = self.value(part, at, depth + 1)
        if any(type(name) is not str or name.startswith(TAG) for name in parts.fields):
            return {**form, "$fields": self.value(parts.fields, at, depth + 1)}
        return form | self._map(parts.fields, at, depth)

    def _unstorable(self, message: str, at: At) -> StoreError:
        return StoreError(Code.UNSTORABLE, f"{message}, at {self._root}{path(at)}")


class _Maker:
    """Makes objects from values."""

    def value(self, value: Value) -> Any:
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if not isinstance(value, dict):
            return value
        tag = value.get(TAG)
        if tag is None:
            return {name: self.value(item) for name, item in value.items()}
        try:
            return self._tagged(str(tag), value)
        except (KeyError, TypeError, ValueError, AttributeError) as problem:
            what = value.get("$class", tag)
            raise LockstepError(Code.UNSERVABLE, f"the recorded {what!s} can't be restored: {problem!r}") from None

    def _tagged(self, tag: str, form: dict[str, Any]) -> Any:
        if tag in builtin_values.KINDS:
            return self._builtin(builtin_values.KINDS[tag], form)
        if tag in shapes.SHAPES:
            return self._shaped(shapes.SHAPES[tag], form)
        if tag == "class":
            return shapes.find(form["$class"])
        if tag == "enum":
            return self._enum(form)
        if tag == "constant":
            return {"Ellipsis": Ellipsis, "NotImplemented": NotImplemented}[str(form["$value"])]
        if tag == "exception":
            from lockstep.session import exceptions

            return exceptions.decode(form["$value"])
        raise LockstepError(Code.UNSERVABLE, f"the record holds a {tag!r}, which this version does not know")

    def _enum(self, form: dict[str, Any]) -> Any:
        cls = shapes.find(form["$class"])
        if not issubclass(cls, enum.Enum):
            raise LockstepError(Code.UNSERVABLE, f"{form['$class']} was recorded as an enum and is none here")
        if "$name" in form:
            member = shapes.in_class(cls, "_member_map_").get(form["$name"])
            if member is None:
                raise LockstepError(Code.UNSERVABLE, f"{form['$class']} has no member {form['$name']} here")
            return member
        return cls(self.value(form["$value"]))

    def _builtin(self, kind: builtin_values.Kind, form: dict[str, Any]) -> Any:
        cls = shapes.find(form["$class"]) if "$class" in form else None
        if cls is not None and builtin_values.kind_of(cls) is not kind:
            raise LockstepError(Code.UNSERVABLE, f"{form['$class']} was recorded as a {kind.tag} and is none here")
        parts = {name: self.value(part) for name, part in form.items() if name not in (TAG, "$class", "$more")}
        made = kind.make(cls, parts)
        if "$more" in form:
            shapes.put_back(made, self.value(form["$more"]))
        return made

    def _shaped(self, shape: shapes.Shape, form: dict[str, Any]) -> Any:
        cls = shapes.restored_as(form["$class"], shape.name)
        fields = {name: self.value(part) for name, part in form.items() if not name.startswith(TAG)}
        hidden = {
            name.removeprefix(TAG): self.value(part)
            for name, part in form.items()
            if name.startswith(TAG) and name not in (TAG, "$class")
        }
        return shape.make(cls, shapes.Parts(hidden.pop("fields", fields), hidden))


def path(at: At) -> str:
    """The steps to a place, as text: `.messages[3].content`."""
    steps: list[str] = []
    while at is not None:
        at, last = at
        steps.append(last)
    return "".join(reversed(steps))


def _shown(cls: type) -> str:
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


def step(name: object) -> str:
    return f".{name}" if isinstance(name, str) and name.isidentifier() else f"[{name!r}]"
