"""Replays of a workflow's run: each recorded activation goes into a fresh instance, and what comes out is compared.

An activation holds all that a workflow sees of the world: its start, its clock and seed, and every answer. So a replay
needs neither server nor activities, and an equal answer to each means that today's code does the same. What Temporal's
own replay lets pass (arguments, timeouts, results) is a difference here.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from lockstep.adapter.native import Played, ReplayOptions, check_range
from lockstep.errors import Code, Difference, TargetError
from lockstep.log.model import Value
from lockstep.log.store import RunReader
from lockstep.session import coverage
from lockstep.session.native.server import Server
from lockstep.session.report import Coverage
from lockstep_temporal import commands, layout
from lockstep_temporal.coded import decoding
from lockstep_temporal.compare import Found
from lockstep_temporal.drift import Drifts
from lockstep_temporal.playing import Playing
from lockstep_temporal.prepared import Prepared, prepare
from lockstep_temporal.recorded import ExecutionTurn, Recorded, RecordedStep
from lockstep_temporal.setup import setup_of
from lockstep_temporal.watching import Watch


def replay(reader: RunReader, target: Any, options: ReplayOptions) -> Played:
    """Replays a branch of a workflow's run. Raises TargetError LS402 where it cannot begin."""
    if asyncio._get_running_loop() is not None:
        # A workflow is a loop itself, and no two can run in one thread.
        with ThreadPoolExecutor(1, thread_name_prefix="lockstep-temporal-replay") as thread:
            return thread.submit(_replay, reader, target, options).result()
    return _replay(reader, target, options)


async def areplay(reader: RunReader, target: Any, options: ReplayOptions) -> Played:
    """The same under a running loop, which goes on meanwhile."""
    return await asyncio.get_running_loop().run_in_executor(None, _replay, reader, target, options)


def _replay(reader: RunReader, target: Any, options: ReplayOptions) -> Played:
    replaying = Replaying(reader, target, options)
    with prepare(replaying.setup) as prepared, Watch(options.deadline) as watch:
        replaying.run(prepared, watch)
    return replaying.played()


class Replaying:
    """One replay: what it goes by, and what has come of it so far."""

    def __init__(self, reader: RunReader, target: Any, options: ReplayOptions) -> None:
        self.options = options
        self.recorded = Recorded(reader)
        self.server = Server(self.recorded.record, options.store, deadline=options.deadline)
        self.recorded.secrets = self.server.secrets
        self.address = f"{reader.info.name}" if reader.branch == "main" else f"{reader.info.name}@{reader.branch}"
        self._refuse()
        self.setup = setup_of(target, options.own)
        self.results: list[Any] = []
        self.error: BaseException | None = None
        self.drifts = Drifts(self.setup.volatile)
        self.compared: list[int] = []  # steps that were the recorded ones
        self._keys: list[Value] = []
        self._together: Counter[int] = Counter()  # by step: local activities that were open at once
        self._turns = self._choose()

    def _refuse(self) -> None:
        native = self.recorded.native
        if self.options.depth != "call":
            raise TargetError(
                Code.BAD_TARGET,
                f"depth {self.options.depth!r} is nothing that a workflow has: activities never run in a replay, and"
                " the workflow's own code always does",
            )
        if self.recorded.origin == layout.INTERCEPTOR:
            raise TargetError(
                Code.BAD_TARGET,
                f"{self.address} was recorded by LockstepInterceptor alone, which sees neither timers nor the clock"
                " nor commands: it can be read, not replayed. Record with LockstepPlugin on client or worker, or fetch"
                f" the execution's history: lockstep temporal pull --workflow-id {native.get('workflow_id')}",
            )

    def _choose(self) -> tuple[ExecutionTurn, ...]:
        every, number, until = self.recorded.turns, self.options.turn, self.options.until
        check_range(self.options, self.address, len(every), len(self.recorded.steps))
        return tuple(turn for turn in every if number in (None, turn.number) and (until is None or turn.first <= until))

    # Running.

    def run(self, prepared: Prepared, watch: Watch) -> None:
        latch = self.server.latch
        self.recorded.decode = decoding(self.recorded, prepared.data_converter, self.address)
        for turn in self._turns:
            Playing(self, prepared, watch, turn).run()
            if latch.stopped:
                return
        last = self._turns[-1] if self._turns else None
        if last is not None and not last.status and self.options.until is None:
            latch.come_to_cut()  # what follows is not known: it was cut off, or goes on

    def steps(self, turn: ExecutionTurn) -> list[RecordedStep]:
        """Those that are compared."""
        until = self.options.until
        return [self.recorded.steps[n] for n in turn.steps if until is None or n <= until]

    # What a turn tells.

    def differs(self, step: int, found: Found, source: str) -> None:
        """The first difference, in a step of the record."""
        self.server.latch.stop_at(
            Difference(
                code=found.code, reason=found.reason, step=step, lane=layout.LANE, kind=found.kind, name=found.name,
                source=source, path=found.path, expected=found.expected, actual=found.actual,
                same_until=step - 1 if step else None, beside=found.beside,
            )
        )  # fmt: skip

    def same(self, step: RecordedStep, key: Value) -> None:
        """A step was the recorded one. `key`: of what was commanded now."""
        self.compared.append(step.number)
        self._keys.append(key)

    def together(self, step: int, count: int) -> None:
        """So many local activities were open in a step."""
        if count > 1:
            self._together[step] = max(self._together[step], count)

    # The end.

    def played(self) -> Played:
        for told in self.drifts.others:
            self.server.note("drift", told)
        counts = self._counts()
        handed = sorted(counts.items())
        covered = [Coverage(kind, coverage.RECORDED, count, self._known(kind)) for kind, count in handed]
        keys: Value = [*self._keys]
        report = self.server.report(
            end=keys,
            recorded=self._recorded_keys(),
            steps=len(self.compared),
            counts=counts,
            coverage=(*covered, *self.drifts.inputs, *self._races(), *coverage.uncovered(self.server)),
        )
        return Played(report=report, results=self.results, error=self.error)

    def _known(self, kind: str) -> str:
        """What of a kind of effects is not in the record, "" if nothing."""
        if kind == commands.LOCAL_ACTIVITY and self.recorded.origin == layout.HISTORY:
            return "a history says which ones were called and what they answered, not with what: that is not compared"
        return ""

    def _recorded_keys(self) -> Value:
        found: list[Value] = [self.recorded.steps[n].event.key for n in self.compared]
        return found

    def _counts(self) -> dict[str, int]:
        """The answers that were handed out, by kind."""
        steps = set(self.compared)
        return dict(
            Counter(each.kind for each in self.recorded.effects if each.end is not None and each.answered in steps)
        )

    def _races(self) -> tuple[Coverage, ...]:
        """Temporal's own replay resolves local activities in the order of their calls, which may be another one."""
        if not self._together:
            return ()
        told = ", ".join(str(step) for step in sorted(self._together)[:5])
        return (
            Coverage(
                "local activities", coverage.DIFFERS, 0,
                f"{max(self._together.values())} were open at once (step {told}): they are resolved here as they ended"
                " when they were recorded, and by Temporal's own replay in the order in which they were called",
            ),
        )  # fmt: skip
