"""Faults of ours while a run is recorded, in words: the program goes on, and the run is called incomplete.

faults = Faults()
faults.note("a tool call", error, journal)      # to the session that is on, else to the journal and the logger
faults.store(journal, lane)                     # before a turn ends: in the log, by which a replay knows of them
recorded(record)                                # what was stored so
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lockstep.log.model import Event, Kind, Value
from lockstep.session import current as sessions

if TYPE_CHECKING:
    from lockstep.session.native.journal import Journal
    from lockstep.session.native.record import Record

log = logging.getLogger("lockstep")

FAULTS = "faults"  # `what` of a CAUSE event that tells them, and its body's only entry
_MOST = 100  # that are told: a process may run for months


def worded(where: str, error: BaseException) -> str:
    """A fault as it is told."""
    return f"{where}: {type(error).__name__}: {error}"


def add(faults: list[str], fault: str) -> None:
    """Puts one more to these, unless they are too many."""
    if len(faults) < _MOST:
        faults.append(fault)


def store(journal: Journal, lane: str, faults: Sequence[str]) -> None:
    """Tells them in the log, in a lane: it is incomplete from there on. Raises StoreError."""
    body: Value = {FAULTS: [journal.hide(fault) for fault in faults[:_MOST]]}
    event = Event(Kind.CAUSE, journal.position(), journal.now(), lane, FAULTS, body=body)
    journal.append([event], len(faults))


def recorded(record: Record) -> list[str]:
    """What a run's log tells of them: what is replayed is not all that was done."""
    found: list[str] = []
    for seq, event in record.heads:
        if event.kind is Kind.CAUSE and event.what == FAULTS:
            told = record.field(seq, FAULTS)
            found += [each for each in told if isinstance(each, str)] if isinstance(told, list) else []
    return found


class Faults:
    """Those of what is recorded to a run of its own, or to the session that is on. Each is told once."""

    def __init__(self) -> None:
        self._known: set[str] = set()  # that the logger has told
        self._stored: set[str] = set()  # that are in the log

    @property
    def told(self) -> tuple[str, ...]:
        """In words."""
        return tuple(sorted(self._known))

    def note(self, where: str, error: BaseException, journal: Journal | None) -> None:
        """Something went wrong. `journal`: of the run, where it has one already."""
        session = sessions.session
        if session is not None:
            session.fault(where, error)
            return
        if journal is not None:
            journal.fault(where, error)
        said = worded(where, error)
        if said not in self._known and len(self._known) < _MOST:
            self._known.add(said)
            log.warning("lockstep could not record: %s", said)

    def store(self, journal: Journal, lane: str) -> None:
        """Tells in the log what of the journal's faults it does not say yet. Raises StoreError."""
        new = [fault for fault in journal.faults if fault not in self._stored]
        if new:
            self._stored.update(new)
            store(journal, lane, new)
