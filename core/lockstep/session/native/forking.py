"""Forks a native run: calls that the part before the cut answers are served, and the tail has the last word on others.

    branch = journal.fork("try-2", plan.upto, latest=False, origin=":7", told=told(plan))
    calls = Forking(branch, record, plan, store, since=restored)
    turn = branch.begin_turn(…)                  # the framework goes on, from a checkpoint that the adapter restored
    …                                            # calls raise Refusal, or Divergence where a served task is another one
    turn.end("ok", values, calls.resting())
    report = calls.report("complete")

`record` is that of the parent. Nothing before the restored checkpoint runs, so calls are served only to a task that
runs again for a call of its own that is edited: those that were begun after `since` and answered up to `plan.upto`,
until the tasks of the branch have made a checkpoint that closes over them. They are recorded in it where it does not
share them. Leave `since` out where nothing is to be served. All other calls are decided as past the cut of every fork
(`lockstep.session.tail`): edited, served past an edit, live, reused or refused, and recorded in the branch with that.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from lockstep.errors import Code
from lockstep.log import untapped
from lockstep.log.model import RunState, Value
from lockstep.log.native import belongs
from lockstep.session import coverage, engine, refusal
from lockstep.session.call import Call, Piece
from lockstep.session.effects import LiveCall
from lockstep.session.forked import Answered, ForkedCall, given, revealed
from lockstep.session.native.calls import UNCOUNTED, Strand, Uncounted
from lockstep.session.native.journal import Journal
from lockstep.session.native.latch import Latch
from lockstep.session.native.record import Record
from lockstep.session.native.served import NativeCall
from lockstep.session.native.serving import Serving, lane_sums
from lockstep.session.policy import Declared, judge
from lockstep.session.report import Coverage, Report
from lockstep.session.secrets import Secrets
from lockstep.session.tail import Answer, Live, Plan, Refuse, Tail

if TYPE_CHECKING:
    from lockstep.session.beside import Beside

log = logging.getLogger("lockstep")

_HARMLESS = frozenset({"read", "inference"})


class Forking:
    """Is `Calls`. Usable from any thread.

    latch    what stopped it: `latch.stopped`, `latch.refused`, `latch.difference`
    tail     `tail.unreached`: edits whose calls were not made
    lived    calls that ran for real; `answers`: by how they were answered, those that did not
    """

    recording = True
    asked = False

    def __init__(
        self, journal: Journal, record: Record, plan: Plan, store: str, *, since: int | None = None,
        deadline: float = 30.0, ordered: bool = False, also: Iterable[int] = (), gated: bool = False,
    ) -> None:  # fmt: skip
        """`store`: its path, where the vault is. `ordered`: the part that is served happens again, in its order, with
        `also` among it (`lockstep.session.native.order`). `gated`: that holds for tasks' calls that the branch records
        again too, since it does not share them."""
        # Here, since only forks need all of a session.
        from lockstep.session.session import replayed

        self.journal = journal
        self.plan = plan
        known, wrong = replayed(store, record.reader.meta)
        self.latch = Latch(known)
        self.notes: dict[tuple[str, str], int] = {("vault", wrong): 1} if wrong else {}
        served, later = record.split(plan.upto if since is None else since, plan.upto)
        self.served = Serving(served, known, self.latch, ordered=ordered, deadline=deadline, also=also)
        self.later = Serving(later, known, self.latch, ordered=False, deadline=deadline)
        self.tail = Tail(plan, later, ordered=False, beside=_beside(store, plan.policy.beside))
        self.gated = gated
        self.lived = 0
        self.answers: dict[str, int] = {}
        self._first = 0
        self._acted: dict[bytes, int] = {}  # by match key: how often it ran for real, of what acts
        self._lock: Any = untapped.RLock()
        self._began = untapped.monotonic_ns()

    def call(self, lane: str, kind: str, within: Call | None = None) -> Call:
        """See `Calls`. Held, but for what a call that runs for real calls in turn: the policy was asked for that."""
        if self.latch.stopped:
            self.latch.raise_it()
        strand = self.journal.strand(lane)
        return LiveCall(self, strand, kind, within) if within is not None else self.undecided(strand, kind)

    def undecided(self, strand: Strand, kind: str) -> Call:
        """A call that no other one makes: one of the part that is served, or of the tail."""
        return Undecided(self, strand, kind)

    # What the calls ask of their session: those that are recorded, of its journal.

    @property
    def secrets(self) -> Secrets:
        return self.journal.secrets

    @property
    def effect_rules(self) -> Any:
        return self.plan.policy.rules if self.plan.policy.rules.rules else self.journal.effect_rules

    @property
    def position(self) -> Callable[[], int]:
        return self.journal.position

    def emit(self, *args: Any, **kwargs: Any) -> None:
        self.journal.emit(*args, **kwargs)

    def fault(self, where: str, error: BaseException) -> None:
        self.journal.fault(where, error)

    def log_of(self, lane: Strand) -> Uncounted:
        return UNCOUNTED

    def count(self, kind: str) -> None:
        self.journal.count(kind)

    @property
    def stopped(self) -> bool:
        return self.latch.stopped

    def raise_latched(self) -> NoReturn:
        self.latch.raise_it()

    def diverge(self, code: Code, reason: str, **about: Any) -> NoReturn:
        self.later.diverge(code, reason, **about)

    def note(self, source: str, detail: str = "") -> None:
        """Names something that no record covers and no policy was asked for."""
        with self._lock:
            self.notes[(source, detail)] = self.notes.get((source, detail), 0) + 1

    def went(self, how: str, pos: int) -> None:
        """A call past the cut has been decided. `how`: "" for one that runs."""
        with self._lock:
            if how:
                self.answers[how] = self.answers.get(how, 0) + 1
                return
            self.lived += 1
            self._first = self._first or pos

    def runs(self, kind: str, name: str, request: Value, key: bytes, declared: Declared | None) -> None:
        """A call runs for real. One that acts is not made once more in silence: a program that tries again may pay
        twice."""
        if judge(kind, name, request, declared, self.effect_rules).effect in _HARMLESS:
            return
        with self._lock:
            self._acted[key] = times = self._acted.get(key, 0) + 1
        if times > 1:
            log.warning("%s %s runs for real once more with the same request: %d times in this fork", kind, name, times)

    def serves(self, lane: str) -> bool:
        """Whether a call of this lane may be one of those in the part served."""
        return not any(belongs(lane, checkpoints) for checkpoints in self.journal.looped)

    def refuse(self, call: Any, verdict: Refuse, name: str, request: Value) -> NoReturn:
        """Latches that a call may not run, and raises it."""
        self.latch.refuse(
            refusal.text(call.kind, name, request, verdict.declared, verdict.nearest, tail=self.plan.policy.tail)
        )
        self.latch.raise_it()

    # The end.

    @property
    def first(self) -> int:
        """The position in the branch of the first call that ran for real, 0 for none; once the journal is flushed."""
        return self.journal.place(self._first)

    def state(self, ended: str) -> str:
        """How the fork ended, as its report says it: `ended` ("complete" or "failed"), if nothing stopped it."""
        if self.latch.refused:
            return "refused"
        return "diverged" if self.latch.difference is not None else ended

    def resting(self) -> RunState | None:
        """How the branch rests, for `Turn.end`; None where the turn's own end says it."""
        if self.latch.refused:
            return RunState.REFUSED
        return RunState.FAILED if self.latch.difference is not None else None

    def report(self, ended: str, **more: Any) -> Report:
        """How it went. `ended`: complete or failed, as the framework's last turn did. `more`: fields of the report
        that the adapter knows better."""
        self.journal.flush()
        served = list(self.served.handed())
        covered = [Coverage(kind, coverage.RECORDED, count) for kind, count in sorted(self.journal.counts.items())]
        unreached = tuple(address for edit in self.tail.unreached.values() for address in edit.told)
        return Report(
            **{
                "mode": "fork",
                "run": self.journal.run,
                "branch": self.journal.branch,
                "state": self.state(ended),
                "difference": self.latch.difference,
                "when": self.latch.when,
                "counts": dict(self.journal.counts),
                "digest": engine.digest(lane_sums(served), b"").hex(),
                "live": self.lived,
                "live_calls": self.lived,
                "answers": dict(self.answers),
                "refused": tuple(self.latch.refused),
                "unreached": unreached if not self.latch.stopped else (),
                "seconds": (untapped.monotonic_ns() - self._began) / 1e9,
                "coverage": (*covered, *coverage.uncovered(self)),
                "faults": (*self.journal.faults, *self.served.faults, *self.later.faults),
                **more,
            }
        )


