"""Numbers of the messages that Playwright's client sends: answers name them, so a replay's must be the recorded ones.

Since 1.65 they are counted over all that the process has ever sent; with a session on, each connection counts by
itself, as before. Tried with playwright 1.60 to 1.65.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from importlib import import_module
from typing import Any

from lockstep.session import current

_MODULE, _NAME = "playwright._impl.connection", "create_call_id_generator"


def count_by_connection() -> None:
    """Once; without a session it costs one comparison for each connection."""
    try:
        module: Any = import_module(_MODULE)
    except ImportError:
        return  # an older one, which does
    real = getattr(module, _NAME)
    if hasattr(real, "_lockstep"):
        return

    def create() -> Callable[[], str]:
        numbers: Callable[[], str] = real()
        if current.session is None:
            return numbers
        prefix = numbers().partition("@")[0]
        own = itertools.count(1)
        return lambda: f"{prefix}@{next(own)}"

    create.__dict__["_lockstep"] = True
    setattr(module, _NAME, create)
