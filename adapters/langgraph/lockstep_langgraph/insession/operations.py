"""One call of a saver's method while a session is on.

While recording, the saver does what it is asked, and the session notes it: a checkpoint is a step of the run, and what
a thread held before the session is an effect `state` where it is first read. In replays and forks the saver itself is
never asked: it could be the production's, and holds what the recorded session has put there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any

from langgraph.checkpoint.base import CheckpointTuple

from lockstep.errors import Code, LockstepError
from lockstep.log.model import Status, Value
from lockstep.session import exceptions, lanes
from lockstep.session.call import Piece
from lockstep.session.effects import LiveCall
from lockstep.session.forked import Continued, given
from lockstep.session.lanes import leave
from lockstep.session.policy import Declared
from lockstep.session.served import ServedCall
from lockstep_langgraph.held import Threads
from lockstep_langgraph.insession import states, waiting
from lockstep_langgraph.insession.books import told_after
from lockstep_langgraph.insession.kept import STATE, Kept, Session
from lockstep_langgraph.insession.states import plainly

type Plain = Callable[..., Any]

_READ = Declared("read", "a saver's state")

# Where a saver of ours keeps its threads now; None: where it always does.
_elsewhere: ContextVar[Threads | None] = ContextVar("lockstep_langgraph_elsewhere", default=None)


class Op:
    """One call of a saver's method.

    name     of the method, without the `a` of the async ones
    about    what of its arguments tells it from others
    """

    def __init__(self, on: Session, saver: Any, plain: Plain, name: str, thread: str, **about: Value) -> None:
        self.on = on
        self.core = on.core
        self.saver = saver
        self.plain = plain
        self.name = name
        self.thread = thread
        self.request: dict[str, Value] = {"thread": thread, "read" if name in READS else "does": name, **about}
        core = getattr(saver, "_core", None)
        if core is not None:
            core.elsewhere = _elsewhere.get

    @property
    def kept(self) -> Kept:
        return self.on.of(self.saver)

    # The saver itself.

    def real(self, *args: Any, **kwargs: Any) -> Any:
        """What the saver does; whatever it needs for that is nothing of the program's."""
        token = lanes.INSIDE.set(lanes.INSIDE.get() or True)
        try:
            made = self.plain(self.saver, *args, **kwargs)
            return [*made] if self.name == "list" else made
        finally:
            leave(token)

    def scratch(self, *args: Any, **kwargs: Any) -> Any:
        """What it would do with the threads that are in memory."""
        saver = self._stand_in() or self.saver
        to = _elsewhere.set(self.kept.threads)
        try:
            with told_after():
                made = plainly(saver, self.name, *args, **kwargs)
                return [*made] if self.name == "list" else made
        finally:
            _elsewhere.reset(to)

    def _stand_in(self) -> Any:
        """The saver in memory that stands in for one which is not ours; None for ours."""
        kept = self.kept
        if self.on.scratch and kept.other is None and getattr(self.saver, "_core", None) is None:
            kept.other = in_memory(self.saver)
        return kept.other

    def learn(self, value: Any) -> None:
        """Takes over a state from before. Raises LockstepError."""
        self._stand_in()
        states.learn(self.kept, value)

    def scratch_tuple(self, config: Any) -> CheckpointTuple | None:
        """A checkpoint of those that are in memory."""
        reader = Op(self.on, self.saver, self.plain, "get_tuple", self.thread)
        found: CheckpointTuple | None = reader.scratch(config)
        return found

    # Its effect, where it has one.

    def ask(self) -> Any:
        """Recording: begins the effect."""
        call = self.core.open(STATE)
        call.ask(self.thread, self.request, self.request, declared=_READ)
        return call

    def failed(self, error: BaseException) -> None:
        """Recording: the saver raised."""
        self.ask().end(Status.ERROR, error)

    def recorded(self) -> ServedCall | None:
        """Replay: the effect that the recording has here."""
        lane = lanes.lane()
        effects, cursor = lane.state.effects, lane.state.cursor
        if cursor >= len(effects) or self.core.recording:
            return None
        begin = effects[cursor].begin
        if begin.what != STATE or begin.key != self._key():
            return None
        call = (Continued if self.core.resumes else ServedCall)(self.core, lane, STATE)
        call.ask(self.thread, self.request, self.request)
        return call

    def beyond(self) -> Value:
        """A fork past its cut: what the record still has for this question, {} for nothing."""
        piece = self._left()
        if piece is None:
            return {}
        self.note(piece, "reused")
        return self.outcome(piece, None)

    def left(self) -> Any:
        """The same without taking it for what this gives; None for nothing."""
        piece = self._left()
        return piece.value if piece is not None and piece.status is Status.OK else None

    def _left(self) -> Piece | None:
        lane = lanes.lane()
        if not self.core.resumes or (not self.core.recording and lane.state.cursor < len(lane.state.effects)):
            return None
        found = self.on.left(self._key())
        return next(given(self.core, found)) if found is not None else None

    def note(self, piece: Piece, how: str) -> None:
        record = LiveCall(self.core, lanes.lane(), STATE, None)
        record.ask(self.thread, self.request, self.request, declared=_READ)
        record.given(piece, how)

    def outcome(self, piece: Piece, call: Any) -> Value:
        """What a recorded effect gave. Raises what it raised."""
        if piece.status is Status.ERROR:
            raise exceptions.revive(piece.value, call)
        return piece.value

    def _key(self) -> bytes:
        key: bytes = self.core.secrets.asked(STATE, self.thread, self.request, self.request)[2]
        return key

    # What changes threads, and gives nothing that a session did not know.

    def do(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], again: Plain, noted: Plain) -> Any:
        """Does it, or its recorded outcome. `again`: what stands for it in a replay; `noted`: what the session keeps
        of it while recording."""
        if self.on.scratch:
            call = self.recorded()
            if call is not None:
                self.outcome(call.take(), call)
            return again()
        try:
            made = self.real(*args, **kwargs)
        except Exception as error:
            self.failed(error)
            raise
        self.guarded(noted)
        return made

    async def ado(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], again: Plain, noted: Plain) -> Any:
        """The same of an async method."""
        if self.on.scratch:
            call = self.recorded()
            if call is not None:
                self.outcome(await call.atake(), call)
            return again()
        made, waited = await waiting.real(self, lambda: self.plain(self.saver, *args, **kwargs))
        if waited is not None:
            waited.end(Status.OK)
        self.guarded(noted)
        return made

    def unservable(self, error: LockstepError) -> None:
        self.core.diverge(
            Code.UNSERVABLE, f"the state of thread {self.thread} can't be made again: {error.message}",
            lane=lanes.lane(), kind=STATE, name=self.thread,
        )  # fmt: skip

    def guarded(self, note: Plain) -> None:
        """Recording: what the session notes for itself never reaches the program."""
        try:
            note()
        except Exception as error:
            self.core.fault(f"{self.name} of thread {self.thread}", error)


READS = frozenset({"get_tuple", "list"})


def in_memory(saver: Any) -> Any:
    """A saver that stands in for another: with its serializer, so that values come back as that has them."""
    from langgraph.checkpoint.memory import InMemorySaver

    made: Any = InMemorySaver(serde=saver.serde)
    made.get_next_version = saver.get_next_version
    return made
