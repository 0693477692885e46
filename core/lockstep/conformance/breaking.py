"""Makes a function of a recorder raise in the middle of a run."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any


class Broken(RuntimeError):
    """What a broken hook raises."""


@contextlib.contextmanager
def broken(hook: str, when: Callable[[], bool]) -> Iterator[None]:
    """Breaks `module:function` or `module:Class.function` for the length of a block, whenever `when()` holds."""
    module, _, place = hook.partition(":")
    owner: Any = import_module(module)
    *above, name = place.split(".")
    for part in above:
        owner = getattr(owner, part)
    before = vars(owner)[name]

    def fail(*args: Any, **kwargs: Any) -> Any:
        if not when():
            return before(*args, **kwargs)
        raise Broken(f"{hook} was broken by the conformance tests")

    setattr(owner, name, fail)
    try:
        yield
    finally:
        setattr(owner, name, before)
