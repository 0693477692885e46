"""Lets Temporal's core come to rest before the interpreter ends: threads of it that still let go of what they held
would abort it (temporalio/sdk-python#300)."""

from __future__ import annotations

import atexit
from functools import cache

from lockstep.log import untapped

_SETTLES = 0.3  # seconds; 0.2 was enough in each of many runs


@cache
def needed() -> None:
    """This process has used core: it waits for a moment when it ends. Once."""
    atexit.register(untapped.sleep, _SETTLES)
