"""Instances of classes as fields, and back, for `lockstep.session.snapshot`.

A *shape* is a family of classes whose instances are their fields: dataclasses, msgspec structs,
pydantic models, named tuples, plain Python objects. Taking them apart reads the fields where they lie
(no property, no `__getstate__`); putting them together makes a blank instance and writes the fields
where they lay. No constructor, validator, `__post_init__`, `__setstate__` or `__reduce__` runs, since
all of these may have effects, and validators may refuse what the program had itself made valid later.

Classes are looked up among what is loaded. Nothing is imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import MemberDescriptorType, ModuleType
from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from lockstep.errors import Code, LockstepError

_HEAP_TYPE = 1 << 9  # Py_TPFLAGS_HEAPTYPE: not one of the interpreter's own static classes
_POINTER = tuple.__itemsize__
_NO_SLOTS = frozenset({"__dict__", "__weakref__"})


class Parts(msgspec.Struct, frozen=True):
    """An instance taken apart. `hidden`: what is kept beside the fields, by our own names."""

    fields: dict[str, Any]
    hidden: dict[str, Any]


class Shape(msgspec.Struct, frozen=True):
    """One family. `fits`: whether a class belongs to it, asked both when taken and when restored."""

    name: str
    fits: Callable[[type], bool]
    take: Callable[[Any], Parts]
    make: Callable[[type, Parts], Any]


def shape_of(cls: type) -> Shape | None:
    """The first family that the class belongs to, None for what is more than its fields."""
    try:
        return _found[cls]
    except KeyError:
        shape = _found[cls] = next((shape for shape in SHAPES.values() if shape.fits(cls)), None)
        return shape


_found: WeakKeyDictionary[type, Shape | None] = WeakKeyDictionary()


# Classes by name.


def name_of(cls: type) -> str:
    """`module:qualified.name`, what `find` takes."""
    return f"{cls.__module__}:{cls.__qualname__}"


def find(name: object) -> type:
    """The loaded class of that name. Raises LockstepError LS110 where it isn't loaded or isn't one class."""
    module, _, path = str(name).partition(":")
    found: Any = sys.modules.get(module)
    for part in path.split("."):
        # `vars` and not getattr: a module's or metaclass's `__getattr__` could import or run anything.
        found = vars(found).get(part) if isinstance(found, type | ModuleType) else None
    if isinstance(found, type) and name_of(found) == name:
        return found
    # Made in a function, renamed by its package or a parametrised model: among all classes there are.
    loaded = {id(cls): cls for cls in _descendants(object) if name_of(cls) == name}
    if len(loaded) == 1:
        return next(iter(loaded.values()))
    if loaded:
        raise _unservable(f"there are {len(loaded)} classes {name} here; one defined once can be restored")
    raise _unservable(f"the class {name} is not loaded here: import its module where the program starts")


def restored_as(name: object, shape: str) -> type:
    """The same, and it must still be of the family that the recorded one was of."""
    cls = find(name)
    if not SHAPES[shape].fits(cls):
        raise _unservable(f"{name} was recorded as a {shape} and is none here")
    return cls


def in_class(cls: type, name: str) -> Any:
    """A class's attribute as it lies there, without its metaclass's or any descriptor's code."""
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


def _descendants(cls: type) -> Iterator[type]:
    waiting, seen = [cls], {id(cls)}
    while waiting:
        found = waiting.pop()
        yield found
        children: list[type] = type.__subclasses__(found)
        for child in children:
            if id(child) not in seen:
                seen.add(id(child))
                waiting.append(child)


def _unservable(message: str) -> LockstepError:
    return LockstepError(Code.UNSERVABLE, message)


# Plain Python instances: a dict, slots, or both.


def is_heap(cls: type) -> bool:
    """Whether the class was made at run time; the others are the interpreter's own."""
    return bool(cls.__flags__ & _HEAP_TYPE)


