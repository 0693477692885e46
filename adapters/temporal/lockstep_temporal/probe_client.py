"""The side of a bisect whose probes run on Temporal workers: orders go out, branches come back.

    with Crew(Place("probes"), store, say) as crew:
        crew.begin(1, order)
        number, made = crew.next()

An order is a workflow whose id is told from what it asks for, so that a bisect which was killed and goes on gets what
was made, or is being made, for the one before.
"""

from __future__ import annotations

import asyncio
import shlex
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from hashlib import blake2b
from queue import SimpleQueue
from typing import Any, Self

import msgspec
from temporalio.api.enums.v1 import TaskQueueType
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import DescribeTaskQueueRequest
from temporalio.client import Client, WorkflowFailureError, WorkflowHandle
from temporalio.common import WorkflowIDConflictPolicy, WorkflowIDReusePolicy
from temporalio.exceptions import ActivityError, ApplicationError, CancelledError, WorkflowAlreadyStartedError
from temporalio.service import RPCError

from lockstep.debugger import orders
from lockstep.debugger.orders import Order
from lockstep.debugger.probes import Made
from lockstep.errors import Code, EditError, LockstepError, TargetError
from lockstep.log import carried
from lockstep.log.store import open_store
from lockstep.log.timeline import resolve
from lockstep_temporal import ending
from lockstep_temporal import probe_messages as messages
from lockstep_temporal import probe_parts as parts
from lockstep_temporal.probe_messages import Answer, Recording, Sent
from lockstep_temporal.probe_process import raised
from lockstep_temporal.probe_workflow import ENDED, LONGEST, PROBE
from lockstep_temporal.reaching import connected

_LOOKS = 1.0  # seconds between two looks for workers
_SOON = 3.0  # seconds without one after which that is said
_FRESH = 90.0  # a worker asks anew at least once a minute
_PATIENCE = 60.0  # after which nobody is waited for any more


class Place(msgspec.Struct, frozen=True):
    """Where workers are.

    queue      the task queue that they poll
    address    of the server, as HOST:PORT; "": as Temporal's own tools find it
    namespace  likewise
    silence    seconds after which a worker that says nothing is dead, and its probe another's
    converter  a temporalio DataConverter, where payloads need a codec
    """

    queue: str
    address: str = ""
    namespace: str = ""
    silence: float = 5.0
    converter: Any = None


def place(text: str) -> Place:
    """Reads `[[NAMESPACE@]HOST:PORT/]QUEUE`. Raises TargetError LS402."""
    where, slash, queue = text.partition("/")
    namespace, at, address = where.rpartition("@")
    if not slash or ":" not in address:
        namespace, address, queue = "", "", text
    if not queue:
        raise TargetError(
            Code.BAD_TARGET, f"{text!r} names no task queue: workers are said as QUEUE, or as HOST:PORT/QUEUE"
        )
    return Place(queue, address, namespace if at else "")


def hired(where: Any, store: str, say: Callable[[str], None], again: str) -> Crew:
    """See `lockstep.debugger.elsewhere`. `where`: a `Place`, or one as a text."""
    return Crew(where if isinstance(where, Place) else place(str(where)), store, say, again=again)


class _Asked(msgspec.Struct):
    """A probe that is asked for. `needless`: set where nobody wants it any more."""

    task: asyncio.Task[Made | None]
    needless: asyncio.Event = msgspec.field(default_factory=asyncio.Event)


