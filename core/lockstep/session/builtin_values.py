"""Values of the standard library and numpy that are not JSON: how each is taken apart and made.

A table of kinds. `take` gives named parts, whose contents are taken in turn. `make` gets the parts
back, and the class if it was a subclass (a list of the program's own, a `str` with extras), of which
no constructor runs: only the built-in base's does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import BuiltinFunctionType
from typing import Any

import msgspec

from lockstep.errors import Code, LockstepError
from lockstep.session import numpy_values, shapes

type Parts = dict[str, Any]


class Pairs(list[tuple[Any, Any]]):
    """A part that is a map's items, since its keys may be anything."""


class Kind(msgspec.Struct, frozen=True):
    """One kind of value: `module.Class` of the built-in class, and its two directions.

    open    the program's own subclasses are of this kind too, if they add nothing but attributes
    named   the class is always stored, because the kind has many
    """

    tag: str
    cls: str
    take: Callable[[Any], Parts]
    make: Callable[[Any, Parts], Any]
    open: bool = False
    named: bool = False


def kind_of(cls: type) -> Kind | None:
    """The kind of a class: its own, or that of its nearest built-in base."""
    # First these, whose bases are built-in too: `numpy.float64` is a float.
    if numpy_values.is_scalar(cls):
        return KINDS["numpy"]
    if _is_structseq(cls):
        return KINDS["structseq"]
    for base in cls.__mro__[:-1]:
        kind = _BY_CLASS.get(_name(base))
        if kind is not None and _is_the(base):
            fits = base is cls or (kind.open and shapes.adds_only_fields(cls, base))
            return kind if fits else None
    return None


def is_exactly(cls: type, kind: Kind) -> bool:
    """Whether the tag alone says the class."""
    return not kind.named and (not kind.cls or _name(cls) == kind.cls)


def _name(cls: type) -> str:
    module = "pathlib" if cls.__module__.startswith("pathlib.") else cls.__module__
    return f"{module}.{cls.__qualname__}"


def _is_the(cls: type) -> bool:
    """Whether it is the class itself and none that only bears its name."""
    return not shapes.is_heap(cls) or vars(sys.modules[cls.__module__]).get(cls.__name__) is cls


# Containers. Base methods are named in full: a subclass may have its own `extend` or `__setitem__`.


def _filled(base: Any, fill: Callable[[Any, Any], Any], part: str) -> Callable[[Any, Parts], Any]:
    def make(cls: Any, parts: Parts) -> Any:
        made = base.__new__(cls or base)
        fill(made, parts[part])
        return made

    return make


def _made_whole(base: Any, part: str) -> Callable[[Any, Parts], Any]:
    return lambda cls, parts: base.__new__(cls or base, parts[part])


def _take_ordered(obj: Any) -> Parts:
    from collections import OrderedDict

    return {"$pairs": Pairs(OrderedDict.items(obj))}


def _make_ordered(cls: Any, parts: Parts) -> Any:
    from collections import OrderedDict

    made: Any = OrderedDict.__new__(cls or OrderedDict)
    for key, item in parts["$pairs"]:
        OrderedDict.__setitem__(made, key, item)
    return made


def _take_default(obj: Any) -> Parts:
    return {"$factory": obj.default_factory, "$pairs": Pairs(dict.items(obj))}


def _make_default(cls: Any, parts: Parts) -> Any:
    from collections import defaultdict

    factory = parts["$factory"]
    if factory is not None and not isinstance(factory, type):
        raise TypeError("its factory is no class")
    made: Any = defaultdict.__new__(cls or defaultdict)
    defaultdict.__init__(made, factory)
    dict.update(made, parts["$pairs"])
    return made


def _make_counter(cls: Any, parts: Parts) -> Any:
    from collections import Counter

    made: Any = dict.__new__(cls or Counter)
    dict.update(made, parts["$pairs"])
    return made


def _take_deque(obj: Any) -> Parts:
    from collections import deque

    return {"$items": list(deque.__iter__(obj))} | ({} if obj.maxlen is None else {"$maxlen": obj.maxlen})


def _make_deque(cls: Any, parts: Parts) -> Any:
    from collections import deque

    made: Any = deque.__new__(cls or deque)
    deque.__init__(made, parts["$items"], parts.get("$maxlen"))
    return made


def _make_mapping_proxy(cls: Any, parts: Parts) -> Any:
    from types import MappingProxyType

    return MappingProxyType(dict(parts["$pairs"]))


# Numbers and text.


def _take_bytes(obj: Any) -> Parts:
    return {"$value": memoryview(obj).tobytes()}


def _make_complex(cls: Any, parts: Parts) -> Any:
    return complex.__new__(cls or complex, *parts["$value"])


