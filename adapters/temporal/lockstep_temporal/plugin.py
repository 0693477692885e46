"""The plugin that records workflows whole: what a worker sees of them, and each attempt at an activity.

    client = await Client.connect(address, plugins=[LockstepPlugin()])       every worker of this client
    worker = Worker(client, …, plugins=[LockstepPlugin("runs.db")])          one worker

It may stand before or after plugins of AI frameworks. Replayers are left as they are.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from temporalio.plugin import SimplePlugin
from temporalio.service import ConnectConfig, ServiceClient
from temporalio.worker import ReplayerConfig, UnsandboxedWorkflowRunner, WorkerConfig
from temporalio.worker.workflow_sandbox import SandboxedWorkflowRunner

from lockstep_temporal import attaching
from lockstep_temporal.books import Books
from lockstep_temporal.execution import Watch
from lockstep_temporal.interceptors import LockstepInterceptor
from lockstep_temporal.naming import Naming
from lockstep_temporal.runner import recording


class LockstepPlugin(SimplePlugin):
    """Records the workflows and activities of a worker.

    store   a path, found as `lockstep record` finds it where none is given: LOCKSTEP_STORE, else .lockstep/store.db in
            the working directory or above it

    A store that cannot be written never stops a workflow: it is logged by logger "lockstep", and the run is called
    incomplete.
    """

    def __init__(self, store: str | os.PathLike[str] | None = None) -> None:
        super().__init__("lockstep.LockstepPlugin")
        self.store = os.fspath(store) if store is not None else None

    async def connect_service_client(
        self, config: ConnectConfig, next: Callable[[ConnectConfig], Awaitable[ServiceClient]]
    ) -> ServiceClient:  # fmt: skip
        """See the base class."""
        made = await super().connect_service_client(config, next)
        attaching.reached(config.target_host)
        return made

    def configure_worker(self, config: WorkerConfig) -> WorkerConfig:
        """See the base class."""
        config = super().configure_worker(config)
        attaching.known()
        books = Books.of(self.store)
        books.warm()
        watch = Watch(books, _converter(config), Naming(config.get("activities") or ()))
        runner = config.get("workflow_runner") or SandboxedWorkflowRunner()
        plain = config.get("unsandboxed_workflow_runner") or UnsandboxedWorkflowRunner()
        config["workflow_runner"] = recording(runner, watch)
        config["unsandboxed_workflow_runner"] = recording(plain, watch)
        config["interceptors"] = self._interceptors(config, books)
        return config

    def configure_replayer(self, config: ReplayerConfig) -> ReplayerConfig:
        """A replayer records nothing."""
        return config

    def _interceptors(self, config: WorkerConfig, books: Books) -> Sequence[Any]:
        given = list(config.get("interceptors") or ())
        client: Any = config.get("client")
        of_client = client.config(active_config=True).get("interceptors", []) if client is not None else []
        if any(isinstance(each, LockstepInterceptor) for each in (*given, *of_client)):
            return given
        return [*given, LockstepInterceptor(books.path)]


def _converter(config: WorkerConfig) -> Any:
    """The worker's DataConverter: that of its client, which plugins have set up by now."""
    client: Any = config.get("client")
    return client.data_converter if client is not None else None