class Crew:
    """The workers of a bisect.

    store   the store of the run, which gets the branches
    say     told of what somebody who waits wants to know
    again   of a bisect that makes probes again also where one was made before: what tells it from others
    """

    def __init__(self, where: Place, store: str, say: Callable[[str], None], *, again: str = "") -> None:
        self.where = where
        self.made_by: Counter[str] = Counter()
        self._store = store
        self._say = say
        self._again = again
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="lockstep-temporal", daemon=True)
        self._client: Client | None = None
        self._recordings: dict[str, Recording] = {}
        self._asked: dict[int, _Asked] = {}
        self._over: SimpleQueue[tuple[int, Future[Made | None]]] = SimpleQueue()
        self._watch: asyncio.Task[None] | None = None
        self._polls = 0, 0.0  # when a worker asked last, by the server's clock; and when that was seen first, by ours
        self._alone: asyncio.Future[None] = self._loop.create_future()  # done when nobody is waited for any more

    def __enter__(self) -> Self:
        """Connects. Raises TargetError LS401 where there is no server."""
        self._thread.start()
        try:
            self._client = self._wait(self._connected())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def begin(self, number: int, order: Order) -> None:
        """See `lockstep.debugger.elsewhere`."""
        done = asyncio.run_coroutine_threadsafe(self._task(number, order), self._loop)
        done.add_done_callback(lambda done: self._over.put((number, done)))

    def end(self, number: int) -> None:
        """See `lockstep.debugger.elsewhere`."""

        def needless() -> None:
            if number in self._asked:
                self._asked[number].needless.set()

        self._loop.call_soon_threadsafe(needless)

    def next(self) -> tuple[int, Made | EditError | None]:
        """See `lockstep.debugger.elsewhere`."""
        number, done = self._over.get()
        try:
            return number, done.result()
        except EditError as error:
            return number, error

    def close(self) -> None:
        """Ends what is still being made."""
        if self._loop.is_closed():
            return
        if self._thread.is_alive():
            self._wait(self._ended())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()
        ending.settle()

    def _wait[T](self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _connected(self) -> Client:
        more = {} if self.where.converter is None else {"data_converter": self.where.converter}
        client = await connected(self.where.address, self.where.namespace, "--workers HOST:PORT/QUEUE", **more)
        self._watch = asyncio.create_task(self._watched(client))
        return client

    async def _ended(self) -> None:
        tasks = [one.task for one in self._asked.values()]
        for task in (*tasks, *([self._watch] if self._watch is not None else [])):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _task(self, number: int, order: Order) -> Made | None:
        task = asyncio.current_task()
        assert task is not None and self._client is not None
        asked = self._asked[number] = _Asked(task)
        try:
            return await self._made(self._client, order, asked.needless)
        except RPCError as error:
            raise TargetError(Code.NO_TARGET, f"the Temporal server does not answer: {error.message}") from error
        finally:
            del self._asked[number]

    async def _made(self, client: Client, order: Order, needless: asyncio.Event) -> Made | None:
        order = await asyncio.to_thread(self._named, order)
        answer = await self._heard(client, order, needless)
        if answer is None:
            return None
        if answer.unmade is not None:
            raise EditError(Code(answer.unmade[0]), answer.unmade[1])
        content = await parts.get(client, answer.branch)
        if content:
            run = self._recordings[order.run].run
            name = await asyncio.to_thread(carried.take, self._store, run, content)
            if name != order.branch:
                raise TargetError(Code.WORKERS, f"worker {answer.worker} was asked for {order.branch}, and sent {name}")
        if answer.made is not None:
            self.made_by[answer.worker] += 1
        return answer.made

    async def _heard(self, client: Client, order: Order, needless: asyncio.Event) -> Answer | None:
        """What the workers say of an order. None where it was ended before one took it."""
        while True:
            handle = await self._started(client, order)
            try:
                return messages.read_answer(await self._result(client, handle, needless))
            except WorkflowFailureError as error:
                ended = _ended_amid(error)
                if needless.is_set():
                    return ended
                # It was being ended for a bisect before this one.
                if ended is None and not isinstance(error.cause, CancelledError):
                    raise _why(error, order) from error

    async def _result(self, client: Client, handle: WorkflowHandle[Any, Any], needless: asyncio.Event) -> bytes:
        result = asyncio.ensure_future(handle.result())
        ends = asyncio.ensure_future(needless.wait())
        try:
            await asyncio.wait({result, ends, self._alone}, return_when=asyncio.FIRST_COMPLETED)
            if ends.done() and not result.done():
                await handle.cancel()
                await asyncio.wait({result, self._alone}, return_when=asyncio.FIRST_COMPLETED)
            if not result.done():
                raise TargetError(Code.WORKERS, f"{_nobody(client, self.where)}. What was made so far is kept")
            data: bytes = await result
            return data
        finally:
            ends.cancel()
            if not result.done():
                result.cancel()
                with suppress(RPCError):
                    await handle.cancel()

    def _named(self, order: Order) -> Order:
        """With a name for the branch that is free here: it is a part of the branch's chain."""
        with open_store(self._store) as opened:
            taken = {one.name for one in resolve(opened, order.run).timeline.reader.branches}
        name, number = order.branch, 1
        while name in taken:
            number += 1
            name = f"{order.branch}-{number}"
        return msgspec.structs.replace(order, branch=name)

    async def _started(self, client: Client, order: Order) -> WorkflowHandle[Any, Any]:
        """The workflow of the order: a new one, or the one that there is."""
        needed = [order.run, *([order.cut.beside] if order.cut.beside else [])]
        recordings = tuple([await self._recording(client, address) for address in needed])
        sent = Sent(
            messages.FORMAT, messages.here(), orders.encode(order), recordings,
            messages.sources(order.command, order.target, order.directory), self._again,
        )  # fmt: skip
        named = messages.encode([self.where.queue, [one.identity for one in recordings], self._again])
        name = f"{PROBE}-{order.branch}-{blake2b(named, digest_size=8).hexdigest()}"
        content = await parts.put(client, self.where.queue, messages.encode(sent), f"the order of {order.branch}")
        try:
            return await client.start_workflow(
                PROBE, args=[messages.encode(content), self.where.silence], id=name, task_queue=self.where.queue,
                result_type=bytes, execution_timeout=LONGEST, static_summary=f"{order.run}@{order.branch}",
                id_reuse_policy=WorkflowIDReusePolicy.ALLOW_DUPLICATE_FAILED_ONLY,
                id_conflict_policy=WorkflowIDConflictPolicy.USE_EXISTING,
            )  # fmt: skip
        except WorkflowAlreadyStartedError:
            return client.get_workflow_handle(name, result_type=bytes)

    async def _recording(self, client: Client, address: str) -> Recording:
        found = self._recordings.get(address)
        if found is None:
            run, identity, content = await asyncio.to_thread(self._packed, address)
            held = await parts.put(client, self.where.queue, content, f"the recording of {address}")
            found = self._recordings[address] = Recording(run, identity, held)
        return found

    def _packed(self, address: str) -> tuple[str, str, bytes]:
        with open_store(self._store) as opened:
            reader = resolve(opened, address).timeline.reader
            return reader.info.name, carried.identity(reader), carried.recording(reader, self._store)

    async def _watched(self, client: Client) -> None:
        """Says so where nobody polls the queue, and after a while waits no more."""
        alone, said = 0.0, False
        while alone < _PATIENCE:
            await asyncio.sleep(_LOOKS)
            if not self._asked or await self._polled(client):
                alone, said = 0.0, False
                continue
            alone += _LOOKS
            if alone >= _SOON and not said:
                said = True
                self._say(f"{_nobody(client, self.where)}; waiting for one")
        self._alone.set_result(None)

    async def _polled(self, client: Client) -> bool:
        """Whether a worker is there. One that is busy with probes asks for no other, but for what workflows do next."""
        request = DescribeTaskQueueRequest(
            namespace=client.namespace, task_queue=TaskQueue(name=self.where.queue),
            task_queue_type=TaskQueueType.TASK_QUEUE_TYPE_WORKFLOW,
        )  # fmt: skip
        try:
            told = await client.workflow_service.describe_task_queue(request)
        except RPCError:
            return True  # whoever waits for a probe is told by that
        # For some minutes the server names those that have gone. Its clock may be another one than ours.
        asked = max((one.last_access_time.ToNanoseconds() for one in told.pollers), default=0)
        if asked != self._polls[0]:
            self._polls = asked, time.monotonic()
        return asked > 0 and time.monotonic() - self._polls[1] < _FRESH


def _nobody(client: Client, where: Place) -> str:
    return (
        f"no worker polls task queue {where.queue} of {client.service_client.config.target_host}, namespace "
        f"{client.namespace}. Start one where the program is: lockstep temporal worker {shlex.quote(where.queue)} "
        "-- CMD"
    )


def _ended_amid(error: WorkflowFailureError) -> Answer | None:
    """What was left of a probe that was ended, where that is why it failed."""
    cause = _cause(error)
    if not isinstance(cause, ApplicationError) or cause.type != ENDED:
        return None
    [data] = cause.details
    return messages.read_answer(data)


def _cause(error: WorkflowFailureError) -> BaseException | None:
    cause: BaseException | None = error.cause
    while isinstance(cause, ActivityError) and cause.cause is not None:
        cause = cause.cause
    return cause


def _why(error: WorkflowFailureError, order: Order) -> LockstepError:
    """What ended a probe's workflow without an answer."""
    cause = _cause(error)
    if isinstance(cause, ApplicationError) and cause.type in [*Code]:
        return raised(str(cause.details[0]) if cause.details else "", str(cause.type), cause.message)
    told = f"{type(cause).__name__}: {cause}" if cause is not None else str(error)
    return TargetError(Code.WORKERS, f"probe {order.run}@{order.branch} got no answer of its workers ({told})")