def _take_span(obj: Any) -> Parts:
    return {"$value": [obj.start, obj.stop, obj.step]}


def _take_array(obj: Any) -> Parts:
    return {"$code": obj.typecode, "$value": memoryview(obj).tobytes()}


def _make_array(cls: Any, parts: Parts) -> Any:
    from array import array

    return array.__new__(cls or array, parts["$code"], parts["$value"])


def _make_decimal(cls: Any, parts: Parts) -> Any:
    from decimal import Decimal

    return Decimal.__new__(cls or Decimal, parts["$value"])


def _take_decimal(obj: Any) -> Parts:
    from decimal import Decimal

    return {"$value": Decimal.__str__(obj)}


def _make_fraction(cls: Any, parts: Parts) -> Any:
    from fractions import Fraction

    return Fraction(*parts["$value"])


# Dates and times. Fields are read one by one: `replace` and `isoformat` of a subclass may be its own.


def _take_datetime(obj: Any) -> Parts:
    from datetime import datetime

    naive = datetime(obj.year, obj.month, obj.day, obj.hour, obj.minute, obj.second, obj.microsecond)
    return {"$value": naive.isoformat(), **_zone(obj)}


def _make_datetime(cls: Any, parts: Parts) -> Any:
    from datetime import datetime

    at = datetime.fromisoformat(parts["$value"])
    return datetime.__new__(
        cls or datetime,
        at.year,
        at.month,
        at.day,
        at.hour,
        at.minute,
        at.second,
        at.microsecond,
        parts.get("$zone"),
        fold=parts.get("$fold", 0),
    )


def _take_time(obj: Any) -> Parts:
    from datetime import time

    return {"$value": time(obj.hour, obj.minute, obj.second, obj.microsecond).isoformat(), **_zone(obj)}


def _make_time(cls: Any, parts: Parts) -> Any:
    from datetime import time

    at = time.fromisoformat(parts["$value"])
    return time.__new__(
        cls or time, at.hour, at.minute, at.second, at.microsecond, parts.get("$zone"), fold=parts.get("$fold", 0)
    )


def _zone(obj: Any) -> Parts:
    parts: Parts = {} if obj.tzinfo is None else {"$zone": obj.tzinfo}
    return {**parts, "$fold": 1} if obj.fold else parts


def _take_date(obj: Any) -> Parts:
    return {"$value": f"{obj.year:04}-{obj.month:02}-{obj.day:02}"}


def _make_date(cls: Any, parts: Parts) -> Any:
    from datetime import date

    at = date.fromisoformat(parts["$value"])
    return date.__new__(cls or date, at.year, at.month, at.day)


def _take_timedelta(obj: Any) -> Parts:
    return {"$value": [obj.days, obj.seconds, obj.microseconds]}


def _make_timedelta(cls: Any, parts: Parts) -> Any:
    from datetime import timedelta

    return timedelta.__new__(cls or timedelta, *parts["$value"])


def _take_timezone(obj: Any) -> Parts:
    offset, *name = obj.__getinitargs__()
    return {**_take_timedelta(offset), "$name": name[0] if name else None}


def _make_timezone(cls: Any, parts: Parts) -> Any:
    from datetime import timedelta, timezone

    offset = timedelta(*parts["$value"])
    return timezone(offset) if parts["$name"] is None else timezone(offset, parts["$name"])


def _take_zoneinfo(obj: Any) -> Parts:
    if obj.key is None:
        raise ValueError("it was read from a file and has no key")
    return {"$value": obj.key}


def _make_zoneinfo(cls: Any, parts: Parts) -> Any:
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(parts["$value"])
    except ZoneInfoNotFoundError as missing:
        raise LockstepError(Code.UNSERVABLE, f"no time zone data here: {missing}") from None


# Names and places.


def _make_pattern(cls: Any, parts: Parts) -> Any:
    import re

    return re.compile(parts["$value"], parts["$flags"])


def _take_uuid(obj: Any) -> Parts:
    safe = obj.is_safe.value
    return {"$value": str(obj)} | ({} if safe is None else {"$safe": safe})


def _make_uuid(cls: Any, parts: Parts) -> Any:
    import uuid

    return uuid.UUID(parts["$value"], is_safe=uuid.SafeUUID(parts.get("$safe")))


def _path(name: str) -> Kind:
    def make(cls: Any, parts: Parts) -> Any:
        import pathlib

        try:
            return getattr(pathlib, name)(parts["$value"])
        except NotImplementedError:  # pathlib.UnsupportedOperation is one since 3.13
            raise LockstepError(Code.UNSERVABLE, f"the record holds a {name}, which this system can't make") from None

    return Kind(name, f"pathlib.{name}", lambda obj: {"$value": str(obj)}, make)


