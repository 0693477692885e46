"""Answers of another run, for calls of a fork that its own run has none for: of a good run beside a bad one.

A call gets one if it asks the same (it has the same match key). Each answers once, those of its lane first, as the
record's own do (`unused`). All is read before the program goes on, so that nothing of it stays open.
"""

from __future__ import annotations

from lockstep.errors import Code, StoreError
from lockstep.log import address as addresses
from lockstep.log.model import Kind, Status
from lockstep.log.steps import is_native
from lockstep.log.store import ROOT, RunReader, open_store
from lockstep.log.timeline import find
from lockstep.session.call import Piece
from lockstep.session.tape import Recorded, Tape
from lockstep.session.unused import Unused

type Pieces = tuple[Piece, ...]


class Beside:
    """What is left of the other run's answers. Not locked: see `Unused`."""

    def __init__(self, tape: Tape, pieces: dict[int, Pieces]) -> None:
        self._unused = Unused(tape)
        self._pieces = pieces

    def take(self, key: bytes, lane: str) -> Pieces | None:
        """What a call with this match key gets, None where there is nothing."""
        found = self._unused.take(key, lane)
        return self._pieces[found.seq] if found is not None else None


def read(store: str, address: str) -> Beside:
    """The answers of the run at an address. Raises StoreError, AddressError."""
    with open_store(store) as opened:
        named = addresses.parse(address)
        reader = opened.run(find(opened, named)[0], named.branch)
        tape = _tape(reader)
        calls = [effect for lane in tape.lanes.values() for effect in lane.effects if effect.ended]
        return Beside(tape, {effect.seq: _pieces(tape, effect) for effect in calls})


def _tape(reader: RunReader) -> Tape:
    """All of its calls, of which none has been used."""
    if is_native(reader.meta):
        from lockstep.session.native.record import Record

        return Record(reader).tape()
    number = next((stream.id for stream in reader.streams if stream.process == ROOT), None)
    if number is None:
        raise StoreError(Code.NO_RUN, f"run {reader.info.name} has no recorded process")
    return Tape(
        reader.heads(number), lambda seq: reader.body(number, seq), lambda seq, name: reader.field(number, seq, name)
    )


def _pieces(tape: Tape, effect: Recorded) -> Pieces:
    return tuple(
        Piece(tape.body(seq)) if event.kind is Kind.PART else Piece(tape.body(seq), Status(event.what))
        for seq, event, _ in effect.pieces
        if event.kind in (Kind.PART, Kind.END)
    )
