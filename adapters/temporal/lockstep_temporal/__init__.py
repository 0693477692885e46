"""Temporal with Lockstep: workflows that are recorded, and replayed, forked and bisected without a server.

    from lockstep_temporal import LockstepInterceptor, LockstepPlugin
    client = await Client.connect(address, plugins=[LockstepPlugin()])          # the whole
    worker = Worker(client, …, interceptors=[LockstepInterceptor()])            # what interceptors see

Importing this imports nothing of Temporal; the names do.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from lockstep.adapter import require
from lockstep_temporal.adapter import adapter

__all__ = ["LockstepInterceptor", "LockstepPlugin", "Setup", "adapter"]

_HOMES = {"LockstepInterceptor": "interceptors", "LockstepPlugin": "plugin", "Setup": "setup"}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'lockstep_temporal' has no attribute {name!r}")
    try:
        module = import_module(f"lockstep_temporal.{home}")
    except ModuleNotFoundError:
        require(adapter)  # says how to install it, where it is Temporal's SDK that is missing
        raise
    found = globals()[name] = getattr(module, name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
