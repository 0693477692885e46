"""Tells with which exception a `with` block of Playwright's was left: that is how the program ended, as far as its
contexts are concerned.

    with sync_playwright() as playwright: …         # likewise a browser, and a context; and in the async API

Python takes `__exit__` where a block begins, which is before any context is tapped. So the classes are patched once
they are imported, and do nothing but what they did until somebody hears (`hear`).

Tried with playwright 1.60 to 1.65.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from lockstep.taps.imports import when_imported

_SEAMS = {  # by module: the class whose blocks are told, and the method that ends them
    "playwright.sync_api._context_manager": ("PlaywrightContextManager", "__exit__"),
    "playwright.async_api._context_manager": ("PlaywrightContextManager", "__aexit__"),
    "playwright._impl._sync_base": ("SyncContextManager", "__exit__"),
    "playwright._impl._async_base": ("AsyncContextManager", "__aexit__"),
}
_MARK = "_lockstep_told"

type Heard = Callable[[Any, BaseException], object]

_hearing: list[Heard] = []


def watch() -> None:
    """Patches the classes, now or as soon as they are imported."""
    for name in _SEAMS:
        when_imported(name, _patch)


def hear(heard: Heard) -> None:
    """`heard(owner, error)` is called before the block's own end. `owner`: what is beneath the browser, context or page
    of the block, or the connection of `with sync_playwright()`. Must not raise."""
    _hearing.append(heard)


def failed(error: BaseException | None) -> BaseException | None:
    """The exception, unless it is one that nothing has failed by: the end of a program, or of a generator."""
    ends_well = isinstance(error, GeneratorExit) or (isinstance(error, SystemExit) and not error.code)
    return None if ends_well else error


def _patch(module: ModuleType) -> None:
    owner, name = _SEAMS[module.__name__]
    patched = getattr(module, owner)
    real = vars(patched)[name]
    if hasattr(real, _MARK):
        return

    # Of the async API too: what the real one returns is awaited by the block.
    @functools.wraps(real)
    def leave(self: Any, *raised: Any) -> Any:
        error = failed(raised[1]) if len(raised) == 3 else None
        if error is not None:
            for heard in _hearing:
                heard(_beneath(self), error)
        return real(self, *raised)

    setattr(leave, _MARK, True)
    setattr(patched, name, leave)


def _beneath(block: Any) -> Any:
    found = getattr(block, "_impl_obj", None) or getattr(block, "_connection", None)
    return found or getattr(getattr(block, "_client", None), "_connection", None)
