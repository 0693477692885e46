"""Records teams, and reads the states that were kept of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import teams

import lockstep_autogen
from lockstep.log.address import quote
from lockstep.log.checkpoints import States
from lockstep.log.model import Kind
from lockstep.log.store import open_store
from lockstep.log.timeline import Place, resolve
from lockstep_autogen.layout import CONSISTENT


@dataclass(frozen=True)
class Step:
    """One step of the team itself."""

    number: int
    source: str
    name: str
    channels: dict[str, Any]
    consistent: bool
    body: dict[str, Any]
    key: bytes


@dataclass(frozen=True)
class Recorded:
    """`ran`: what had been asked of tools and people by then, at each cut."""

    run: str
    result: Any
    steps: list[Step]
    ran: list[list[str]]

    @property
    def messages(self) -> list[dict[str, Any]]:
        return teams.messages(self.result)

    @property
    def last(self) -> Step:
        return self.steps[-1]


def record(kind: teams.Kind, *, turns: int = 1) -> Recorded:
    """A team of that kind, recorded; what it returned at last."""

    ran: list[list[str]] = []

    async def run() -> tuple[Any, Any]:
        team: Any = lockstep_autogen.attach(kind.make())
        told = team._lockstep_root.seams.told
        cut = told.cut

        async def at_cut(moment: Any) -> Any:
            if moment.team is team:
                ran.append([*teams.ran])
            return await cut(moment)

        told.cut = at_cut
        for _ in range(turns):
            result = await teams.running(team, kind.asked())
        return team, result

    team, result = asyncio.run(run())
    name = f"autogen/{quote(team.name)}"
    return Recorded(name, result, steps(name), ran)


def steps(run: str) -> list[Step]:
    """All steps that the team itself made."""
    lane = run.partition("/")[2].partition("@")[0]
    with place(run) as found:
        reader = found.timeline.reader
        states = States(reader)
        heads = [(seq, event) for seq, event in reader.heads(reader.main) if event.kind is Kind.STEP]
        made = []
        for number, (seq, event) in enumerate(heads):
            if event.lane == lane:
                body: Any = reader.body(reader.main, seq)
                whole = body.get(CONSISTENT, True)
                made.append(Step(number, event.what, event.name, states.at(event.pos), whole, body, event.key))
        return made


@contextmanager
def place(address: str) -> Iterator[Place]:
    with open_store(None) as store:
        yield resolve(store, address)
