"""multiprocessing: a lane for each process it starts, and the order in which they meet.

The parent names the lane when it starts the process, in its own order. To a forked child it goes in
memory; to one that is spawned or comes from the forkserver with the first data that the child is sent,
since the forkserver's environment is that of its own start. multiprocessing's own processes (resource
tracker, forkserver) are nobody's.

What processes share through multiprocessing (pipes, queues, locks, pools) keeps its recorded order: see
`order` and `waits`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from lockstep.log.model import Value
from lockstep.session import current, lanes
from lockstep.session.lanes import Lane, strand
from lockstep.taps.imports import when_imported
from lockstep.taps.multiprocess import order, pools, waits

_KEY = "lockstep_lane"  # in the data that a child is sent; Python ignores what it does not know

# Of a launched process that multiprocessing will tell what to do: begins its session (`bootstrap.told`), and
# takes note of its exit status.
when_told: Callable[[str | None], None] | None = None
ends_with: Callable[[int], None] | None = None


def install() -> None:
    """Patches multiprocessing's modules when they are imported. Once."""
    when_imported("multiprocessing.process", _process)
    when_imported("multiprocessing.process", waits.install_process)
    when_imported("multiprocessing.spawn", _spawn)
    when_imported("multiprocessing.resource_tracker", _tracker)
    when_imported("multiprocessing.util", _util)
    when_imported("multiprocessing.forkserver", _forkserver)
    when_imported("multiprocessing.synchronize", order.install_semaphores)
    when_imported("multiprocessing.connection", order.install_connections)
    when_imported("multiprocessing.connection", waits.install_connections)
    when_imported("multiprocessing.pool", pools.install)
    when_imported("multiprocessing.queues", order.install_queues)
    when_imported("multiprocessing.popen_fork", waits.install_popen)
    when_imported("multiprocessing.popen_forkserver", waits.install_popen)


def start(session: Any, facts: Value) -> Value:
    return None


def stop(session: Any) -> None:
    pass


def _process(module: ModuleType) -> None:
    process: Any = module.BaseProcess
    begin, bootstrap = process.start, process._bootstrap

    def start(self: Any) -> Any:
        session = current.session
        if session is None:
            return begin(self)
        lane = _lane(session, self)
        before, strand.process = strand.process, lane
        try:
            begun = begin(self)
        finally:
            strand.process = before
        waits.started(session, self, lane)
        return begun

    def _bootstrap(self: Any, *args: Any, **kwargs: Any) -> Any:
        waits.forget()
        if current.session is not None and not current.session.recording:
            self.run = partial(_quietly, self.run)
        status = bootstrap(self, *args, **kwargs)
        if ends_with is not None:
            ends_with(status)
        return status

    start.__doc__ = begin.__doc__
    process.start, process._bootstrap = start, _bootstrap


def _quietly(run: Callable[[], Any]) -> None:
    # Python would print what stopped the process; the report says it better.
    from lockstep.errors import Stop

    try:
        run()
    except Stop:
        raise SystemExit(1) from None


def _lane(session: Any, process: Any) -> Lane | None:
    """The lane of a process that is about to be started; None inside an effect."""
    if strand.naming is None and lanes.inside() is not None:
        return None
    target = getattr(process, "_target", None)
    lane = (strand.naming or lanes.lane()).child(
        lanes.name_of(target) if target is not None else type(process).__name__, strand=True
    )
    if not session.recording and lane.name not in session.tape.strands and not session.interrupted:
        session.never_began(lane.name)
        session.raise_latched()
    return lane


def _spawn(module: ModuleType) -> None:
    data, prepare = module.get_preparation_data, module.prepare

    def get_preparation_data(name: str) -> Any:
        found = data(name)
        if current.session is not None:
            lane = strand.process
            found[_KEY] = "" if lane is None else lane.name
        return found

    def prepare_(data: Any) -> Any:
        if when_told is not None:
            when_told(data.get(_KEY))
        return prepare(data)

    prepare_.__name__, prepare_.__doc__ = "prepare", prepare.__doc__
    module.__dict__.update(get_preparation_data=get_preparation_data, prepare=prepare_)


def _util(module: ModuleType) -> None:
    # Where it keeps its sockets is no file of the program's.
    for name in ("get_temp_dir", "_remove_temp_dir"):
        original = getattr(module, name, None)
        if original is not None:
            module.__dict__[name] = lanes.ours(original)


def _tracker(module: ModuleType) -> None:
    tracker: Any = module.ResourceTracker
    for name in ("ensure_running", "_send", "_stop"):
        original = getattr(tracker, name, None)
        if original is not None:
            setattr(tracker, name, lanes.ours(original))
    found = module._resource_tracker
    for name in ("ensure_running", "register", "unregister", "getfd"):
        # The module holds its methods by themselves.
        if hasattr(found, name):
            module.__dict__[name] = partial(_within, getattr(found, name))


def _within(method: Any, *args: Any, **kwargs: Any) -> Any:
    return lanes.ours(method)(*args, **kwargs)


def _forkserver(module: ModuleType) -> None:
    server: Any = module.ForkServer
    for name in ("ensure_running", "connect_to_new_process"):
        setattr(server, name, lanes.ours(getattr(server, name)))
    found = module._forkserver
    for name in ("ensure_running", "connect_to_new_process"):
        module.__dict__[name] = getattr(found, name)
