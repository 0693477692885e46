"""Takes objects of a graph's state apart, for `lockstep_langgraph.values`."""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable
from datetime import date, datetime
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import pydantic_core

from lockstep.log.model import Value
from lockstep.session import builtin_values, shapes, snapshot
from lockstep.session.snapshot import TAG, At
from lockstep_langgraph import allowed, inert, losses, messages
from lockstep_langgraph.inert import Inert, InertError

# pydantic's own, which its `HttpUrl` and the like hold.
_URLS = frozenset((pydantic_core.Url, pydantic_core.MultiHostUrl))


class Taker(snapshot.Taker):
    """Takes one object apart. `lost`: where, what and why, of what does not come back as it is."""

    def __init__(self, listed: allowed.Allowed, root: str) -> None:
        super().__init__(root)
        self._allowed = listed
        self.lost: list[tuple[At, str, str]] = []

    def value(self, obj: Any, at: At, depth: int = 0) -> Value:
        plan = messages.BY_CLASS.get(type(obj))
        if plan is not None:
            form = messages.dump(obj, plan, lambda item, name: self.value(item, (at, f".{name}"), depth + 1))
            if form is not None:
                return form
        return super().value(obj, at, depth)

    def _tagged(self, obj: Any, cls: type, at: At, depth: int) -> Value:
        if cls is Inert:
            return self._inert(obj, at, depth)
        if cls is InertError:
            return inert.form_of(obj)
        if losses.is_secret(cls):
            return self._secret(obj, cls, at, depth)
        if cls in _URLS:
            return {TAG: "url", "$class": shapes.name_of(cls), "$value": str(obj)}
        if issubclass(cls, defaultdict) and not (obj.default_factory is None or isinstance(obj.default_factory, type)):
            self.lost.append((at, shapes.name_of(cls), "its factory is a function, and comes back as none"))
            obj = _without_factory(obj, cls)
        if isinstance(obj, FunctionType | BuiltinFunctionType | MethodType):
            raise self._unstorable(f"a function can't be stored ({obj.__qualname__})", at)
        base = _base(cls)
        if base is not None:
            plain = base(obj)
            self.lost.append((at, shapes.name_of(cls), f"it comes back as a plain {type(plain).__name__}"))
            return self.value(plain, at, depth + 1)
        form = super()._tagged(obj, cls, at, depth)
        if isinstance(form, dict):
            self._told(form, obj, cls, at)
        return form

    def _told(self, form: dict[str, Value], obj: Any, cls: type, at: At) -> None:
        tag = form[TAG]
        if tag == "exception":
            if not (allowed.is_error(cls) or self._allowed.holds(cls)):
                self.lost.append((at, shapes.name_of(cls), losses.NOT_ALLOWED))
        elif tag == "class":
            if not (self._allowed.holds(obj) or self._allowed.is_factory(obj)):
                self.lost.append((at, f"class {shapes.name_of(obj)}", losses.NOT_ALLOWED))
        elif "$class" in form and tag != "numpy" and not self._allowed.holds(cls):
            self.lost.append((at, shapes.name_of(cls), losses.NOT_ALLOWED))

    def _inert(self, obj: Inert, at: At, depth: int) -> Value:
        form = inert.form_of(obj)
        names = inert.names(form)
        return inert.header(form) | {names.get(name, name): part for name, part in self._map(obj, at, depth).items()}

    def _secret(self, obj: Any, cls: type, at: At, depth: int) -> Value:
        # Under this name what hides secrets takes any value for one (`lockstep.log.names`).
        return {
            TAG: "secret",
            "$class": shapes.name_of(cls),
            "password": self.value(shapes.attributes(obj)["_secret_value"], at, depth + 1),
        }


def _without_factory(obj: Any, cls: Any) -> Any:
    made = defaultdict.__new__(cls)
    dict.update(made, obj)
    for name, item in shapes.attributes(obj).items():
        shapes.put_back(made, {name: item})
    return made


def _date(obj: Any) -> date:
    return date(obj.year, obj.month, obj.day)


# What extensions in C make of built-in classes, as pandas its timestamps: such are no more than their base in a store.
_BASES: tuple[tuple[type, Callable[[Any], Any]], ...] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (datetime, lambda obj: datetime.combine(_date(obj), datetime.timetz(obj))),
    (date, _date),
    (memoryview, memoryview.tobytes),
)


def _base(cls: type) -> Callable[[Any], Any] | None:
    """What makes a value that can be stored of one that is more, None where that is not needed or not known."""
    for base, plain in _BASES:
        if issubclass(cls, base):
            fits = builtin_values.kind_of(cls) is not None or issubclass(cls, enum.Enum)
            return None if fits else plain
    return None
