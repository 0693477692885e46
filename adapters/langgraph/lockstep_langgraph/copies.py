"""Copies of what was restored, much faster than restoring it again: a history has the same messages at each step.

No code of the copied classes runs. What cannot change, or what is told by its identity, is not copied.
"""

from __future__ import annotations

import enum
from typing import Any

from lockstep.log.canonical import LEAVES
from lockstep.session import builtin_values, shapes
from lockstep_langgraph import inert, messages
from lockstep_langgraph.inert import Inert

# Kinds whose values can't change, and hold nothing that can.
_FIXED = frozenset(
    (
        *(
            "str",
            "int",
            "float",
            "bytes",
            "complex",
            "range",
            "Decimal",
            "Fraction",
            "UUID",
            "Pattern",
            "structseq",
            "numpy",
        ),
        *("datetime", "date", "time", "timedelta", "timezone", "ZoneInfo"),
        *("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath"),
    )
)


def clone(obj: Any) -> Any:
    """A copy of an object that a codec made: changing one does not change the other."""
    cls = type(obj)
    if cls in LEAVES:
        return obj
    if cls is dict:
        return {name: item if type(item) in LEAVES else clone(item) for name, item in obj.items()}
    if cls is list:
        return [item if type(item) in LEAVES else clone(item) for item in obj]
    if cls in messages.BY_CLASS:
        return messages.clone(obj, clone)
    if cls is tuple:
        return tuple([clone(item) for item in obj])
    if cls is Inert:
        return Inert(inert.form_of(obj), {name: clone(item) for name, item in obj.items()}, obj.why)
    if issubclass(cls, type | enum.Enum | BaseException) or obj is Ellipsis or obj is NotImplemented:
        return obj
    kind = None if shapes.is_namedtuple(cls) else builtin_values.kind_of(cls)
    if kind is not None:
        return _builtin(obj, cls, kind)
    shape = shapes.shape_of(cls)
    if shape is None:
        return obj
    parts = shape.take(obj)
    fields = {name: clone(part) for name, part in parts.fields.items()}
    return shape.make(cls, shapes.Parts(fields, {name: clone(part) for name, part in parts.hidden.items()}))


def _builtin(obj: Any, cls: type, kind: builtin_values.Kind) -> Any:
    exactly = builtin_values.is_exactly(cls, kind)
    more = {} if exactly or kind.named else shapes.attributes(obj)
    if kind.tag in _FIXED and not more:
        return obj
    made = kind.make(None if exactly else cls, {name: _part(part) for name, part in kind.take(obj).items()})
    if more:
        shapes.put_back(made, clone(more))
    return made


def _part(part: Any) -> Any:
    if type(part) is builtin_values.Pairs:
        return [(clone(key), clone(item)) for key, item in part]
    return clone(part)