class Undecided(ForkedCall):
    """A call of a fork: what it is, is known when `ready` returns."""

    __slots__ = ("_waits",)

    session: Forking

    def __init__(self, session: Forking, lane: Strand, kind: str) -> None:
        super().__init__(session, lane, kind)
        self._waits: NativeCall | None = None  # of one that is served and recorded again: its place in the order

    def ask(self, name: str, request: Value, key: Value, kind: str | None = None, declared: Any = None) -> None:
        session = self.session
        if session.latch.stopped:
            session.latch.raise_it()
        if kind is not None:
            self.kind = kind
        served, later = session.served, session.later
        strand = served.strand(self.lane.name)
        hidden, told, digest = served.recognised(strand, self.kind, name, request, key)
        self._asked = name, request, key, declared, (hidden, told, digest)
        if not session.serves(self.lane.name):
            return
        effect = served.take(strand, digest)
        if effect is None:
            if next(strand.state.left(), None) is not None and not later.strand(self.lane.name).state.has(digest):
                served.match(strand, self.kind, hidden, digest, told)  # the task that is served to is another one
        elif effect.pieces[-1][1].pos > session.journal.base:
            self._answer(Answer("served", effect), served)
            if session.gated:
                self._waits = NativeCall(served, strand, self.kind)
                self._waits.answered_by(effect, digest)
        else:
            call = NativeCall(served, strand, self.kind)
            call.name = hidden
            call.answered_by(effect, digest)
            self._to = call

    def ready(self) -> None:
        if self._to is None:
            self._decide()

    async def aready(self) -> None:
        if self._to is None:
            self._decide()
        elif self._waits is not None:
            waits, self._waits = self._waits, None
            await waits.in_turn()

    def now(self) -> Piece:
        """See `NativeCall.now`; of one that was given its answer, the next piece."""
        to: Any = self._to
        piece: Piece = to.now() if isinstance(to, NativeCall) else to.take()
        return piece

    def _decide(self, suspended: bool = False) -> None:
        session = self.session
        if session.latch.stopped:
            session.latch.raise_it()
        assert self._asked is not None
        declared, (hidden, told, digest) = self._asked[3:]
        verdict = session.tail.decide(self.lane.name, self.kind, hidden, digest, told, declared, 0)
        if isinstance(verdict, Answer):
            self._answer(verdict, session.later)
            return
        record = self._recorded()
        if isinstance(verdict, Live):
            session.runs(self.kind, hidden, told, digest, declared)
            session.went("", record.pos)
            self._to, self.live = record, True
        else:
            session.refuse(self, verdict, hidden, told)

    def _recorded(self) -> LiveCall:
        """The call as the branch has it, begun."""
        assert self._asked is not None
        name, request, key, declared, _ = self._asked
        record = LiveCall(self.session, self.lane, self.kind, None)
        record.ask(name, request, key, declared=declared)
        return record

    def _answer(self, verdict: Answer, of: Serving) -> None:
        """It gets this answer, of an edit or of what `of` serves."""
        record = self._recorded()
        self.session.went(verdict.how, record.pos)
        edit, effect = verdict.edit, verdict.effect
        pieces: Any = revealed(of, edit.pieces) if edit is not None else given(of, effect)  # type: ignore[arg-type]
        self._to = Answered(record, self.kind, iter(pieces), verdict.how)


def _beside(store: str, address: str) -> Beside | None:
    if not address:
        return None
    from lockstep.session import beside  # probes of bisect alone have it

    return beside.read(store, address)


def told(plan: Plan) -> dict[str, Value]:
    """What the FORK event of a planned branch says beside (`Journal.fork`)."""
    edits = {address: value for edit in plan.edits for address, value in edit.told.items()}
    policy = plan.policy
    return {"edits": edits, "live": [*policy.live], "tail": policy.tail, "upto": plan.upto, "until": plan.until}
