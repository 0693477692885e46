"""A fork that goes on from where it leaves: what was served is driven, and the tail played, told and written down."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec
from temporalio.bridge.proto.workflow_activation import WorkflowActivation

from lockstep.adapter.forking import continued, rest
from lockstep.adapter.native import Continued
from lockstep.errors import Code, Difference, Refusal
from lockstep.session.native.forking import Forking
from lockstep.session.native.journal import Journal
from lockstep_temporal import commands, layout, wording
from lockstep_temporal.actors import Actor, Hooks, Inbound, Unable
from lockstep_temporal.asks import Ask, Ended
from lockstep_temporal.branching import Asked, Branch, command_of
from lockstep_temporal.deciding import Decider
from lockstep_temporal.drift import Drifts
from lockstep_temporal.edited import Converter
from lockstep_temporal.live import Live
from lockstep_temporal.naming import Naming
from lockstep_temporal.past import Past
from lockstep_temporal.prefix import Prefix
from lockstep_temporal.prepared import Prepared
from lockstep_temporal.recorded import ExecutionTurn
from lockstep_temporal.recording import Recorder
from lockstep_temporal.stage import Stage
from lockstep_temporal.trying import Elsewhere, Endless
from lockstep_temporal.watching import Stuck, Watch

if TYPE_CHECKING:
    from lockstep_temporal.forking import Session
    from lockstep_temporal.hosting import Hosted


class Going:
    """One fork, once its branch is there. `reached`: effects that are no calls, and whose edits have been applied."""

    def __init__(
        self, session: Session, prepared: Prepared, watch: Watch, live: Live, journal: Journal, naming: Naming
    ) -> None:
        self.session = session
        self.reached: set[int] = set()
        self.prepared = prepared
        self.watch = watch
        self.journal = journal
        self.past = Past(session.recorded, session.walk, session.at, session.edits.own)
        plan = msgspec.structs.replace(session.plan(journal.branch), branch=journal.branch)
        self.calls = Forking(
            journal, session.recorded.record, plan, session.store.path, since=0, deadline=session.options.deadline
        )
        self.drifts = Drifts(session.setup.volatile)
        vault = journal.secrets.vault
        self.wording = wording.of_run(prepared.data_converter, session.recorded.meta, vault, naming)
        self.converter = Converter(prepared.data_converter)
        self.recorder = Recorder.resume(journal, self.wording, effects=False)
        self.branch = Branch(self.calls, self.recorder, self.wording)
        decide = Decider(
            self.calls, self.past, self.branch, session.edits, self.converter, live, naming, self.wording,
            prepared.has, self.drifts,
        )  # fmt: skip
        hooks = Hooks(
            decide=decide, task=self._task, turn=self._turn, follows=self._follows, timer=self._timer,
            chain=self._chain, unanswered=decide.unanswered, attempt=self.branch.attempt,
        )  # fmt: skip
        self.stage: Stage | Hosted
        if session.server is None:
            self.stage = Stage(prepared, live, hooks, self._inbound(), watch=watch)
        else:
            from lockstep_temporal.hosting import Hosted

            self.stage = Hosted(prepared, live, hooks, self._inbound(), watch=watch, server=session.server)
        self.number = session.turn.number
        self.ended = ""

    def close(self) -> None:
        self.stage.close()
        self.recorder.close()

    def run(self) -> None:
        calls = self.calls
        try:
            self._go()
        except Refusal:
            self.ended = "refused"
        except (Unable, Endless, Elsewhere) as error:
            calls.latch.refuse(str(error))
            self.ended = "refused"
        except Stuck:
            seconds = self.session.options.deadline
            reason = f"the workflow's code came to no stop within {seconds:g} s"
            at = len(self.session.served) + self.branch.steps
            calls.latch.stop_at(
                Difference(
                    code=Code.STUCK, reason=reason, step=at, lane=layout.LANE, kind="workflow task", name="", source=""
                )
            )  # fmt: skip

    def _go(self) -> None:
        session, stage = self.session, self.stage
        first = self._first()
        self.recorder.begin(first, layout.FORK if session.goes_on else "", task_queue=session.task_queue)
        if not session.served:
            stage.begin(first, session.namespace, session.task_queue)
        else:
            prefix = Prefix(self.prepared, self.watch, self.drifts, session.namespace, session.task_queue)
            found = prefix.run(session.served, self.past)
            if found is not None:
                self.calls.latch.stop_at(found)
                prefix.close()
                return
            assert prefix.drive is not None
            assert prefix.world is not None
            self.recorder.waits(command_of(ask) for ask in (*prefix.world.open, *prefix.world.timers))
            stage.enter(prefix.world, prefix.drive)
            if prefix.world.ended is not None:
                self._result(stage.main, prefix.world.ended)
                if session.turn.end_seq >= 0:
                    self.recorder.end(session.turn.status, session.recorded.record.body(session.turn.end_seq))
        ended = stage.run()
        self._over(ended)

    def _first(self) -> WorkflowActivation:
        """The activation that the execution began with."""
        session = self.session
        activation, _ = self.past.tasks(session.turn.first)[0]
        made = WorkflowActivation()
        made.CopyFrom(activation)
        if session.served or not session.edits.own:
            return made
        del made.jobs[:]
        changed = [each for _, each in self._changed(session.turn, 0)]
        for job in activation.jobs:
            if job.WhichOneof("variant") not in ("signal_workflow", "do_update", "cancel_workflow"):
                made.jobs.append(job)
        made.jobs.extend(job for each in changed if each.step == 0 for job in each.jobs)
        return made

    def _inbound(self) -> list[list[Inbound]]:
        """What came from outside after the cut, of each execution from the one that goes on."""
        session = self.session
        after = {session.turn.number: session.at}
        turns = [turn for turn in session.recorded.turns if turn.number >= session.turn.number]
        found = []
        for turn in turns:
            here = [each for _, each in self._changed(turn, after.get(turn.number, 0))]
            if not (session.served and turn.number == session.turn.number):
                here = [each for each in here if each.step > 0]  # the rest came with the first activation
            found.append(here)
        return found

    def _changed(self, turn: ExecutionTurn, after: int) -> Iterator[tuple[int, Inbound]]:
        """With edits of it applied."""
        own = self.session.edits.own
        for effect, inbound in self.past.inbound(turn, after):
            pos = effect.begin.pos
            if pos not in own:
                yield pos, inbound
                continue
            self.reached.add(pos)
            if own[pos] is not None:
                jobs = tuple(self.converter.arguments(job, own[pos]) for job in inbound.jobs)
                yield pos, msgspec.structs.replace(inbound, jobs=jobs)

    # What the stage tells.

    def _task(self, actor: Actor, activation: WorkflowActivation, completion: Any) -> None:
        if actor.lane == layout.LANE and completion.HasField("failed"):
            self.session.error = actor.drive.error or RuntimeError(completion.failed.failure.message)
        self.branch.task(actor, activation, completion)

    def _timer(self, actor: Actor, ask: Ask) -> None:
        self._set(actor, ask)
        command = command_of(ask)
        said = self.wording.task()
        told = said.asked(command)
        said.finish()
        name, request, key = self.calls.secrets.asked(told.kind, told.name, told.request, told.matched)
        self.branch.begin(actor, ask, Asked(told.kind, name, request, key, told.declared), "")

    def _set(self, actor: Actor, ask: Ask) -> None:
        """A timer fires when an edit says, else as late as it did: what else had come by then comes with it."""
        if actor.turn or actor.lane != layout.LANE:
            return
        recorded = self.session.recorded
        effect = recorded.effect(commands.TIMER, ask.seq, self.session.turn.run_id)
        if effect is None:
            return
        seconds = self.session.edits.own.get(effect.begin.pos)
        if seconds is not None:
            self.reached.add(effect.begin.pos)
            actor.world.delay(ask.seq, max(ask.at + int(seconds * 1e9), actor.world.now))
            return
        given = self.past.answer(effect) if recorded.request(effect) == command_of(ask).request else None
        if given is not None:
            actor.world.delay(ask.seq, max(ask.at + given.after, actor.world.now), given.rank)

    def _turn(self, actor: Actor, ended: Ended, following: WorkflowActivation | None) -> None:
        self._result(actor, ended)
        if following is not None and self._follows():
            self.number += 1
            self.recorder.begin(following, task_queue=self.session.task_queue)

    def _follows(self) -> bool:
        last = self.session.options.turn
        return last is None or self.number < last

    def _chain(self, turn: int) -> tuple[str, int] | None:
        """Run id and seed that the run so many turns after the first has in the record: what it draws is the same."""
        number = self.session.turn.number + turn
        turns = self.session.recorded.turns
        if number > len(turns) or not turns[number - 1].steps:
            return None
        activation, _ = self.past.tasks(turns[number - 1].first)[0]
        init = commands.started(activation)
        return None if init is None else (activation.run_id, init.randomness_seed)

    def _result(self, actor: Actor, ended: Ended) -> None:
        session, converter = self.session, self.prepared.data_converter
        if ended.how == "complete_workflow_execution":
            session.error = None
            session.results.append(self._returned(actor, ended.command))
        elif ended.how == "continue_as_new_workflow_execution":
            session.error = None
            session.results.append(None)
        elif ended.how == "fail_workflow_execution":
            session.error = converter.failure_converter.from_failure(ended.command.failure, converter.payload_converter)
        elif ended.how != "failed_task":
            session.error = _stopped(ended.how)

    def _returned(self, actor: Actor, said: Any) -> Any:
        if not said.HasField("result"):
            return None
        definition = self.prepared.definition(actor.world.init.workflow_type)
        hints = [definition.ret_type] if definition.ret_type is not None else None
        return self.prepared.data_converter.payload_converter.from_payloads([said.result], hints)[0]

    def _over(self, ended: Ended | None) -> None:
        for note in self.stage.notes:
            self.calls.note("beyond this fork", note)
        if self.past.unsure - self.branch.taken:
            self.calls.note(
                "streams", "several activities were in flight when something was published: it comes as recorded, also"
                " where the one that published it runs for real",
            )  # fmt: skip
        if ended is not None:
            self.ended = "complete" if self.session.error is None else "failed"
            return
        self.ended = "interrupted"
        waits = [f"{ask.sort} {ask.seq}" for ask in self.stage.waiting or ()]
        what = f"for {', '.join(waits)}" if waits else "for something from outside, such as a signal or an update"
        self.calls.note("the workflow waits", f"{what}, which does not come in this fork")

    # How it went.

    def continued(self) -> Continued:
        session = self.session
        rest(self.calls, failed=self.ended == "failed")
        for told in self.drifts.inputs:
            self.calls.note(told.source, told.detail)
        return continued(
            session.store, self.calls, upto=session.at, began=session.began, origin=session.plan("").origin,
            results=session.results, error=session.error, ended=self.ended or "complete",
            unasked=(commands.TIMER, *commands.INBOUND),
            config={"workflow_id": session.recorded.native.get("workflow_id"), "run_id": self.recorder.run_id},
            unreached=self._unreached(),
        )  # fmt: skip

    def _unreached(self) -> tuple[str, ...]:
        if self.calls.latch.stopped:
            return ()
        own = (self.session.edits.addresses[pos] for pos in self.session.edits.own if pos not in self.reached)
        return (*(address for edit in self.calls.tail.unreached.values() for address in edit.told), *own)


def _stopped(how: str) -> BaseException:
    """As a client is told of a workflow that came to no end of its own."""
    from temporalio.exceptions import CancelledError, TerminatedError, TimeoutError

    if how == "timed_out":
        return TimeoutError("Workflow timed out", type=None, last_heartbeat_details=[])
    return TerminatedError("Workflow terminated") if how == "terminated" else CancelledError("Workflow cancelled")
