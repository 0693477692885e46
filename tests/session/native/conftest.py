"""A native run in a real store, as the tests of replays and forks write and read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lockstep.log.model import Status, Value
from lockstep.log.store import open_store
from lockstep.session.native import Journal
from lockstep.session.native.record import Record
from lockstep.session.native.server import Server

META: dict[str, Value] = {"adapter": "test", "steps": "checkpoints", "native": {"thread": "t"}}
RUN = "test/t"


class Run:
    """One run: what is written to it, and what reads it."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)
        self.journal = Journal.open(self.path, RUN, META)

    def record(self, branch: str = "main") -> Record:
        self.journal.flush()
        return Record(open_store(self.path).run(RUN, branch))

    def server(self, branch: str = "main", **more: Any) -> Server:
        return Server(self.record(branch), self.path, **{"patience": 0.01, **more})


def begin(
    calls: Any, request: Value, *, lane: str = "main/plan", kind: str = "model", name: str = "gpt-4o", **more: Any
) -> Any:  # fmt: skip
    """A call that has been asked."""
    call = calls.call(lane, kind, **more)
    call.ask(name, request, request)
    return call


def answer(journal: Any, request: Value, value: Value, *, parts: tuple[Value, ...] = (), **more: Any) -> None:
    """A call that ran for real and was recorded."""
    call = begin(journal, request, **more)
    for part in parts:
        call.part(part)
    call.end(Status.OK, value)


def served(calls: Any, request: Value, **more: Any) -> list[tuple[Value, Status | None]]:
    """All that a served call hands out."""
    call = begin(calls, request, **more)
    assert not call.live
    found = []
    while True:
        piece = call.take()
        found.append((piece.value, piece.status))
        if piece.status is not None:
            return found


@pytest.fixture
def run(tmp_path: Path) -> Any:
    made = Run(tmp_path / "s.db")
    yield made
    made.journal.close()
