"""Equality that also asks for the same types."""

import collections
from typing import Any

import numpy
import pydantic


def same(a: Any, b: Any) -> bool:
    """Equal, and of the same types all the way down."""
    if type(a) is not type(b):
        return False
    if isinstance(a, numpy.ndarray):
        return a.dtype == b.dtype and a.tolist() == b.tolist()
    if isinstance(a, float):
        return a.hex() == b.hex()
    if isinstance(a, list | tuple | collections.deque):
        more = not isinstance(a, collections.deque) or a.maxlen == b.maxlen
        return more and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        factories = getattr(a, "default_factory", None) is getattr(b, "default_factory", None)
        return factories and len(a) == len(b) and all(map(same, a.items(), b.items()))
    if isinstance(a, pydantic.BaseModel):
        given = a.model_fields_set == b.model_fields_set
        return a == b and given and same(a.__dict__, b.__dict__) and same(a.__pydantic_extra__, b.__pydantic_extra__)
    return bool(a == b)
