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
            strand.feeding = lanes.lane()  # workers that it starts are named in its order
        return lanes.ours(handle)(cls, *args, **kwargs)

    pool._handle_workers = classmethod(_handle_workers)
    pool._terminate_pool = classmethod(lanes.ours(pool._terminate_pool.__func__))
    pool.join = functools.wraps(pool.join)(lanes.ours(pool.join))
