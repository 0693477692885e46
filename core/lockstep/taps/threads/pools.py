"""`concurrent.futures`: a lane for each work item, whichever worker takes it."""

from __future__ import annotations

import functools
from _thread import get_ident
from types import ModuleType
from typing import Any

from lockstep.session import current, lanes
from lockstep.session.lanes import Lane, strand
from lockstep.taps.threads.locks import GatedLock


def install_futures(module: ModuleType) -> None:
    """Futures hash by the lane that made them: a set of them iterates alike in every process."""
    future = module.Future
    init, by_address = future.__init__, object.__hash__

    def __init__(self: Any) -> None:
        init(self)
        lane = lanes.current()
        if lane is not None:
            self._lockstep_number = lane.number + lane.ordinal("future")

    def __hash__(self: Any) -> int:
        number = self.__dict__.get("_lockstep_number")
        return by_address(self) if number is None else int(number)

    future.__init__ = __init__
    future.__hash__ = __hash__
    module._AcquireFutures.__init__ = _acquires


def _acquires(self: Any, futures: Any) -> None:
    """Who waits for several futures takes the locks of all, in any order that is the same for everybody: by addresses
    they would come in another one in each process."""
    self.futures = sorted(futures, key=lambda future: (future.__dict__.get("_lockstep_number", 0), id(future)))


def install_pool(module: ModuleType) -> None:
    """Work items carry the lane of their submission, and are taken in the recorded order of submission: one that waits
    for its turn keeps a worker from those behind it. All else of the pool is not the program's: whether a worker is
    idle when an item comes is a race that nothing depends on."""
    pool, item = module.ThreadPoolExecutor, module._WorkItem
    item_init, item_run = item.__init__, item.run

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        item_init(self, *args, **kwargs)
        session = current.session
        if session is None:
            return
        effect = lanes.inside()
        if effect is not None:
            self._lockstep_inside = effect
            return
        # 3.14 passes (future, (fn, args, kwargs)), earlier ones (future, fn, args, kwargs).
        function = args[1][0] if isinstance(args[1], tuple) else args[1]
        lane = lanes.lane().child(lanes.name_of(_inner(function, args)), strand=True)
        self._lockstep_lane = lane
        session.strand_began(lane)

    def run(self: Any, *args: Any) -> None:
        state = self.__dict__
        lane: Lane | None = state.pop("_lockstep_lane", None)
        before = strand.item, strand.inside
        if lane is None:
            strand.item, strand.inside = None, state.pop("_lockstep_inside", strand.inside)
        else:
            lane.thread = get_ident()
            strand.item = lane
        try:
            item_run(self, *args)
        finally:
            strand.item, strand.inside = before
            if lane is not None:
                lane.session.strand_ended(lane)

    made = lanes.ours(pool.__init__)

    @functools.wraps(pool.__init__)
    def pool_init(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        lane = lanes.current()
        if lane is not None:
            self._shutdown_lock = GatedLock(
                self._shutdown_lock, f"{lane.name}:ThreadPoolExecutor.{lane.ordinal('pool')}"
            )

    item.__init__, item.run = __init__, run
    pool.__init__ = pool_init
    pool._adjust_thread_count = lanes.ours(pool._adjust_thread_count)


def _inner(function: Any, args: tuple[Any, ...]) -> Any:
    # asyncio.to_thread submits `Context.run` with the function behind it.
    found = getattr(function, "func", function)
    if getattr(found, "__qualname__", "") == "Context.run":
        inner = getattr(function, "args", None) or (args[2] if len(args) > 2 else ())
        return inner[0] if inner else function
    return function