def adds_only_fields(cls: type, base: type) -> bool:
    """Whether instances of `cls` hold nothing but what `base`'s hold and Python attributes.

    By sizes, as `object.__reduce_ex__` finds it: memory that neither a slot nor the dict accounts for
    belongs to C code (a lock, a socket, a data frame's blocks).
    """
    if cls is not base and not is_heap(cls) and cls.__dictoffset__ <= 0:
        return False
    size = base.__basicsize__ + _POINTER * sum(1 for _ in _slots(cls))
    size += _POINTER * ((cls.__dictoffset__ > 0) - (base.__dictoffset__ > 0))
    size += _POINTER * ((cls.__weakrefoffset__ > 0) - (base.__weakrefoffset__ > 0))
    return cls.__itemsize__ == base.__itemsize__ and cls.__basicsize__ <= size


def attributes(obj: object) -> dict[str, Any]:
    """What lies in the instance: its slots that are set, then its dict."""
    found: dict[str, Any] = {}
    for name, slot in _slots(type(obj)):
        try:
            found[name] = slot.__get__(obj)
        except AttributeError:
            continue
    return found | _dict_of(obj)


def _dict_of(obj: object) -> dict[str, Any]:
    if not type(obj).__dictoffset__:
        return {}
    found: dict[str, Any] = object.__getattribute__(obj, "__dict__")  # past a `__getattribute__` of its own
    return found


def put_back(obj: object, fields: dict[str, Any]) -> None:
    """Writes attributes where `attributes` read them. Raises LockstepError LS110 where there is no place."""
    slots = dict(_slots(type(obj)))
    for name, value in fields.items():
        if name in slots:
            slots[name].__set__(obj, value)
        elif type(obj).__dictoffset__:
            _dict_of(obj)[name] = value
        else:
            raise _unservable(f"{name_of(type(obj))} has no {name} here")


def _slots(cls: type) -> Iterator[tuple[str, Any]]:
    """The member descriptors made by `__slots__` in Python classes."""
    for base in cls.__mro__:
        names = vars(base).get("__slots__", ())
        for name in (names,) if isinstance(names, str) else names:
            if name in _NO_SLOTS:
                continue
            mangled = name
            if name.startswith("__") and not name.endswith("__") and base.__name__.strip("_"):
                mangled = f"_{base.__name__.lstrip('_')}{name}"
            member = vars(base).get(mangled)
            if type(member) is MemberDescriptorType:
                yield mangled, member


def blank(cls: type) -> Any:
    """An instance that no code of the program has touched: made by the nearest built-in base."""
    base: Any
    for base in cls.__mro__:
        if "__new__" in vars(base) and not is_heap(base):
            try:
                return base.__new__(cls)
            except TypeError as problem:
                raise _unservable(f"a {name_of(cls)} cannot be made: {problem}") from None
    raise _unservable(f"{name_of(cls)} has no built-in base")


def _is_plain(cls: type) -> bool:
    # A bare object() is a sentinel, nothing but its identity. `__del__` says that the instance owns
    # something; a restored one must not free it a second time.
    return cls is not object and adds_only_fields(cls, object) and in_class(cls, "__del__") is None


def _take_plain(obj: Any) -> Parts:
    return Parts(attributes(obj), {})


def _make_plain(cls: type, parts: Parts) -> Any:
    obj = blank(cls)
    put_back(obj, parts.fields)
    return obj


# Dataclasses: plain instances, and it is known which fields there should be.


def _is_dataclass(cls: type) -> bool:
    return isinstance(in_class(cls, "__dataclass_fields__"), dict) and _is_plain(cls)


def _take_dataclass(obj: Any) -> Parts:
    fields = attributes(obj)
    unset = [name for name in _dataclass_fields(type(obj)) if name not in fields]
    return Parts(fields, {"unset": unset} if unset else {})


def _make_dataclass(cls: type, parts: Parts) -> Any:
    for name in _dataclass_fields(cls):
        if name not in parts.fields and name not in parts.hidden.get("unset", ()):
            raise _unservable(f"the recorded {name_of(cls)} has no {name}")
    return _make_plain(cls, parts)


def _dataclass_fields(cls: Any) -> Iterator[str]:
    # Class variables and init-only ones are listed too, and are no fields of an instance.
    return (name for name, field in cls.__dataclass_fields__.items() if field._field_type.name == "_FIELD")


