"""The types that the program's graphs declare: fields of their states, inputs and contexts, and what tasks return.

A graph is noted when it is made, which costs nothing; its types are collected when a value of an unknown class is
met. `compile()` hands them to a checkpointer by itself (`with_allowlist`) only under `LANGGRAPH_STRICT_MSGPACK`.

Tried with langgraph 1.1 to 1.2.24.
"""

from __future__ import annotations

import functools
import gc
import sys
import typing
import weakref
from collections.abc import Callable, Iterator
from threading import RLock
from types import FunctionType
from typing import Any

type Name = tuple[str, str]

_found: dict[Name, type] = {}
_waiting: weakref.WeakSet[Any] = weakref.WeakSet()
_lock = RLock()
_state = {"noting": False, "looked": False}


def note_graphs() -> None:
    """From now on graphs and tasks are noted when they are made. Once; the others are found when one is needed."""
    with _lock:
        if _state["noting"]:
            return
        for cls in _makers():
            cls.__init__ = _noting(cls.__init__)
        _state["noting"] = True


def note(graph: Any) -> None:
    """This graph's types are declared."""
    with _lock:
        _waiting.add(graph)


def types() -> dict[Name, type]:
    """Every class that a graph of this process declares, by module and name."""
    if _state["looked"] and not _waiting:
        return _found
    with _lock:
        waiting = list(_waiting)
        _waiting.clear()
        if not _state["looked"]:
            _state["looked"] = True
            waiting += _made_before()
        for made in waiting:
            for annotation in _annotations(made):
                for cls in classes_in(annotation):
                    _found[cls.__module__, cls.__name__] = cls
    return _found


def classes_in(annotation: Any, seen: set[int] | None = None) -> Iterator[type]:
    """The classes that values of such a field may have, and those of their fields in turn."""
    seen = set() if seen is None else seen
    if id(annotation) in seen:
        return
    seen.add(id(annotation))
    for part in _parts(annotation):
        yield from classes_in(part, seen)
    if isinstance(annotation, type) and not typing.is_typeddict(annotation) and not _is_common(annotation):
        yield annotation


def _parts(annotation: Any) -> Iterator[Any]:
    if isinstance(annotation, typing.TypeAliasType):
        yield annotation.__value__
    elif isinstance(annotation, typing.TypeVar):
        yield from (annotation.__bound__, *annotation.__constraints__)
    elif typing.get_origin(annotation) is typing.Literal:
        return
    elif typing.get_origin(annotation) is not None:
        yield typing.get_origin(annotation)
        yield from typing.get_args(annotation)
    elif isinstance(annotation, list | tuple):
        yield from annotation
    elif hasattr(annotation, "__supertype__"):
        yield annotation.__supertype__
    elif isinstance(annotation, type) and not _is_common(annotation):
        yield from _fields(annotation).values()
        yield from annotation.__orig_bases__ if hasattr(annotation, "__orig_bases__") else ()


def _fields(cls: type) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except Exception:
        # An annotation that names what is only imported for type checkers. Those that pydantic resolved, it knows.
        known = vars(cls).get("__pydantic_fields__")
        return {name: field.annotation for name, field in known.items()} if isinstance(known, dict) else {}


def _is_common(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in sys.stdlib_module_names or cls.__module__.startswith(
        ("pydantic.", "pydantic_core.", "typing_extensions", "msgspec", "langgraph.", "langchain_core.")
    )


def _annotations(made: Any) -> Iterator[Any]:
    """What a graph or task says of its values."""
    for channel in getattr(made, "channels", {}).values():
        for name in ("ValueType", "UpdateType"):
            try:
                yield getattr(channel, name)
            except Exception:
                continue
    builder = getattr(made, "builder", None)
    yield from getattr(builder, "schemas", {})
    for node in getattr(builder, "nodes", {}).values():
        yield getattr(node, "input_schema", None)
    yield getattr(made, "context_schema", None)
    yield from _responses(made)
    function = getattr(made, "func", None)
    if callable(function):
        try:
            yield typing.get_type_hints(getattr(function, "func", function), include_extras=True).get("return")
        except Exception:
            return


# Agents whose answers have a class that no field of their state declares: the nodes' module, and the variable.
_RESPONSES = {
    "langchain.agents.factory": "initial_response_format",
    "langgraph.prebuilt.chat_agent_executor": "response_format",
}


def _responses(made: Any) -> Iterator[Any]:
    for node in getattr(made, "nodes", {}).values():
        function: Any = getattr(getattr(node, "bound", None), "func", None)
        name = _RESPONSES.get(getattr(function, "__module__", ""))
        if name is None or not isinstance(function, FunctionType):
            continue
        for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if variable == name:
                found = cell.cell_contents
                yield getattr(found, "schema", None) if not isinstance(found, type) else found


def _makers() -> list[Any]:
    from langgraph.pregel import Pregel

    from langgraph import func

    task = getattr(func, "_TaskFunction", None)
    return [Pregel] if task is None else [Pregel, task]


def _noting(init: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(init)
    def noted(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        note(self)

    return noted


def _made_before() -> list[Any]:
    makers = set(_makers())
    # Not `isinstance`, which asks an object that poses as another: that is the program's code.
    return [found for found in gc.get_objects() if not makers.isdisjoint(type(found).__mro__)]
