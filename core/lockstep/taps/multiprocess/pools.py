"""`multiprocessing.Pool`: which of its own doings are the program's.

Tasks and results are: their order is kept at the locks and pipes that they pass. The thread that looks after
the workers is not: it looks as often as it finds time to (CPython has it spin while a result waits to be taken),
and ends of workers are a race that no result depends on. Nor is taking the pool down.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from lockstep.session import current, lanes
from lockstep.session.lanes import strand


def install(module: ModuleType) -> None:
    pool: Any = module.Pool
    handle = pool._handle_workers.__func__

    @functools.wraps(handle)
    def _handle_workers(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if current.session is not None and lanes.inside() is None:
            strand.naming = lanes.lane()  # workers that it starts are named in its order
        return lanes.ours(handle)(cls, *args, **kwargs)

    pool._handle_workers = classmethod(_handle_workers)
    terminate = pool._terminate_pool.__func__

    @functools.wraps(terminate)
    def _terminate_pool(cls: Any, *args: Any, **kwargs: Any) -> Any:
        # It takes the lock that workers wait for, and puts in what ends them: who gets which is their order.
        strand.feeding = lanes.current()
        try:
            return lanes.ours(terminate)(cls, *args, **kwargs)
        finally:
            strand.feeding = None

    pool._terminate_pool = classmethod(_terminate_pool)
    pool.join = functools.wraps(pool.join)(lanes.ours(pool.join))
