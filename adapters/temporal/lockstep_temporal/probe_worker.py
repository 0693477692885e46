"""The worker's side of a bisect on Temporal: it takes orders, and makes probes of its own user's program.

    program = Program(command=("python", "agent.py"))
    workflows, activities = [LockstepProbe, LockstepPart], [Maker(program).make_probe]

An order is data that came over a network. What runs is the program that was given here; a recording is taken in as a
tape of somebody else's, whose command never runs.
"""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import socket
import tempfile
from collections.abc import Callable, Sequence
from hashlib import blake2b

import msgspec
from temporalio import activity
from temporalio.client import Client
from temporalio.exceptions import ApplicationError, ApplicationErrorCategory

from lockstep.debugger import orders, probes
from lockstep.debugger.orders import Order
from lockstep.debugger.probes import Made
from lockstep.errors import Code, EditError, LockstepError, TargetError
from lockstep.log import carried, place
from lockstep.log.model import RunState
from lockstep.log.store import open_store
from lockstep.log.timeline import resolve
from lockstep_temporal import probe_messages as messages
from lockstep_temporal import probe_parts as parts
from lockstep_temporal.probe_messages import Answer, Recording, Sent
from lockstep_temporal.probe_process import Processes
from lockstep_temporal.probe_workflow import ENDED, MAKE

_BEATS = 0.5  # seconds between signs of life
_ORIGIN = "a bisect on Temporal workers"
_IDENTITY = re.compile("[0-9a-f]{32}")


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker runs, said by its own user: a command, or targets, each as `module:name`.

    directory  where it runs
    isolate    whether commands are kept off the network
    """

    command: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    directory: str = ""
    isolate: bool = False


# Told of each probe that was made here: the branch's address, and how it went; of one that could not be, why.
type Told = Callable[[str, Answer | LockstepError], None]


class Maker:
    """Makes the probes that are ordered, each in a process of its own.

    program  what is run, whatever an order says
    folder   where recordings are kept, a store each, with the branches that were made of them here
    """

    def __init__(self, program: Program, folder: str, told: Told | None = None) -> None:
        if not program.command and not program.targets:
            raise TargetError(
                Code.NO_TARGET, "a worker runs its own program, and none is said: -- CMD, or --target module:name"
            )
        self.program = program
        self.folder = os.path.abspath(folder)
        self._told = told
        self._processes = Processes()
        self._taking = asyncio.Lock()

    async def warm(self, jobs: int) -> None:
        """Starts processes for so many probes at a time, ahead of the first."""
        await self._processes.warm(jobs)

    async def close(self) -> None:
        """Ends its processes."""
        await self._processes.end()

    @activity.defn(name=MAKE)
    async def make_probe(self, order: bytes) -> bytes:
        """Makes one. What is wrong with the order, or here, ends the probe for good; only a worker's death does not."""
        beats = asyncio.create_task(_beat())
        try:
            return messages.encode(await self._answer(activity.client(), order))
        except LockstepError as error:
            if self._told is not None:
                self._told("", error)
            raise ApplicationError(
                error.message, type(error).__name__, type=str(error.code), non_retryable=True,
                category=ApplicationErrorCategory.BENIGN,
            ) from error  # fmt: skip
        finally:
            beats.cancel()

    async def _answer(self, client: Client, data: bytes) -> Answer:
        worker = f"{os.getpid()}@{socket.gethostname()}"
        sent = messages.read(await parts.get(client, messages.read_content(data)), worker)
        order = self._ours(orders.decode(sent.order), sent, worker)
        store = await self._store(client, sent)
        run = sent.recordings[0].run
        address = f"{run}@{order.branch}"
        try:
            made = await self._made(store, run, order, again=bool(sent.again))
        except EditError as error:
            return Answer(worker, unmade=(str(error.code), error.message))
        except asyncio.CancelledError:
            if activity.is_worker_shutdown():
                raise  # another one makes it
            left = await asyncio.to_thread(_left, store, run, order.branch)
            answer = Answer(worker, branch=await parts.put(client, activity.info().task_queue, left, address))
            raise ApplicationError(
                f"{address} was ended before its end", messages.encode(answer), type=ENDED, non_retryable=True,
                category=ApplicationErrorCategory.BENIGN,
            ) from None  # fmt: skip
        content = await asyncio.to_thread(carried.branch, store, run, made.branch)
        answer = Answer(worker, made, await parts.put(client, activity.info().task_queue, content, address))
        if self._told is not None:
            self._told(address, answer)
        return answer

    def _ours(self, order: Order, sent: Sent, worker: str) -> Order:
        """The order with this worker's own program. Raises TargetError LS402 where it is for another one."""
        mine = self.program
        asked = f"--target {order.target}" if order.target else shlex.join(order.command)
        fits = order.target in mine.targets if order.target else messages.same(mine.command, order.command)
        if not fits:
            have = [*([shlex.join(mine.command)] if mine.command else []), *(f"--target {one}" for one in mine.targets)]
            raise TargetError(
                Code.BAD_TARGET,
                f"worker {worker} runs {' or '.join(have)}, and {order.run} is bisected with {asked}: give each "
                "program workers of its own, on a task queue of their own",
            )
        found = messages.sources(() if order.target else mine.command, order.target, mine.directory)
        if any(found.get(name, digest) != digest for name, digest in sent.sources.items()):
            raise TargetError(
                Code.BAD_TARGET,
                f"worker {worker} has other files for {asked} than are here: bring the same code to both",
            )
        return msgspec.structs.replace(
            order, command=() if order.target else mine.command, directory=mine.directory, trust=False,
            isolate=mine.isolate or order.isolate,
        )  # fmt: skip

    async def _store(self, client: Client, sent: Sent) -> str:
        """The store with the order's recordings, which are taken in where they are not there yet."""
        if any(_IDENTITY.fullmatch(one.identity) is None for one in sent.recordings):
            raise TargetError(Code.WORKERS, "an order names a recording in a way that none is named")
        key = blake2b(b"".join(one.identity.encode() for one in sent.recordings), digest_size=16).hexdigest()
        folder = os.path.join(self.folder, key)
        async with self._taking:
            if not os.path.exists(folder):
                found = [(one, await parts.get(client, one.content)) for one in sent.recordings]
                await asyncio.to_thread(_take, folder, found)
        return os.path.join(folder, place.FILE)

    async def _made(self, store: str, run: str, order: Order, *, again: bool) -> Made:
        kept = await _kept(store, run, order, again=again and activity.info().attempt == 1)
        return kept if kept is not None else await self._processes.make(store, order)


