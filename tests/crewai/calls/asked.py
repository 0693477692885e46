"""Calls that are made in a lane by hand: recorded in a journal of their own, and served again from it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from crewai.flow import Flow

from lockstep.errors import Difference, StoreError
from lockstep.log.store import open_store
from lockstep.log.timeline import Effect, Timeline
from lockstep.session.native import Journal
from lockstep.session.native.record import Record
from lockstep.session.native.server import Server
from lockstep_crewai import current, wrapping
from lockstep_crewai.current import Scope
from lockstep_crewai.seams import Seams
from lockstep_crewai.wrapping import Root

LANE = "research/find"


class Nothing(Flow[dict[str, Any]]):
    """What is said to be running."""


@cache
def nothing() -> Nothing:
    """One for all, so that nobody hears that it is made."""
    return Nothing()


class Told:
    """Hears of what went wrong of ours, and lets all else be."""

    def __init__(self) -> None:
        self.faults: list[str] = []

    def begins(self, asked: Any, before: Any) -> None:
        """See `seams.Told`."""

    def step(self, moment: Any) -> None:
        """See `seams.Told`."""

    def counts(self, lane: str, tokens: Any) -> None:
        """See `seams.Told`. None: what is counted here is what counts."""

    def was_busy(self, lane: str, attempt: int) -> bool:
        """See `seams.Told`."""
        return False

    def busy(self, lane: str, attempt: int) -> None:
        """See `seams.Told`."""

    def ends(self, result: Any) -> None:
        """See `seams.Told`."""

    def fails(self, error: BaseException) -> None:
        """See `seams.Told`."""

    def fault(self, where: str, error: BaseException) -> None:
        self.faults.append(f"{where}: {error}")


class Tape:
    """One turn of a run `crewai/research`, in whose lane `research/find` code is run.

    faults      what could not be recorded
    difference  what stopped the last replay
    """

    def __init__(self, name: str = "research") -> None:
        wrapping.install()
        nothing()
        self.run = f"crewai/{name}"
        self.faults: list[str] = []
        self.difference: Difference | None = None

    def record(self, code: Callable[[], Any]) -> Any:
        """Runs it for real; an exception of it is returned."""
        journal = Journal.open(None, self.run, {"adapter": "crewai", "native": {"run": "research"}, "versions": {}})
        told, turn = Told(), journal.begin_turn("kickoff", {})
        try:
            result = self._run(journal, told, code)
        finally:
            turn.end("ok", None)
            journal.close()
            self.faults = [*told.faults, *journal.faults]
        return result

    def replay(self, code: Callable[[], Any]) -> Any:
        """Runs it again, served. Fails unless all that was recorded was asked for, and nothing else."""
        result = self.serve(code)
        assert self.difference is None, self.difference
        return result

    def serve(self, code: Callable[[], Any]) -> Any:
        """The same, however it ends: what it is stopped with is returned too, and `difference` says why."""
        with open_store(None) as store:
            record = Record(store.run(self.run))
            server = Server(record, store.path)
            (turn,) = record.turns
            calls = server.turn(turn)
            try:
                result = self._run(calls, Told(), code)
                calls.finish()
            finally:
                self.difference = server.latch.difference
            return result

    def _run(self, calls: Any, told: Told, code: Callable[[], Any]) -> Any:
        root = Root(nothing(), Seams(calls, told), lane="research")
        with current.at(Scope(root=root, lane=LANE, steps="research", of=0)):
            try:
                return code()
            except BaseException as error:
                return error

    def calls(self) -> list[tuple[str, str, str]]:
        """(lane, kind, name) of each call, in their order."""
        return [(effect.lane, effect.kind, effect.name) for effect in self.effects()]

    def exists(self) -> bool:
        """Whether anything is recorded."""
        try:
            with open_store(None) as store:
                return self.run in store.names()
        except StoreError:
            return False

    def effects(self) -> list[Effect]:
        return self.read(lambda timeline: [effect for step in timeline.steps for effect in step.effects])

    def read[T](self, read: Callable[[Timeline], T]) -> T:
        with open_store(None) as store:
            return read(Timeline(store.run(self.run)))

    def request(self, number: int = 0) -> Any:
        """What a call asked."""
        effect = self.effects()[number]
        return self.read(lambda timeline: timeline.request(effect))

    def outcome(self, number: int = 0) -> Any:
        """What it ended with."""
        effect = self.effects()[number]
        return self.read(lambda timeline: timeline.reader.body(timeline.reader.main, effect.end_seq))

    def pieces(self, number: int = 0) -> list[Any]:
        """What came of it before."""
        effect = self.effects()[number]
        return self.read(lambda timeline: [*timeline.parts(effect)])

    def effect_class(self, number: int = 0) -> str:
        effect = self.effects()[number]
        return self.read(lambda timeline: timeline.effect_class(effect))
