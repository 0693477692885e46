"""Zero-code attach: in a program under `lockstep record`, every worker gets the plugin.

    lockstep record -- python worker.py

Its workflows become runs of their own (`temporal/<workflow id>`), as they do without a session: a worker serves many,
for months, and each of them goes on in whatever process takes its next task. The run of the program itself has what
else it does. What Temporal's core, which is written in Rust, does on the network is known by these runs, so the guard
does not call it uncovered.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import wraps
from typing import Any

from lockstep.errors import AdapterError, Code
from lockstep.log import untapped
from lockstep.session import current, lanes, sites

CLIENT = "temporal client"  # what the guard calls it
_SAID = "its workflows are runs of their own, temporal/<workflow id>"

sites.pass_over(os.path.dirname(__file__))

_lock = untapped.allocate_lock()
_attached = False


def attach() -> None:
    """Has the workers that are made from now on recorded, as long as a session records.

    Raises AdapterError LS410 for a version of the SDK that has not what is needed.
    """
    global _attached
    with _lock:
        if not _attached:
            _attached = True
            _meet_workers()
            _meet_connections()
    if current.session is not None and not current.session.recording:
        known()


def known() -> None:
    """Tells the session that is on that a worker's workflows are recorded elsewhere: what its client does is known by
    that. A program that is a client only gets what it did not make. A replay stops before it reaches a server."""
    session = current.session
    if session is not None:
        session.elsewhere[CLIENT] = _SAID
        session.forget(CLIENT)


def reached(server: str) -> None:
    """The core has just connected to a server, as URL or host and port."""
    session = current.session
    if session is not None and session.recording:
        from lockstep.taps.guard import own

        try:
            own.apart(_port(server))
        except Exception as error:
            session.fault("a connection of Temporal", error)


def _meet_workers() -> None:
    from temporalio.worker import Worker

    made = Worker.__init__

    @wraps(made)
    def init(self: Any, client: Any, *args: Any, **options: Any) -> None:
        session = current.session
        if session is not None and session.recording:
            try:
                options["plugins"] = _with_ours(client, options.get("plugins") or (), session.store)
                known()
            except Exception as error:
                session.fault("a worker of Temporal", error)
        made(self, client, *args, **options)

    Worker.__init__ = init  # type: ignore[method-assign]
    _keep_apart(Worker)


def _keep_apart(worker: Any) -> None:
    """What a worker does belongs to its workflows' runs: the session makes no lanes of its tasks, of which there are
    some for each workflow task and activity as long as the worker lives, and no effects of what activities call."""
    run = worker.run

    @wraps(run)
    async def apart(self: Any) -> None:
        session = current.session
        token = lanes.INSIDE.set(True) if session is not None and session.recording else None
        try:
            await run(self)
        finally:
            if token is not None:
                with suppress(ValueError):  # closed by the collector, which has a context of its own
                    lanes.INSIDE.reset(token)

    worker.run = apart


def _with_ours(client: Any, plugins: Any, store: str) -> list[Any]:
    """The worker's plugins and ours, which comes last; unchanged where the program has brought it already."""
    from lockstep_temporal.plugin import LockstepPlugin

    given = list(plugins)
    if any(isinstance(plugin, LockstepPlugin) for plugin in (*client.config()["plugins"], *given)):
        return given
    return [*given, LockstepPlugin(store or None)]


def _meet_connections() -> None:
    """Notes where the core's connections lead, which no Python code opens."""
    from temporalio.bridge import client as bridge

    if not isinstance(vars(bridge.Client).get("connect"), staticmethod):
        raise _unfit("Client.connect of temporalio.bridge.client")
    connect = bridge.Client.connect

    @wraps(connect)
    async def connected(runtime: Any, config: Any, *args: Any, **options: Any) -> Any:
        made = await connect(runtime, config, *args, **options)
        reached(str(config.target_url))
        return made

    bridge.Client.connect = staticmethod(connected)  # type: ignore[method-assign]


def _port(url: str) -> int:
    from urllib.parse import urlsplit

    parts = urlsplit(url if "://" in url else f"//{url}")
    return parts.port or (443 if parts.scheme == "https" else 80)


def _unfit(what: str) -> AdapterError:
    from temporalio import service

    version = getattr(service, "__version__", "this version")
    return AdapterError(Code.UNFIT_FRAMEWORK, f"temporalio {version} has no {what}, so workers cannot be recorded here")
