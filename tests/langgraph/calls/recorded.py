"""Runs a program twice, recorded and replayed: in a session, or as a turn of a thread of its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import lockstep
from lockstep.errors import Difference
from lockstep.log.store import open_store
from lockstep.log.timeline import Effect, Timeline
from lockstep.session.native import Journal
from lockstep.session.native.record import Record
from lockstep.session.native.server import Server
from lockstep_langgraph import turns

_numbers = itertools.count(1)


class Keeper:
    """What a turn needs of a saver, without one."""

    codec: Any = None

    def __init__(self) -> None:
        self.faults: list[str] = []

    def branch_for(self, turn: Any) -> Any:
        return None

    def fault(self, where: str, error: BaseException) -> None:
        self.faults.append(f"{where}: {error!r}")


@contextmanager
def turn_of(calls: Any, seed: bytes) -> Iterator[Keeper]:
    """A turn is on, whose calls are answered by these."""
    keeper = Keeper()
    turn = turns.Turn(keeper, "t", "invoke", None, seed)
    turn.calls = calls
    token = turns.current.set(turn)
    try:
        yield keeper
    finally:
        turns.current.reset(token)


class _Run:
    run: str

    def effects(self) -> list[Any]:
        """The calls, with their children: (kind, name, lane, children)."""
        with open_store(None) as store:
            return [_told(effect) for step in Timeline(store.run(self.run)).walk() for effect in step.effects]

    def classes(self) -> list[str]:
        """What each of them may do."""
        with open_store(None) as store:
            timeline = Timeline(store.run(self.run))
            return [str(timeline.effect_class(effect)) for step in timeline.walk() for effect in step.effects]


class Native(_Run):
    """A thread's run without a session."""

    def __init__(self) -> None:
        self.run = f"langgraph/{next(_numbers)}"
        self.difference: Difference | None = None
        self.left: list[Any] = []
        self.identical = False
        self.seed = b"\0" * 5 + bytes(range(11))

    def record(self, program: Callable[[], Any]) -> Any:
        journal = Journal.open(None, self.run, {"adapter": "langgraph", "steps": "checkpoints"})
        turn = journal.begin_turn("invoke", {"input": None}, self.seed)
        try:
            with turn_of(journal, self.seed) as keeper:
                result = program()
        finally:
            turn.end("ok")
            journal.close()
        assert keeper.faults == []
        assert journal.faults == []
        return result

    def replay(self, program: Callable[[], Any]) -> Any:
        with open_store(None) as store:
            record = Record(store.run(self.run))
            server = Server(record, store.path)
            serving = server.turn(record.turns[0])
            try:
                with turn_of(serving, record.seed(record.turns[0])) as keeper:
                    result = program()
            finally:
                serving.finish()
                report = server.report()
                self.difference, self.left, self.identical = server.latch.difference, serving.left(), report.identical
        assert keeper.faults == []
        return result


class InSession(_Run):
    """A session's run."""

    def __init__(self) -> None:
        self.run = f"run-{next(_numbers)}"
        self.difference: Any = None
        self.identical = False

    def record(self, program: Callable[[], Any]) -> Any:
        with lockstep.record(self.run) as session:
            result = program()
        assert session.faults == []
        return result

    def replay(self, program: Callable[[], Any]) -> Any:
        found = lockstep.replay(self.run, program)
        self.difference, self.identical = found.divergence, found.identical
        return found.result


def _told(effect: Effect) -> list[Any]:
    return [effect.kind, effect.name, effect.lane, [_told(child) for child in effect.children]]


def step_of(kind: str, number: int) -> int:
    """The step that the n-th effect of this kind closes, of the run called `run`."""
    with open_store(None) as store:
        steps = list(Timeline(store.run("run")).walk())
    return [step.number for step in steps for effect in step.effects if effect.kind == kind][number]


WAYS: list[Any] = [Native, InSession]


def both(way: Any, asked: Any, program: Callable[[], Any], *, models: int, tools: int) -> Any:
    """Records the program, replays it, and gives what it returned: the same, and nothing asked outside."""
    run = way()
    before = run.record(program)
    assert (asked.models, len(asked.tools)) == (models, tools)
    asked.clear()
    again = run.replay(program)
    assert run.difference is None, run.difference
    assert again == before, (again, before)
    assert run.identical
    assert (asked.models, asked.tools) == (0, [])
    return before
