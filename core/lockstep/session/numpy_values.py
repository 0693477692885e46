"""numpy's arrays and scalars as inert parts, for `lockstep.session.builtin_values`.

numpy is loaded where one of these is met; on restore it is looked up, never imported.
"""

from __future__ import annotations

import sys
from typing import Any

from lockstep.errors import Code, LockstepError


def _numpy() -> Any:
    try:
        return sys.modules["numpy"]
    except KeyError:
        raise LockstepError(Code.UNSERVABLE, "numpy is not loaded here: import it where the program starts") from None


def is_scalar(cls: type) -> bool:
    generic = vars(sys.modules.get("numpy", sys)).get("generic")
    return generic is not None and issubclass(cls, generic) and cls.__module__ == "numpy"


def _dtype(obj: Any) -> Any:
    if obj.dtype.hasobject:
        raise ValueError("it holds Python objects")
    return obj.dtype.str if obj.dtype.names is None else _numpy().lib.format.dtype_to_descr(obj.dtype)


def take_scalar(obj: Any) -> dict[str, Any]:
    return {"$dtype": _dtype(obj), "$value": obj.tobytes()}


def make_scalar(cls: Any, parts: dict[str, Any]) -> Any:
    numpy = _numpy()
    return numpy.frombuffer(parts["$value"], numpy.dtype(parts["$dtype"]))[0]


def take_array(obj: Any) -> dict[str, Any]:
    parts: dict[str, Any] = {"$shape": list(obj.shape)}
    if obj.flags.f_contiguous and not obj.flags.c_contiguous:
        parts["$order"] = "F"
    if not obj.flags.writeable:
        parts["$frozen"] = True
    if obj.dtype == object:
        return parts | {"$items": obj.ravel(order="C").tolist()}
    return parts | {"$dtype": _dtype(obj), "$value": obj.tobytes(order="C")}


def make_array(cls: Any, parts: dict[str, Any]) -> Any:
    numpy = _numpy()
    if "$items" in parts:
        flat = numpy.empty(len(parts["$items"]), dtype=object)
        for number, item in enumerate(parts["$items"]):
            flat[number] = item
    elif parts["$value"]:
        flat = numpy.frombuffer(parts["$value"], numpy.dtype(parts["$dtype"]))
    else:
        flat = numpy.empty(0, numpy.dtype(parts["$dtype"]))
    made = flat.reshape(parts["$shape"]).copy(order=parts.get("$order", "C"))
    if parts.get("$frozen"):
        made.flags.writeable = False
    return made