async def _beat() -> None:
    """Says that this worker lives, and hears by that of a probe that nobody wants any more."""
    while True:
        activity.heartbeat()
        await asyncio.sleep(_BEATS)


def _take(folder: str, found: Sequence[tuple[Recording, bytes]]) -> None:
    """Makes the folder of a store, there under its name only when it is whole. Raises StoreError, TargetError LS413."""
    above = os.path.dirname(folder)
    os.makedirs(above, exist_ok=True)
    with open(os.path.join(above, ".gitignore"), "w", encoding="utf-8") as ignore:
        ignore.write("*\n")
    with tempfile.TemporaryDirectory(dir=above) as made:
        for one, content in found:
            name = carried.receive(os.path.join(made, place.FILE), content, _ORIGIN)
            if name != one.run:
                raise TargetError(Code.WORKERS, f"the recording that was sent is of {name}, and not of {one.run}")
        try:
            os.rename(made, folder)
        except OSError:
            if not os.path.exists(folder):  # by another worker, meanwhile
                raise
        os.makedirs(made, exist_ok=True)  # for what removes it


def _left(store: str, run: str, name: str) -> bytes:
    """What a probe that was ended had written, as it is carried; nothing where it had not begun. It is not kept."""
    with open_store(store) as opened:
        branch = next((one for one in opened.run(run).branches if one.name == name), None)
        if branch is None:
            return b""
        content = carried.branch(store, run, name) if branch.streams else b""
        if branch.state is not RunState.GROWING:
            opened.delete_branch(run, name)
        return content


async def _kept(store: str, run: str, order: Order, *, again: bool) -> Made | None:
    """The probe, where it was made here before and its answer got lost. One that was cut off is removed."""
    while True:
        with open_store(store) as opened:
            path, supervised = resolve(opened, order.run).address.path, not order.target
            branch = next((one for one in opened.run(run).branches if one.name == order.branch), None)
            if branch is None:
                return None
            if branch.state is not RunState.GROWING:
                if not again and not probes.is_cut_off(opened, run, branch, path, supervised):
                    return probes.made_before(opened, run, branch.name, path)
                opened.delete_branch(run, branch.name)
                return None
        await asyncio.sleep(_BEATS)  # an attempt that was given up has not ended yet
