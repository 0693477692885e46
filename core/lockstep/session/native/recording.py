"""Recording what a program has given to an adapter: to a run of its own, or to the session that is on.

    own = Recording("a team", make, lane)       # `make` gives the journal, when there is first something to record
    own.begin("run", lambda: {"task": …})
    own.call("desk/agent", "model")             # is `Calls`
    own.end("ok", result)                       # or own.leave()

Nothing that goes wrong here reaches the program: it is in `faults`, and the log tells it before each end of a turn. In
a session the calls are that one's, and turns are nothing of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from lockstep.log import untapped
from lockstep.log.model import Value
from lockstep.session import current as sessions
from lockstep.session.call import Call
from lockstep.session.effects import Ignored
from lockstep.session.native.faults import Faults
from lockstep.session.native.journal import Journal

if TYPE_CHECKING:
    from lockstep.session.native.turn import Turn

_IGNORED = cast("Call", Ignored())


class Recording:
    """Of one object, over all its turns. Usable from any thread."""

    recording = True

    def __init__(self, what: str, make: Callable[[], Journal], lane: Callable[[], str]) -> None:
        """`what`: in words, for faults; `lane`: in which the log tells them."""
        self._what = what
        self._make = make
        self._lane = lane
        self._journal: Journal | None = None
        self._broken = False  # the store cannot be opened: said once
        self._turn: Turn | None = None
        self._faults = Faults()
        self._lock: Any = untapped.RLock()

    @property
    def faults(self) -> tuple[str, ...]:
        """What could not be recorded, in words."""
        return self._faults.told

    @property
    def is_new(self) -> bool:
        """Whether it has recorded nothing yet."""
        return self._journal is None and not self._broken

    def journal(self) -> Journal | None:
        """That of the run, made when there is first something to record. None where none can be."""
        with self._lock:
            if self.is_new:
                try:
                    self._journal = self._make()
                except Exception as error:
                    self._broken = True
                    self.fault(f"the run of {self._what}", error)
            return self._journal

    def call(self, lane: str, kind: str, within: Call | None = None) -> Call:
        """See `Calls`."""
        session = sessions.session
        if session is not None:
            found: Call = session.open(kind)
            return found
        journal = self.journal()
        try:
            return journal.call(lane, kind, within) if journal is not None else _IGNORED
        except Exception as error:
            self.fault(f"a {kind} call", error)
            return _IGNORED

    def begin(self, entry: str, request: Callable[[], Value]) -> bool:
        """A turn begins; `request` gives its arguments, inert. False: it cannot be recorded at all."""
        if sessions.session is not None:
            return True
        try:
            journal = self.journal()
            if journal is None:
                return False
            self._turn = journal.begin_turn(entry, request())
        except Exception as error:
            self.fault("begin of a turn", error)
        return True

    def end(self, status: str, value: Any = None) -> None:
        """The turn is over: see `Turn.end`."""
        turn, self._turn = self._turn, None
        if turn is None:
            return
        try:
            self._store_faults()
        except Exception as error:
            self.fault("what could not be recorded", error)
        try:
            turn.end(status, value)
        except Exception as error:
            self.fault("end of a turn", error)

    def leave(self) -> None:
        """The turn was cut off: see `Turn.leave`."""
        turn, self._turn = self._turn, None
        if turn is not None:
            try:
                self._store_faults()
                turn.leave()
            except Exception as error:
                self.fault("end of a turn", error)

    def fault(self, where: str, error: BaseException) -> None:
        """Something of ours went wrong."""
        self._faults.note(where, error, self._journal)

    def _store_faults(self) -> None:
        if self._journal is not None:
            self._faults.store(self._journal, self._lane())
