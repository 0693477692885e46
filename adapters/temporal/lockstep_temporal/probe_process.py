"""The processes in which a worker makes probes: each makes one after another, and has the program's interpreter ready.

    processes = Processes(2)
    made = await processes.make(store, order)       cancelled: the probe ends, with all that it started

A process leads a group of its own, and the group ends with the worker, however that ends.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from typing import BinaryIO, NoReturn

import msgspec

from lockstep.debugger import orders
from lockstep.debugger.orders import Order
from lockstep.debugger.probes import Made
from lockstep.errors import Code, EditError, LockstepError, StoreError, TargetError
from lockstep.launch.nursery import Nursery
from lockstep.performing import perform

_PATIENCE = 5.0  # seconds for a process to tidy up
_SIZE = 8  # bytes that say how long what follows is
_ERRORS = (EditError, StoreError, TargetError)


class Said(msgspec.Struct, frozen=True):
    """How it went: the probe, or an error's class, code and message."""

    made: Made | None = None
    error: tuple[str, str, str] | None = None


_said = msgspec.msgpack.Decoder(Said).decode


def raised(kind: str, code: str, message: str) -> LockstepError:
    """An error that was raised in another process: of a class of ours by its name."""
    made = next((one for one in _ERRORS if one.__name__ == kind), LockstepError)
    return made(Code(code), message)


class Processes:
    """Those of a worker, started as they are needed."""

    def __init__(self) -> None:
        self._idle: list[_Maker] = []

    async def make(self, store: str, order: Order) -> Made:
        """Makes a probe. Raises LockstepError, also where the process ended amid it (LS413)."""
        maker = self._idle.pop() if self._idle else await _Maker.started()
        try:
            said = await maker.ask(store, order)
        except BaseException:
            await maker.kill()
            raise
        self._idle.append(maker)
        if said.error is not None:
            raise raised(*said.error)
        assert said.made is not None
        return said.made

    async def warm(self, count: int) -> None:
        """Starts so many ahead of the first probe."""
        self._idle += [await _Maker.started() for _ in range(count)]

    async def end(self) -> None:
        """Ends those that make nothing."""
        while self._idle:
            await self._idle.pop().end()


class _Maker:
    """One process. `life`: our end of the pipe that it lives as long as."""

    def __init__(self, process: Process, life: int) -> None:
        self._process = process
        self._life = life

    @classmethod
    async def started(cls) -> _Maker:
        theirs, life = os.pipe()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", __name__, str(theirs), stdin=PIPE, stdout=PIPE, pass_fds=[theirs],
                start_new_session=True,
            )  # fmt: skip
        finally:
            os.close(theirs)
        return cls(process, life)

    async def ask(self, store: str, order: Order) -> Said:
        given, taken = self._process.stdin, self._process.stdout
        assert given is not None and taken is not None
        data = msgspec.msgpack.encode([store, orders.encode(order)])
        given.write(len(data).to_bytes(_SIZE, "big") + data)
        try:
            size = await taken.readexactly(_SIZE)
            return _said(await taken.readexactly(int.from_bytes(size, "big")))
        except asyncio.IncompleteReadError as error:
            raise TargetError(
                Code.WORKERS, f"the process that was to make {order.run}@{order.branch} ended without a word"
            ) from error

    async def end(self) -> None:
        """Ends one that makes nothing, which tidies up."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), _PATIENCE)
        await self.kill()

    async def kill(self) -> None:
        """Ends it with all that it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        os.close(self._life)
        await self._process.wait()


# In the process.


def main(life: int) -> None:
    """Makes probes until nobody wants any more."""
    if os.fork() == 0:
        _end_with(life)
    os.close(life)
    asked, answers = os.fdopen(os.dup(0), "rb", buffering=0), os.fdopen(os.dup(1), "wb", buffering=0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(2, 1)  # what a program prints is no answer
    with open(os.devnull, "wb") as nowhere:
        nursery, of = Nursery(), ""
        while head := _read(asked, _SIZE):
            store, packed = msgspec.msgpack.decode(_read(asked, int.from_bytes(head, "big")))
            if store != of:
                nursery.close()
                nursery, of = Nursery(), store
            said = msgspec.msgpack.encode(_made(store, orders.decode(packed), nowhere.fileno(), nursery))
            answers.write(len(said).to_bytes(_SIZE, "big") + said)
        nursery.close()


def _made(store: str, order: Order, output: int, nursery: Nursery) -> Said:
    try:
        return Said(perform(store, order, output=output, nursery=nursery))
    except LockstepError as error:
        return Said(error=(type(error).__name__, str(error.code), error.message))


def _read(given: BinaryIO, size: int) -> bytes:
    data = b""
    while len(data) < size and (piece := given.read(size - len(data))):
        data += piece
    return data


def _end_with(life: int) -> NoReturn:
    """Ends the whole group when the worker's end of the pipe is closed. A process, since a thread would be one of the
    program's."""
    os.closerange(0, 3)
    os.read(life, 1)
    os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]))
