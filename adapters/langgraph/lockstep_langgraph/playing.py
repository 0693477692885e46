"""One turn of a thread that runs again: what its loop puts is compared with what was put then, or served for it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import TYPE_CHECKING, Any

from lockstep.errors import Code, LockstepError, Stop
from lockstep.log.model import Status, Value
from lockstep.session.native.serving import Serving
from lockstep_langgraph import again, compare, ids, lanes, nodes, turns
from lockstep_langgraph.asked import EVENTS
from lockstep_langgraph.checkpointer import BRANCH
from lockstep_langgraph.core import Core, On
from lockstep_langgraph.entries import long_id
from lockstep_langgraph.scratch import Past, ReplayBook, Turned, recorded_writes
from lockstep_langgraph.shelves import MAIN

if TYPE_CHECKING:
    from lockstep_langgraph.replaying import Session

_STILL = 0.01  # seconds between two looks at a turn that is to be cancelled where it was
_LOOKS = 5


class Ended:
    """How a turn ended: what its method returned, or what it raised."""

    def __init__(self, result: Any = None, error: BaseException | None = None) -> None:
        self.result = result
        self.error = error


class Playing:
    """One turn of a replay. Is `loops.Replay`."""

    def __init__(self, session: Session, graph: Any, core: Core, book: ReplayBook, past: Past) -> None:
        self.session = session
        self.past = past
        self.turned = Turned(past, self.differs, session.options.until)
        record, server, turn = session.record, session.server, past.turn
        self._nodes = session.options.depth == "node"
        until = session.options.until
        self.serving: Serving
        if self._nodes:
            self.serving = server.stretch(turn.pos, turn.pos)
        elif until is not None and turn.pos < record.position(until) < turn.stop:
            self.serving = server.stretch(turn.pos, record.position(until) + 1, interrupted=True)
        else:
            self.serving = server.turn(turn)
        self._written = recorded_writes(record, past, server.reveal)
        self._by_task = {event.what: (event.lane, event.of) for _, event in past.writes}
        self._seen: set[str] = set()
        self._graph = graph
        self._core = core
        self._book = book
        self._turn = _Again(core, session.thread, turn.entry, {}, record.seed(turn))
        self._turn.replay = self
        self._turn.calls = self.serving
        self._turn.ids = ids.Drawn(self._turn.seed)

    @property
    def asynchronous(self) -> bool:
        return again.is_async(self.past.turn.entry)

    @property
    def whole(self) -> bool:
        """Whether it puts all that the recorded turn did. Without nodes nobody writes what a human answered."""
        special = self._nodes and any(index < 0 for writes in self._written.values() for index in writes)
        return self.past.status == Status.OK and not special

    # What the loop asks (`loops.Replay`).

    def proceed(self) -> None:
        latch = self.session.server.latch
        if self.turned.cut:
            latch.come_to_cut()
        if latch.stopped:
            latch.raise_it()

    def checkpoint_id(self, namespace: str, keep: bool) -> str | None:
        made = self.turned.named(namespace, keep)
        if made is None:
            return None
        found: Any = self.session.record.field(made.seq, "id")
        return long_id(found)

    def serve(self, loop: Any) -> Sequence[Any]:
        found: list[Any] = []
        gone: list[str] = []
        for task in list(loop.tasks.values()):
            if task.writes or task.id in self._seen:
                continue
            place = self._by_task.get(task.id)
            writes = self._written[place] if place is not None else None
            if not self._nodes:
                # A node with a cache of its own may not have run when this was recorded.
                if task.cache_key is not None and writes is not None and nodes.finished(writes) and self._quiet(place):
                    self._seen.add(task.id)
                    nodes.served(task, writes, self._load)
                    found.append(task)
                continue
            self._seen.add(task.id)
            if writes is None:
                gone.append(task.id)
            elif nodes.finished(writes):
                nodes.served(task, writes, self._load)
                found.append(task)
            else:
                loop.tasks[task.id] = nodes.stand_in(task, writes, self._load, self._raised())
        if gone:
            self._absent(loop, gone)
        return found

    def stops(self, code: Code, reason: str, kind: str, name: str, source: str) -> None:
        """The guard has seen something that must not happen in a replay."""
        self.differs(code, reason, kind=kind, name=name, source=source)
        self.session.server.latch.raise_it()

    def _absent(self, loop: Any, gone: list[str]) -> None:
        """Tasks of which nothing is recorded: the recording ended before they did, or another of them failed."""
        if not self.past.status:
            self.session.server.latch.come_to_cut()
            self.session.server.latch.raise_it()
        if self.past.status != Status.OK:
            for task_id in gone:
                del loop.tasks[task_id]
            return
        names = ", ".join(sorted({loop.tasks[task_id].name for task_id in gone}))
        reason = "nothing is recorded of what this task wrote"
        if not self.past.writes and self.past.steps:
            reason += "; with durability='exit' LangGraph stores only the end of a turn: replay at call depth"
        self.differs(Code.UNSERVABLE, reason, kind="task", name=names)
        self.session.server.latch.raise_it()

    def _quiet(self, place: Any) -> bool:
        lane = self.serving.strand(place[0])
        return not any(True for _ in lane.state.left())

    def _raised(self) -> BaseException | None:
        """What the turn raised when it was recorded, where that was an error of its own."""
        if self.past.status != Status.ERROR:
            return None
        from lockstep.session import exceptions

        body = self.session.server.reveal(self.session.record.result(self.past.turn))
        try:
            return exceptions.decode(body)
        except LockstepError:
            return None

    def _load(self, value: Value, path: str) -> Any:
        return self.session.codec.load(value, path)

    # Differences.

    def differs(self, code: Code, reason: str, **about: Any) -> None:
        step = about.pop("step", None)
        if step is not None:
            about["at"] = self.session.record.position(step)
        elif "at" not in about and self.turned.last is not None:
            about["at"] = self.turned.last.event.pos + 1
        self.serving.differs(code, reason, **{"lane": lanes.ROOT, "kind": "", "name": "", **about})

    # Running.

    def run(self) -> Ended:
        """Runs a turn that was called synchronously."""
        given, config, options = self._asked()
        self._begin()
        entry, graph = self.past.turn.entry, self._graph
        try:
            if entry == "invoke":
                return Ended(graph.invoke(given, config, **again.invoked(options)))
            return Ended(_read(graph.stream(given, config, **options), self._stop_after()))
        except BaseException as error:
            return _failed(error)

    async def arun(self) -> Ended:
        given, config, options = self._asked()
        self._begin()
        entry, graph = self.past.turn.entry, self._graph
        if entry == "ainvoke":
            running: Coroutine[Any, Any, Any] = graph.ainvoke(given, config, **again.invoked(options))
        elif entry == EVENTS and self.past.status != Status.CLOSED:
            running = _aread(graph.astream_events(given, config, **{"version": "v2", **options}), None)
        else:
            running = _aread(graph.astream(given, config, **options), self._stop_after())
        try:
            if self.past.status == Status.CANCELLED:
                return Ended(await self._cancelled(running))
            return Ended(await running)
        except BaseException as error:
            return _failed(error)

    def _begin(self) -> None:
        self._book.begin(self.turned)
        self._core._on[self._turn] = On(None, True, MAIN)  # one line is replayed, whatever branches there were
        turns.prepared.set(self._turn)

    def _asked(self) -> tuple[Any, dict[str, Any], dict[str, Any]]:
        record = self.session.record
        request: Any = self.session.server.reveal(record.request(self.past.turn))
        load = self.session.codec.load
        given, config, options = (load(request[name], name) for name in ("input", "config", "options"))
        config["configurable"].pop(BRANCH, None)
        return given, dict(config), dict(options)

    def _stop_after(self) -> int | None:
        """How many items of the stream were read, None for all."""
        if self.past.status != Status.CLOSED:
            return None
        body: Any = self.session.record.result(self.past.turn)
        return int(body["read"]) if isinstance(body, dict) and "read" in body else None

    async def _cancelled(self, running: Coroutine[Any, Any, Any]) -> Any:
        """Cancels the turn where it was: when all that is recorded of it has happened, and it waits."""
        task = asyncio.ensure_future(running)
        still, seen = 0, (-1, -1)
        while not task.done():
            await asyncio.sleep(_STILL)
            now = (self.serving.progress, self.turned.compared)
            waits = now == seen and not self.serving.outstanding() and self.turned.missing() is None
            still, seen = (still + 1 if waits else 0), now
            if still >= _LOOKS or self.session.server.latch.stopped:
                task.cancel()
        return await task

    # The end.

    def finish(self, ended: Ended) -> None:
        """Compares how it ended with how it did when it was recorded."""
        self._book.ended()
        self.serving.turn_over = True  # a thread that nobody can end may still wait for an answer that never came
        latch = self.session.server.latch
        status = self.past.status
        if not latch.stopped and not self.turned.cut and status:
            self._compare(status)
        if latch.difference is None and isinstance(ended.error, Stop) and not latch.stopped:
            self.differs(Code.END, f"the turn was stopped: {ended.error}")

    def _compare(self, status: str) -> None:
        whole = status == Status.OK
        if self._turn.ending[0] != status:
            self._compare_ends()  # that what follows was not put is no wonder then
        missing = self.turned.missing()
        if missing is not None and status in (Status.OK, Status.ERROR):
            # Of tasks beside one that failed, how far they came is a race; where no node runs, no subgraph does.
            inner = missing.event.lane != lanes.ROOT
            if not (inner and (self._nodes or not whole)):
                self.differs(
                    Code.MISSING, "a recorded checkpoint was not put", step=missing.number, lane=missing.event.lane,
                    kind="checkpoint", name=missing.event.name,
                )  # fmt: skip
        if whole and not self._nodes:
            self.serving.finish()
        if not self._nodes:
            self._compare_writes(whole)
        self._compare_ends()

    def _compare_ends(self) -> None:
        server, turn = self.session.server, self.past.turn
        now, given = self._turn.ending
        recorded = server.reveal(self.session.record.result(turn))
        found = compare.endings(self.past.status, recorded, now, given, self.session.opened)
        if found is not None:
            path, before, after = found
            self.differs(
                Code.END, "the turn ended in another way than when it was recorded", kind="turn", name=turn.entry,
                path=path, expected=before, actual=after,
            )  # fmt: skip

    def _compare_writes(self, whole: bool) -> None:
        now = self.turned.written()
        for place in sorted({*self._written, *now}, key=lambda place: (place[1], place[0])):
            before, after = self._written.get(place), now.get(place)
            if not whole and (before is None or after is None or compare.cancelled(before) or compare.cancelled(after)):
                continue  # of tasks beside one that failed, how far they came is a race
            found = compare.writes(before or {}, after or {}, self.session.opened)
            if found is not None:
                path, recorded, actual = found
                self.differs(
                    Code.STATE, "this task wrote something else than when it was recorded", lane=place[0],
                    at=place[1] + 1, kind="task", name=place[0].rpartition("/")[2], path=path, expected=recorded,
                    actual=actual,
                )  # fmt: skip
                return


class _Again(turns.Turn):
    """A turn that runs again: nothing of it is written, and how it ends is kept."""

    ending: tuple[str, Any] = ("", None)

    def enter(self, journal: Any = None) -> Any:
        return None

    def end(self, status: str, value: Any) -> None:
        self.over = True
        self.ending = (str(status), value)


def _read(stream: Any, count: int | None) -> list[Any]:
    found: list[Any] = []
    if count != 0:
        for item in stream:
            found.append(item)
            if len(found) == count:
                break
    stream.close()
    return found


async def _aread(stream: Any, count: int | None) -> list[Any]:
    found: list[Any] = []
    if count != 0:
        async for item in stream:
            found.append(item)
            if len(found) == count:
                break
    await stream.aclose()
    return found


def _failed(error: BaseException) -> Ended:
    if isinstance(error, (KeyboardInterrupt, SystemExit)):
        raise error
    return Ended(error=error)