def _is_structseq(cls: type) -> bool:
    """`time.struct_time`, `os.stat_result`, …: made in C, of positions and names."""
    return (
        issubclass(cls, tuple)
        and "n_sequence_fields" in vars(cls)
        and isinstance(vars(cls).get("__new__"), BuiltinFunctionType)
    )


def _take_structseq(obj: Any) -> Parts:
    _, (visible, named) = obj.__reduce__()
    return {"$items": list(visible), "$named": named}


def _make_structseq(cls: Any, parts: Parts) -> Any:
    return cls(parts["$items"], parts["$named"])


def _bare(base: type) -> str:
    return f"{base.__module__}.{base.__qualname__}"


def _scalar(base: Any, take: Callable[[Any], Any]) -> Kind:
    """Subclasses only: the plain ones need no tag."""
    return Kind(base.__name__, _bare(base), lambda obj: {"$value": take(obj)}, _made_whole(base, "$value"), open=True)


def _sequence(base: Any, make: Callable[[Any, Parts], Any]) -> Kind:
    return Kind(base.__name__, _bare(base), lambda obj: {"$items": list(base.__iter__(obj))}, make, open=True)


def _mapping(name: str, make: Callable[[Any, Parts], Any], take: Callable[[Any], Parts]) -> Kind:
    return Kind(name.rpartition(".")[2], name, take, make, open=True)


def _pairs(obj: Any) -> Parts:
    return {"$pairs": Pairs(dict.items(obj))}


KINDS = {
    kind.tag: kind
    for kind in (
        _sequence(tuple, _made_whole(tuple, "$items")),
        _sequence(list, _filled(list, list.extend, "$items")),
        _sequence(set, _filled(set, set.update, "$items")),
        _sequence(frozenset, _made_whole(frozenset, "$items")),
        _mapping("builtins.dict", _filled(dict, dict.update, "$pairs"), _pairs),
        _mapping("collections.OrderedDict", _make_ordered, _take_ordered),
        _mapping("collections.defaultdict", _make_default, _take_default),
        _mapping("collections.Counter", _make_counter, _pairs),
        Kind("deque", "collections.deque", _take_deque, _make_deque, open=True),
        Kind("mappingproxy", "builtins.mappingproxy", lambda o: {"$pairs": Pairs(o.items())}, _make_mapping_proxy),
        _scalar(str, str.__str__),
        _scalar(int, int.__int__),
        _scalar(float, float.__float__),
        _scalar(bytes, lambda obj: memoryview(obj).tobytes()),
        Kind("bytearray", "builtins.bytearray", _take_bytes, _filled(bytearray, bytearray.extend, "$value"), open=True),
        Kind("complex", "builtins.complex", lambda o: {"$value": [o.real, o.imag]}, _make_complex, open=True),
        Kind("range", "builtins.range", _take_span, lambda cls, parts: range(*parts["$value"])),
        Kind("slice", "builtins.slice", _take_span, lambda cls, parts: slice(*parts["$value"])),
        Kind("array", "array.array", _take_array, _make_array, open=True),
        Kind("Decimal", "decimal.Decimal", _take_decimal, _make_decimal, open=True),
        Kind("Fraction", "fractions.Fraction", lambda o: {"$value": [o.numerator, o.denominator]}, _make_fraction),
        Kind("datetime", "datetime.datetime", _take_datetime, _make_datetime, open=True),
        Kind("date", "datetime.date", _take_date, _make_date, open=True),
        Kind("time", "datetime.time", _take_time, _make_time, open=True),
        Kind("timedelta", "datetime.timedelta", _take_timedelta, _make_timedelta, open=True),
        Kind("timezone", "datetime.timezone", _take_timezone, _make_timezone),
        Kind("ZoneInfo", "zoneinfo.ZoneInfo", _take_zoneinfo, _make_zoneinfo),
        Kind("Pattern", "re.Pattern", lambda o: {"$value": o.pattern, "$flags": o.flags}, _make_pattern),
        Kind("UUID", "uuid.UUID", _take_uuid, _make_uuid),
        _path("PosixPath"),
        _path("WindowsPath"),
        _path("PurePosixPath"),
        _path("PureWindowsPath"),
        Kind("structseq", "", _take_structseq, _make_structseq, named=True),
        Kind("ndarray", "numpy.ndarray", numpy_values.take_array, numpy_values.make_array),
        Kind("numpy", "", numpy_values.take_scalar, numpy_values.make_scalar),
    )
}

# Parts that have no order, by tag: equal objects may list them differently.
UNORDERED = {
    "set": "$items",
    "frozenset": "$items",
    "dict": "$pairs",
    "defaultdict": "$pairs",
    "Counter": "$pairs",
    "mappingproxy": "$pairs",
}

_BY_CLASS = {kind.cls: kind for kind in KINDS.values() if kind.cls}
