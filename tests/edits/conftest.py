"""A program is recorded, one of its answers is edited, and it is served the edited one by the tap of its client.

What is served is a run of its own, made of the recorded events up to the edited answer: the program gets that, and
whatever it asks afterwards is beyond the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from lockstep.debugger import calls, edits
from lockstep.errors import Cut
from lockstep.log.model import Event, Kind, Value
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline
from lockstep.session.session import finish, start_recording, start_replay
from lockstep.testing import Provider

_ROOM = 1000  # positions between two events: edited answers may have more pieces than the recorded ones


class Editing:
    """`record` a program, look at what it `got`, and run it with an `edit`."""

    def __init__(self) -> None:
        self.run = ""

    def record(self, program: Callable[[], Any]) -> Any:
        """Returns what the program returns, or raises."""
        session = start_recording(None, "case", {})
        self.run = session.run
        error: BaseException | None = None
        try:
            return program()
        except Exception as raised:
            error = raised
            raise
        finally:
            report = finish(session, None, error)
            assert report.faults == ()

    def shown(self, address: str = "1") -> Any:
        """The outcome at an address, as `show --json` prints it."""
        with open_store(None) as store:
            timeline = Timeline(store.run(self.run))
            outcome = calls.read(timeline, edits.find(timeline, address)).outcome
        return msgspec.json.decode(msgspec.json.encode(outcome))

    def pieces(self, *changes: tuple[str, Value], at: str = "1") -> tuple[edits.Given, ...]:
        with open_store(None) as store:
            timeline = Timeline(store.run(self.run))
            return edits.made(timeline, edits.find(timeline, at), changes)

    def served(self, program: Callable[[], Any], *changes: tuple[str, Value], at: str = "1") -> Any:
        """Runs the program with those edits of the effect at `at`; returns what it returns, or raises."""
        session = start_replay(None, self._edited(at, changes), deadline=5.0)
        session.past_end = lambda lane: True  # what is read after the edited answer is as it is now
        error: BaseException | None = None
        try:
            return program()
        except BaseException as raised:
            error = raised
            raise
        finally:
            report = finish(session, None, error if not isinstance(error, Cut) else None)
            # A program need not read the end of what it was given.
            assert report.difference is None or report.difference.expected == "end edited", report.difference
            assert report.live_calls == 0

    def _edited(self, address: str, changes: tuple[tuple[str, Value], ...]) -> str:
        with open_store(None) as store:
            reader = store.run(self.run)
            timeline = Timeline(reader)
            effect = edits.find(timeline, address)
            given = edits.made(timeline, effect, changes)
            info = store.create_run("edited", reader.meta)
            appender = store.stream(info, "main")
            appender.append(list(_events(reader.events(effect.stream), effect.begin.pos, given)))
            appender.close(None)
            return info.name


def _events(recorded: Iterator[Event], begin: int, given: tuple[edits.Given, ...]) -> Iterator[Event]:
    for event in recorded:
        # What was read before the call may be stored behind it, in a batch.
        if event.pos <= begin or event.kind is Kind.READS:
            yield _spread(event)
        if event.kind is Kind.BEGIN and event.pos == begin:
            for number, piece in enumerate(given, 1):
                kind, what = (Kind.PART, "") if piece.status is None else (Kind.END, piece.status)
                pos = begin * _ROOM + number
                name = "edited" if what else ""
                yield Event(kind, pos, event.at, event.lane, what, name, of=begin * _ROOM, body=piece.value)


def _spread(event: Event) -> Event:
    of = event.of * _ROOM if event.kind in (Kind.BEGIN, Kind.PART, Kind.END, Kind.OUTPUT) else event.of
    return msgspec.structs.replace(event, pos=event.pos * _ROOM, of=of)


@pytest.fixture
def editing() -> Editing:
    return Editing()


@pytest.fixture
def web() -> Iterator[Provider]:
    with Provider() as started:
        yield started
