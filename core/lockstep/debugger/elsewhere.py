"""Probes that are made elsewhere: by workers that a framework's adapter reaches, with a store of their own.

with hired("127.0.0.1:7233/probes", store, say) as crew:
    crew.begin(1, order)
    number, made = crew.next()
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import msgspec

from lockstep.debugger.conduct import Maker
from lockstep.debugger.orders import Order
from lockstep.debugger.replay import recipe
from lockstep.errors import Code, TargetError
from lockstep.log.store import RunReader


class Crew(Maker, Protocol):
    """Workers at hand. Raises LockstepError for what is wrong with them. `made_by`: how many probes each has made."""

    made_by: Counter[str]


def named(order: Order, reader: RunReader) -> Order:
    """The order with the recorded command in words, and where it was run: for workers, which run nothing that they do
    not know. `reader`: of the run."""
    if order.target or order.command:
        return msgspec.structs.replace(order, directory=order.directory or os.getcwd())
    told = recipe(reader)
    return msgspec.structs.replace(order, command=told.command, directory=told.cwd)


# Told of what somebody who waits wants to know.
type Say = Callable[[str], None]


def hired(where: Any, store: str, say: Say, *, again: str = "") -> AbstractContextManager[Crew]:
    """The workers at a place, reached when the block begins; what they still make ends with it.

    where   as their adapter says it: of Temporal, [[NAMESPACE@]HOST:PORT/]QUEUE
    again   of a bisect that makes probes again also where one was made before: what tells it from others

    Raises TargetError LS402 where no adapter has workers, or that is no place; LS404, LS401 on entering.
    """
    from lockstep.adapter import registry

    for adapter in registry.installed():
        if adapter.workers is not None:
            registry.require(adapter)
            made: AbstractContextManager[Crew] = adapter.workers(where, store, say, again)
            return made
    raise TargetError(
        Code.BAD_TARGET, "no adapter is installed whose workers make probes: lockstep-replay[temporal] has them"
    )
