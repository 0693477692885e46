"""What a program has declared of its functions, tools and methods, kept beside them: nothing about them changes.

An object is known by its identity, since tools of frameworks often cannot be hashed, and for as long as it lives.
"""

from __future__ import annotations

import functools
import types
import weakref
from collections.abc import Callable
from typing import Any

from lockstep.session.policy import Declared

# How a bound method is known: it is another object each time that it is looked up.
type _Key = int | tuple[int, object]

_BOUND = (types.MethodType, types.BuiltinMethodType, types.MethodWrapperType)
_declared: dict[_Key, tuple[Any, Declared]] = {}  # with what holds its owner: a weak reference where it can be one
_of_methods = 0  # how many of them are of bound methods
_MOST_LAYERS = 20  # of functions that wrap functions


def declare(obj: Any, declared: Declared) -> None:
    """Says it of this object. The last word counts."""
    global _of_methods
    if isinstance(obj, (staticmethod, classmethod)):
        obj = obj.__func__
    owner, key = _known_as(obj)
    if isinstance(key, tuple) and key not in _declared:
        _of_methods += 1
    try:
        holder: Any = weakref.ref(owner, functools.partial(_forget, key))
    except TypeError:
        holder = functools.partial(_same, owner)  # it cannot be watched, so it stays
    _declared[key] = holder, declared


def of(obj: Any) -> Declared | None:
    """What was declared of an object; of a method, else of the function; of a wrapper or a `functools.partial`, else
    of what is inside; of an instance, else of its class."""
    layer = obj
    for _ in range(_MOST_LAYERS):
        found = _of(*_known_as(layer))
        if found is not None:
            return found
        layer = _inside(layer)
        if layer is None:
            break
    for kind in type(obj).__mro__:
        found = _of(kind, id(kind))
        if found is not None:
            return found
    return None


def of_alike(same: Callable[[Any], bool]) -> Declared | None:
    """What was declared of a living object that `same` takes for the one meant: some frameworks copy the tools that
    they are given."""
    for holder, declared in list(_declared.values()):
        found = holder()
        if found is not None and same(found):
            return declared
    return None


def of_call(function: Any, args: tuple[Any, ...]) -> Declared | None:
    """What was declared of a function that is being called: of the method, where it is called as one."""
    if not _declared:
        return None
    if _of_methods and args:
        found = _of(args[0], (id(args[0]), id(function)))
        if found is not None:
            return found
    layer = function
    while layer is not None:
        entry = _declared.get(id(layer))
        if entry is not None and entry[0]() is layer:
            return entry[1]
        layer = layer.__dict__.get("__wrapped__") if type(layer) is types.FunctionType else None
    return None


def _of(owner: Any, key: _Key) -> Declared | None:
    found = _declared.get(key)
    # An identity is given again once its object is gone.
    return found[1] if found is not None and found[0]() is owner else None


def _known_as(obj: Any) -> tuple[Any, _Key]:
    """What must live for the object to be the same, and how it is known."""
    if type(obj) in _BOUND:
        owner = obj.__self__
        if owner is not None and not isinstance(owner, types.ModuleType):
            inner = obj.__func__ if type(obj) is types.MethodType else None
            return owner, (id(owner), id(inner) if inner is not None else obj.__name__)
    return obj, id(obj)


def _inside(obj: Any) -> Any:
    """What is inside of a method, partial or wrapper; None where nothing is."""
    if type(obj) is types.MethodType:
        return obj.__func__
    if isinstance(obj, functools.partial):
        return obj.func
    # Not by `getattr`: some objects have an answer to every name.
    return getattr(obj, "__dict__", {}).get("__wrapped__")


def _forget(key: _Key, _: Any) -> None:
    global _of_methods
    if _declared.pop(key, None) is not None and isinstance(key, tuple):
        _of_methods -= 1


def _same(owner: Any) -> Any:
    return owner
