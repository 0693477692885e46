"""Temporal with Lockstep: workflows that are recorded, and replayed, forked and bisected without a server.

    from lockstep_temporal import LockstepInterceptor, LockstepPlugin
    client = await Client.connect(address, plugins=[LockstepPlugin()])          # the whole
    worker = Worker(client, …, interceptors=[LockstepInterceptor()])            # what interceptors see

Importing this imports nothing of Temporal; the names do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockstep.adapter import late_names
from lockstep_temporal.adapter import adapter

__all__ = ["LockstepInterceptor", "LockstepPlugin", "Setup", "adapter"]

if TYPE_CHECKING:
    from lockstep_temporal.interceptors import LockstepInterceptor
    from lockstep_temporal.plugin import LockstepPlugin
    from lockstep_temporal.setup import Setup
else:
    __getattr__ = late_names(
        adapter, globals(), LockstepInterceptor="interceptors", LockstepPlugin="plugin", Setup="setup"
    )
