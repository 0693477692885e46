"""Replays a native run: its calls are served, nothing runs, and the first difference is latched.

    server = Server(Record(reader), store)
    for turn in record.turns:
        calls = server.turn(turn)              # is `Calls`: give it to the turn that runs again
        …                                      # calls raise Divergence or Cut where the code is another one
        calls.finish()                         # a recorded call that nobody made is a difference too
    report = server.report(end=…, recorded=…)

Where an adapter compares more (checkpoints, what a turn returned), it latches what differs by `calls.differs`, and
names what no record covers by `server.note`: then the replay is not called identical.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lockstep.log import canonical, untapped
from lockstep.log.model import Value
from lockstep.session import coverage, engine
from lockstep.session.native.kept import recalled
from lockstep.session.native.latch import Latch
from lockstep.session.native.record import Record, RecordedTurn
from lockstep.session.native.serving import Serving, lane_sums
from lockstep.session.report import Coverage, Report
from lockstep.session.secrets import Secrets


class Server:
    """A replay of one branch of a native run.

    latch    what differed first; `latch.stopped`, `latch.difference`, `latch.cut`
    secrets  those of the run, as they are known here
    faults   errors of an adapter's own while it replays: the replay is then not called identical
    """

    def __init__(
        self, record: Record, store: str, *, deadline: float = 30.0, patience: float = 0.5,
        secrets: Secrets | None = None,
    ) -> None:  # fmt: skip
        """`store`: its path, where the vault is. `deadline`: seconds without any progress after which a strand that
        waits for an answer that does not come is a difference. `patience`: likewise, after which an answer no longer
        waits for what came before it in the record (`lockstep.session.native.order`)."""
        self.record = record
        wrong = ""
        if secrets is None:
            secrets, wrong = recalled(store, record.reader.meta)
        self.secrets = secrets
        self.latch = Latch(secrets)
        self.deadline = deadline
        self.patience = patience
        self.faults: list[str] = []
        self.notes: dict[tuple[str, str], int] = {}
        self._servings: list[Serving] = []
        self._began = untapped.monotonic_ns()
        if wrong:
            self.note("vault", wrong)

    def turn(self, turn: RecordedTurn, also: Iterable[int] = ()) -> Serving:
        """The calls of one recorded turn. Each is served once: ask for it once a replay. `also`: further positions that
        answers wait for (`lockstep.session.native.order`)."""
        return self.stretch(turn.pos, turn.stop, interrupted=turn.interrupted, also=also)

    def stretch(self, first: int, stop: int, *, interrupted: bool = False, also: Iterable[int] = ()) -> Serving:
        """The calls that were begun at positions [first, stop). `interrupted`: what follows them is not known, and a
        call that is not there stops the program with Cut."""
        tape = self.record.tape(first, stop)
        serving = Serving(
            tape, self.secrets, self.latch, interrupted=interrupted, deadline=self.deadline, patience=self.patience,
            also=also,
        )  # fmt: skip
        self._servings.append(serving)
        return serving

    def note(self, source: str, detail: str = "") -> None:
        """Names something that no record covers; a place counts once, with how often it was passed."""
        self.notes[(source, detail)] = self.notes.get((source, detail), 0) + 1

    def hide(self, value: Value) -> Value:
        """The value as it would have been recorded: to compare with what is."""
        return self.secrets.hide(value)

    def reveal(self, value: Value) -> Value:
        """A recorded value as the program has it."""
        return self.secrets.reveal(value)

    def digest(self, end: Value = None) -> bytes:
        """The identity of all that was asked and handed out so far, and of `end`: states and results, as the adapter
        has them."""
        told = [item for serving in self._servings for item in serving.handed()]
        return engine.digest(lane_sums(told), canonical.digest(self.hide(end)))

    def recorded_digest(self, end: Value = None) -> bytes:
        """The same of what is recorded in the stretches that were served. `end` as it is stored."""
        told = [item for serving in self._servings for item in serving.recorded()]
        return engine.digest(lane_sums(told), canonical.digest(end))

    def report(self, *, end: Value = None, recorded: Value = None, **more: Any) -> Report:
        """How the replay went. `end` and `recorded`: see `digest` and `recorded_digest`. `more`: fields of the report
        that the adapter knows better, as `live_calls`, `steps`, `exit`."""
        latch = self.latch
        now, was = self.digest(end), self.recorded_digest(recorded)
        faults = (*self.faults, *(fault for serving in self._servings for fault in serving.faults))
        clean = latch.difference is None and not self.notes and not faults and not more.get("live_calls")
        counts: dict[str, int] = {}
        lanes: set[str] = set()
        for serving in self._servings:
            lanes.update(lane for lane, _ in serving.handed())
            for kind, count in serving.counts.items():
                counts[kind] = counts.get(kind, 0) + count
        covered = [Coverage(kind, coverage.RECORDED, count) for kind, count in sorted(counts.items())]
        info = self.record.reader.info
        return Report(
            **{
                "mode": "replay",
                "run": info.name,
                "branch": self.record.reader.branch,
                "identical": clean and now == was,
                "cut": latch.cut,
                "difference": latch.difference,
                "when": latch.when,
                "lanes": max(1, len(lanes)),
                "counts": counts,
                "digest": now.hex(),
                "seconds": (untapped.monotonic_ns() - self._began) / 1e9,
                "coverage": (*covered, *coverage.uncovered(self)),
                "faults": faults,
                "redacted": tuple(sorted(self.secrets.stood_in)),
                **more,
            }
        )