# msgspec structs.


def _is_struct(cls: type) -> bool:
    return issubclass(cls, msgspec.Struct)


def _take_struct(obj: Any) -> Parts:
    more = _dict_of(obj)
    fields = {name: object.__getattribute__(obj, name) for name in type(obj).__struct_fields__}
    return Parts(fields, {"more": dict(more)} if more else {})


def _make_struct(cls: Any, parts: Parts) -> Any:
    if set(parts.fields) != set(cls.__struct_fields__):
        names = sorted(set(parts.fields) ^ set(cls.__struct_fields__))
        raise _unservable(f"the recorded {name_of(cls)} has other fields: {', '.join(names)}")
    silent = _without_post_init(cls)
    obj = silent(**parts.fields)
    if silent is not cls:
        # Not `object.__setattr__`: 3.12 refuses it for structs, which have one of their own.
        vars(object)["__class__"].__set__(obj, cls)
    put_back(obj, parts.hidden.get("more", {}))
    return obj


_silent: dict[type, Any] = {}


def _without_post_init(cls: Any) -> Any:
    """A struct cannot be made blank; one of a subclass whose `__post_init__` does nothing can change its class."""
    if in_class(cls, "__post_init__") is None:
        return cls
    if cls not in _silent:
        _silent[cls] = type(cls)(cls.__name__, (cls,), {"__post_init__": lambda self: None, "__module__": __name__})
    return _silent[cls]


# pydantic models (v2): what their own `__setstate__` writes.

_MODEL_SLOTS = {
    "set": "__pydantic_fields_set__",
    "extra": "__pydantic_extra__",
    "private": "__pydantic_private__",
}


def _is_model(cls: type) -> bool:
    base = vars(sys.modules.get("pydantic.main", sys)).get("BaseModel")
    if not isinstance(base, type) or not issubclass(cls, base):
        return False
    return {name for name, _ in _slots(cls)} == set(_MODEL_SLOTS.values())


def _take_model(obj: Any) -> Parts:
    hidden: dict[str, Any] = {}
    for short, name in _MODEL_SLOTS.items():
        found = object.__getattribute__(obj, name)
        if found is not None:
            hidden[short] = sorted(found) if short == "set" else found
    return Parts(dict(_dict_of(obj)), hidden)


def _make_model(cls: Any, parts: Parts) -> Any:
    for name, field in cls.__pydantic_fields__.items():
        if name not in parts.fields and field.is_required():
            raise _unservable(f"the recorded {name_of(cls)} has no {name}")
    obj = blank(cls)
    object.__setattr__(obj, "__dict__", dict(parts.fields))
    for short, name in _MODEL_SLOTS.items():
        found = parts.hidden.get(short)
        object.__setattr__(obj, name, set(found or ()) if short == "set" else found)
    return obj


# Named tuples.


def is_namedtuple(cls: type) -> bool:
    """Whether instances are tuples with named fields and nothing else."""
    return issubclass(cls, tuple) and isinstance(in_class(cls, "_fields"), tuple) and adds_only_fields(cls, tuple)


def _take_namedtuple(obj: Any) -> Parts:
    more = attributes(obj)
    return Parts(dict(zip(type(obj)._fields, tuple.__iter__(obj), strict=True)), {"more": more} if more else {})


def _make_namedtuple(cls: Any, parts: Parts) -> Any:
    if set(parts.fields) != set(cls._fields):
        raise _unservable(f"the recorded {name_of(cls)} has other fields: {', '.join(parts.fields)}")
    obj = tuple.__new__(cls, (parts.fields[name] for name in cls._fields))
    put_back(obj, parts.hidden.get("more", {}))
    return obj


SHAPES = {
    shape.name: shape
    for shape in (
        Shape("model", _is_model, _take_model, _make_model),
        Shape("struct", _is_struct, _take_struct, _make_struct),
        Shape("dataclass", _is_dataclass, _take_dataclass, _make_dataclass),
        Shape("namedtuple", is_namedtuple, _take_namedtuple, _make_namedtuple),
        Shape("object", _is_plain, _take_plain, _make_plain),
    )
}
