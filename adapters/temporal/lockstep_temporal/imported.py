"""An execution that was imported from its history, against today's code: each step's activations, and what differs.

    against = Against(setup, [step.events() for step in …], workflow_id="order-7")
    for number in …:
        against.pairs(number)          activations with what the code answers now
        against.differs(number)        the first difference of the step, None where there is none; steps in order

`events` are those of the steps, which may be the first ones of a history only: a branch that left it goes on by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from temporalio.converter import DataConverter
from temporalio.worker import Replayer

from lockstep_temporal.compare import Drift, Volatile
from lockstep_temporal.decoding import decoded
from lockstep_temporal.expected import Differs, Expecting, beyond
from lockstep_temporal.setup import Setup
from lockstep_temporal.walk import Pair, Verdict, walk
from lockstep_temporal.watching import Watch


class Against:
    """One execution. `verdict`: what the SDK's Replayer has against it, None if nothing."""

    def __init__(
        self, setup: Setup, events: Sequence[Sequence[Any]], *, workflow_id: str, namespace: str = "default",
        watch: Watch | None = None,
    ) -> None:  # fmt: skip
        """Raises TargetError LS402 where the setup is none, has no such workflow, or another codec; Stuck as `walk`."""
        every = [event for step in events for event in step]
        converter = _converter(setup)
        clear = decoded(every, converter, namespace=namespace, workflow_id=workflow_id)
        walked = walk(setup, every, workflow_id=workflow_id, namespace=namespace, watch=watch)
        self.verdict: Verdict | None = walked.verdict
        self._expecting = Expecting(clear)
        self._events: list[list[Any]] = []
        self._pairs: list[tuple[Pair, ...]] = []
        at = 0
        by_length: dict[int, list[Pair]] = {}
        for pair in walked.pairs:
            by_length.setdefault(pair[0].history_length, []).append(pair)
        for step in events:
            self._events.append(clear[at : at + len(step)])
            at += len(step)
            started = [
                event.workflow_task_completed_event_attributes.started_event_id
                for event in step
                if event.HasField("workflow_task_completed_event_attributes")
            ]
            self._pairs.append(tuple(pair for number in started for pair in by_length.get(number, ())))
        self._last = max((number for number, pairs in enumerate(self._pairs) if pairs), default=-1)

    def pairs(self, step: int) -> tuple[Pair, ...]:
        """Those of a step, by its place in `events`; () where core stopped before it."""
        return self._pairs[step]

    def differs(
        self, step: int, volatile: Volatile | None = None, drifts: list[Drift] | None = None
    ) -> Differs | None:  # fmt: skip
        """Compares the step, each once and in their order. `volatile` and `drifts` as of `compare`."""
        found = self._expecting.step(self._events[step], self._pairs[step], volatile, drifts)
        if found is None and self.verdict is not None and step >= self._last:
            return Differs(beyond(self.verdict), max(len(self._pairs[step]) - 1, 0))
        return found


def _converter(setup: Setup) -> DataConverter:
    """The data converter, as the setup's plugins make it."""
    given = {"data_converter": setup.data_converter} if setup.data_converter is not None else {}
    replayer = Replayer(workflows=list(setup.workflows), plugins=list(setup.plugins), **given)
    found: DataConverter = replayer.config(active_config=True)["data_converter"]
    return found
