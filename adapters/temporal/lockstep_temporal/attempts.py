"""Attempts of activities: each call of the user's function, with its heartbeats and how it ended.

They stand inside the effect that the workflow has begun, wherever that was: `lockstep show` has them, and nothing is
ever matched by them. A history keeps the last attempt only, and of heartbeats what got through to the server.

    attempt   BEGIN of = the activity's, name = "charge#2"; body {"request": {"attempt": 2, "heartbeat": [details],
              "given": ["int"]}}, the last of these the types of what the function was called with
    beat      PART of = the attempt's; body = the details
    end       END: ok, body {"returned": "str"}; error with its failure; cancelled; ok, name = "pending", where somebody
              else will complete it
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from lockstep.log import untapped
from lockstep.log.model import Event, Kind, Status, Value
from lockstep_temporal import layout
from lockstep_temporal.places import Place, Places, here
from lockstep_temporal.scribe import log, scribe

PENDING = "pending"

type Told = Callable[[], Value]  # makes what is stored, in our thread, of what nobody changes any more

_MOST_KEPT = 10_000  # heartbeats that may wait in memory
_places: dict[str, Places] = {}  # by path of the store; of our thread
_seeking: list[Attempt] = []  # those whose activity is not in the log yet; of our thread
_missed: set[str] = set()  # types of workflows whose activities nobody here has asked for


class Attempt:
    """One attempt of an activity. Its methods are called where the activity runs, and wait for nothing.

    Where this process has its workflow too, what happens goes in line with what else that writes, and so stands before
    the answer. Else our thread looks for the workflow's run in the store, and `written` says when that is done.

    lost  whether nobody here has asked for its activity
    """

    def __init__(self, info: Any, store: str | None, *, quick: bool) -> None:
        """
        info   its `temporalio.activity.Info`
        store  path of the store, found as `lockstep.log.store.locate` does
        quick  whether it takes no time to make what is stored: nobody may wait for a codec in that line
        """
        self.lost = False
        self._info = info
        self._store = store or ""
        self._place = here(info.workflow_run_id, info.activity_id) if quick else None
        self._direct = self._place is not None
        self._pos = 0
        self._told: deque[tuple[Kind, str, str, int, Told | None]] = deque()
        self._sought = False
        self._dropped = 0

    def begin(self, heartbeat: Told | None, given: Sequence[str] = ()) -> None:
        """It is about to run. `heartbeat`: the details of the last one of an attempt before; `given`: the types of what
        it is called with."""
        number = self._info.attempt

        def request() -> Value:
            told: dict[str, Value] = {"attempt": number}
            if heartbeat is not None:
                told["heartbeat"] = heartbeat()
            if given:
                told["given"] = [*given]
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

    async def written(self) -> None:
        """Waits, for a second at most, until all that was told is in the log, where the answer may come before it."""
        if not self._direct and not self.lost:
            await scribe.written()

    def _tell(self, kind: Kind, what: str, name: str, told: Told | None) -> None:
        if self._direct and self._place is not None:
            self._emit(self._place, kind, what, name, untapped.monotonic_ns(), told)
            return
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
                _seeking.append(self)
                scribe.later(self._seek)

    def _seek(self, last: bool) -> bool:
        found = self._find()
        if (found or last) and self in _seeking:
            _seeking.remove(self)
        if last and not found:
            self.lost = True
            self._told.clear()
            _miss(self._info)
        return found

    def _find(self) -> bool:
        """Whether its activity is in the log, and so all that was told."""
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

        def finish(event: Event) -> Event:
            return replace(event, body=journal.hide(told())) if told is not None else event

        pos = journal.position()
        of = self._pos
        if kind is Kind.BEGIN:
            self._pos, of = pos, place.pos
        journal.emit(kind, layout.LANE, pos, what, name, of, finish=finish, when=when)


def look() -> None:
    """In our thread: activities have been written to the log, and what answers them has not."""
    for attempt in tuple(_seeking):
        attempt._seek(last=False)


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
