"""Attempts of activities: each call of the user's function, with its heartbeats and how it ended.

They stand inside the effect that the workflow has begun, wherever that was: `lockstep show` has them, and nothing is
ever matched by them. A history keeps the last attempt only, and of heartbeats what got through to the server.

    attempt   BEGIN of = the activity's, name = "charge#2"; body {"request": {"attempt": 2, "heartbeat": [details]}}
    beat      PART of = the attempt's; body = the details
    end       END: ok; error with its failure; cancelled; ok, name = "pending", where somebody else will complete it
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from typing import Any

from lockstep.log import untapped
from lockstep.log.model import Kind, Status, Value
from lockstep_temporal import layout
from lockstep_temporal.places import Place, Places
from lockstep_temporal.scribe import log, scribe

PENDING = "pending"

type Told = Callable[[], Value]  # makes what is stored, in our thread, of what nobody changes any more

_MOST_KEPT = 10_000  # heartbeats that may wait in memory
_places: dict[str, Places] = {}  # by path of the store; of our thread
_missed: set[str] = set()  # types of workflows whose activities nobody here has asked for


class Attempt:
    """One attempt of an activity. Its methods are called where the activity runs, and wait for nothing.

    lost  whether nobody here has asked for its activity
    """

    def __init__(self, info: Any, store: str | None) -> None:
        """`info`: its `temporalio.activity.Info`. `store`: path of the store, found as `lockstep.log.store.locate`
        does."""
        self.lost = False
        self._info = info
        self._store = store or ""
        self._place: Place | None = None
        self._pos = 0
        self._told: deque[tuple[Kind, str, str, int, Told | None]] = deque()
        self._sought = False
        self._dropped = 0

    def begin(self, heartbeat: Told | None) -> None:
        """It is about to run. `heartbeat`: the details of the last one of an attempt before."""
        number = self._info.attempt

        def request() -> Value:
            told: dict[str, Value] = {"attempt": number}
            if heartbeat is not None:
                told["heartbeat"] = heartbeat()
            return {"request": told}

        self._tell(Kind.BEGIN, layout.ATTEMPT, f"{self._info.activity_type}#{number}", request)

    def beat(self, details: Told) -> None:
        """It has said that it is alive, and how far it is."""
        self._tell(Kind.PART, "", "", details)

    def end(self, status: str, value: Told | None = None) -> None:
        """The function is through."""
        self._tell(Kind.END, status, "", value)

    def leave(self) -> None:
        """The function is through, and somebody else will complete the activity."""
        self._tell(Kind.END, Status.OK, PENDING, None)

    def _tell(self, kind: Kind, what: str, name: str, told: Told | None) -> None:
        if self.lost:
            return
        if kind is Kind.PART and len(self._told) >= _MOST_KEPT:
            self._dropped += 1
            return
        self._told.append((kind, what, name, untapped.monotonic_ns(), told))
        scribe.put(self._write)

    # In our thread.

    def _write(self) -> None:
        if not self.lost and not self._find() and not self._sought:
            self._sought = True
            if self._info.workflow_type in _missed:
                self._seek(last=True)
            else:
                scribe.later(self._seek)

    def _seek(self, last: bool) -> bool:
        found = self._find()
        if last and not found:
            self.lost = True
            self._told.clear()
            _miss(self._info)
        return found

    def _find(self) -> bool:
        if self._place is None:
            places = _places.get(self._store)
            if places is None:
                places = _places[self._store] = Places(self._store or None)
            info = self._info
            self._place = places.find(info.workflow_id, info.workflow_run_id, info.activity_id)
        if self._place is None:
            return False
        over = False
        while self._told:
            over = self._told[0][0] is Kind.END
            self._emit(self._place, *self._told.popleft())
        if over:
            self._place.journal.flush()
            if self._dropped:
                lost = RuntimeError(f"{self._dropped} heartbeats came faster than they could be stored")
                scribe.fault(f"activity {self._info.activity_type}", lost)
        return True

    def _emit(self, place: Place, kind: Kind, what: str, name: str, when: int, told: Told | None) -> None:
        journal = place.journal
        body: Value = None
        try:
            body = told() if told is not None else None
        except Exception as error:
            journal.fault(f"attempt of {self._info.activity_type}", error)
        pos = journal.position()
        of = self._pos
        if kind is Kind.BEGIN:
            self._pos, of = pos, place.pos
        journal.emit(kind, layout.LANE, pos, what, name, of, body=body, when=when)


def _miss(info: Any) -> None:
    name = str(info.workflow_type)
    if name not in _missed:
        _missed.add(name)
        log.warning(
            "attempts of activity %s are not recorded: no run in the store here has the workflow (%s %r) that asked for"
            " it. Its worker needs LockstepPlugin too, with the same store",
            info.activity_type, name, info.workflow_id,
        )  # fmt: skip


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_places.clear)  # what is open is the parent's
