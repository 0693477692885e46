"""The part of an execution that a fork serves: it is driven as in a replay, and what it commands is compared."""

from __future__ import annotations

from collections.abc import Sequence

from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion

from lockstep.errors import Difference
from lockstep.session import sites
from lockstep_temporal import layout
from lockstep_temporal.compare import Found, compare, differing
from lockstep_temporal.drift import Drifts
from lockstep_temporal.driver import Drive, closed
from lockstep_temporal.past import Past
from lockstep_temporal.prepared import Prepared
from lockstep_temporal.recorded import Task
from lockstep_temporal.watching import Watch
from lockstep_temporal.world import World


class Prefix:
    """`drive`, `world`: the instance and what stands around it, once it has run."""

    def __init__(self, prepared: Prepared, watch: Watch, drifts: Drifts, namespace: str, task_queue: str) -> None:
        self.drive: Drive | None = None
        self.world: World | None = None
        self._prepared = prepared
        self._watch = watch
        self._drifts = drifts
        self._namespace = namespace
        self._task_queue = task_queue

    def run(self, steps: Sequence[int], past: Past) -> Difference | None:
        """Drives these steps. Returns where it was not what was recorded, None where it was."""
        given: list[Task] = []
        for step in steps:
            imported = past.against(step)
            for task in past.tasks(step):
                given.append(task)
                now = self._activate(task)
                found = self._compare(given, now) if imported is None else None
                if found is not None:
                    return self._difference(step, found, now)
            if imported is not None:
                differs = imported.differs(step - past.turn_of(step).first, self._drifts.volatile)
                if differs is not None:
                    return self._difference(step, differs.found, WorkflowActivationCompletion())
        return None

    def close(self) -> None:
        if self.drive is not None:
            closed(self.drive, self._watch.on)

    def _activate(self, task: Task) -> WorkflowActivationCompletion:
        activation, was = task
        if self.drive is None or self.world is None:
            self.drive = self._fresh(task)
            self.world = World(activation, self._namespace, self._task_queue)
        else:
            self.world.see(activation)
        with self._watch.on():
            now = self.drive.activate(activation)
        self.world.take(was)
        return now

    def _fresh(self, first: Task) -> Drive:
        activation, was = first
        flags = frozenset(was.successful.used_internal_flags)
        return Drive(self._prepared, activation, namespace=self._namespace, task_queue=self._task_queue, flags=flags)

    def _compare(self, given: list[Task], now: WorkflowActivationCompletion) -> Found | None:
        was = given[-1][1]
        found = compare(was, now, self._drifts.volatile)
        if found is not None and found.path and self._drifts.learn(differing(now, self._once_more(given))):
            found = compare(was, now, self._drifts.volatile)
        return found

    def _once_more(self, given: list[Task]) -> WorkflowActivationCompletion:
        """What the same code answers to the same activations, in another instance."""
        with self._fresh(given[0]) as drive, self._watch.on():
            now = WorkflowActivationCompletion()
            for activation, _ in given:
                now = drive.activate(activation)
        return now

    def _difference(self, step: int, found: Found, now: WorkflowActivationCompletion) -> Difference:
        assert self.drive is not None
        error = self.drive.error if now.HasField("failed") else None
        source = sites.of_exception(error) if error is not None else ""
        return Difference(
            code=found.code, reason=found.reason, step=step, lane=layout.LANE, kind=found.kind, name=found.name,
            source=source or str(self.drive.source(found.index)), path=found.path, expected=found.expected,
            actual=found.actual, same_until=step - 1 if step else None, beside=found.beside,
        )  # fmt: skip
