"""Replays of a thread that was recorded without a session: its turns run again, and what they put is compared.

Each turn begins from the state that was recorded before it, with the input that it had then, by the method that was
called then: answers of humans are among the inputs. At call depth nodes run and their calls are served; at node depth
nothing of the graph's own runs but reducers.
"""

from __future__ import annotations

import asyncio
import contextvars
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Self

import msgspec

from lockstep.adapter.native import Played, ReplayOptions, check_range, no_loop
from lockstep.errors import Stop
from lockstep.log.model import Status, Value
from lockstep.log.store import RunReader
from lockstep.session.native.record import Record, RecordedTurn
from lockstep.session.native.server import Server
from lockstep.session.native.serving import Serving
from lockstep_langgraph import again, compare, guard, loops, patches, turns, unrecorded
from lockstep_langgraph.checkpointer import LockstepCheckpointer
from lockstep_langgraph.core import Core
from lockstep_langgraph.playing import Ended, Playing
from lockstep_langgraph.scratch import ReplayBook, ReplayShelf, past
from lockstep_langgraph.values import Codec


def replay(reader: RunReader, target: Any, options: ReplayOptions) -> Played:
    """Replays a branch of a thread with a compiled graph. Raises TargetError LS402 where an async turn would need a
    loop of its own and one is running: await `areplay` then."""
    session = Session(reader, target, options)
    if session.needs_loop:
        no_loop("this thread was run asynchronously", "areplay")
    with session, asyncio.Runner() as runner:
        for turn in session.turns():
            if turn.asynchronous:
                session.ended(turn, runner.run(turn.arun(), context=contextvars.copy_context()))
            else:
                session.ended(turn, contextvars.copy_context().run(turn.run))
    return session.played()


async def areplay(reader: RunReader, target: Any, options: ReplayOptions) -> Played:
    """The same under a running loop."""
    loop = asyncio.get_running_loop()
    session = Session(reader, target, options)
    with session:
        for turn in session.turns():
            context = contextvars.copy_context()
            if turn.asynchronous:
                session.ended(turn, await loop.create_task(turn.arun(), context=context))
            else:
                session.ended(turn, await loop.run_in_executor(None, context.run, turn.run))
    return session.played()


class Session:
    """One replay: what it goes by, and what has come of it so far."""

    def __init__(self, reader: RunReader, target: Any, options: ReplayOptions) -> None:
        self.options = options
        self.record = Record(reader)
        meta: Any = reader.meta
        self.thread = str(meta["native"]["thread"])
        self.server = Server(self.record, options.store, deadline=options.deadline)
        own = getattr(target.checkpointer, "_core", None)
        self.codec: Codec = own.codec if own is not None else Codec()
        self.opened = compare.opening(self.codec)
        self.target = target
        self.results: list[Any] = []
        self.error: BaseException | None = None
        self.compared = 0
        self._keys: list[Value] = []
        self._cut = False
        self._raced = False  # whether a turn failed, was cancelled or left
        self._served: list[Serving] = []  # of turns that came to their end
        self._chosen = self._choose()

    @property
    def needs_loop(self) -> bool:
        return any(again.is_async(turn.entry) for turn in self._chosen)

    def _choose(self) -> Sequence[RecordedTurn]:
        record, number, until = self.record, self.options.turn, self.options.until
        check_range(self.options, f"thread {self.thread!r}", len(record.turns), len(record.steps))
        stop = record.position(until) if until is not None else sys.maxsize
        return [turn for turn in record.turns if number in (None, turn.number) and turn.pos < stop]

    def __enter__(self) -> Self:
        patches.install()
        turns.install()
        loops.install()
        guard.install()
        return self

    def __exit__(self, *_: object) -> None:
        turns.uninstall()
        patches.uninstall()

    def turns(self) -> Iterator[Playing]:
        """The turns to run, one after the other; each is to be `ended` before the next is asked for."""
        book = ReplayBook(self.record, self.server.reveal, self.opened)
        shelf = ReplayShelf(self.thread, book)
        made: tuple[Any, Core] | None = None
        store = unrecorded.in_place_of(self.target.store)
        for turn in self._chosen:
            if self.server.latch.stopped:
                return
            if made is None:
                book.close()
                core = Core(shelf, self.codec)
                saver = LockstepCheckpointer.over(core)
                update = {"checkpointer": saver, "cache": None, "store": store}
                made = self.target.copy(update=update), core
            playing = Playing(self, *made, book, past(self.record, turn))
            yield playing
            if not playing.whole:
                made = None  # what it has put is not all that was put then
            for other in sorted(shelf.others):
                self.server.note(f"thread {other}", "a graph that a node ran on a thread of its own: not compared")

    def ended(self, turn: Playing, ended: Ended) -> None:
        """Looks at how a turn went."""
        turn.finish(ended)
        self.compared += turn.turned.compared
        if turn.past.status == Status.OK:
            self._served.append(turn.serving)
        elif turn.past.status:
            self._raced = True
        latch = self.server.latch
        if latch.difference is not None:
            return
        self._keys += [made.event.key for made in turn.past.steps[: turn.turned.compared]]
        last = turn.past.turn is self._chosen[-1]
        stopped = isinstance(ended.error, Stop)
        if not stopped:
            self.results.append(ended.result)
        self.error = None if stopped else ended.error
        self._cut = last and not turn.past.status and self.options.until is None
        latch.cut = False  # a branch that left in the middle of a turn goes on with its own

    def played(self) -> Played:
        latch = self.server.latch
        if self._cut:
            latch.come_to_cut()
        keys: Value = [*self._keys]
        report = self.server.report(end=keys, recorded=keys, steps=self.compared)
        if self._raced and not (report.identical or latch.difference or report.uncovered or report.faults):
            # How far tasks came beside one that failed is a race, on both sides: what was asked in whole turns counts.
            same = all(list(serving.handed()) == list(serving.recorded()) for serving in self._served)
            report = msgspec.structs.replace(report, identical=same)
        return Played(report=report, results=self.results, error=self.error)
