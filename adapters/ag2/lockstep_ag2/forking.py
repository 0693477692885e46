"""Forks of conversations: `lockstep.fork("ag2/support:7", make_agent)`.

A fork is a branch of the conversation's log, and a fresh agent that is asked again (`planning`). What was answered up
to the cut is served; calls past it are decided by the policy; the turns that were recorded after it follow with their
recorded questions.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from lockstep.adapter.forking import branched, continued
from lockstep.adapter.native import Continued, ForkOptions, no_loop
from lockstep.errors import Code, Stop, TargetError
from lockstep.log import checkpoints
from lockstep.log.model import Status, Value
from lockstep.log.timeline import Place
from lockstep.session.native.forking import Forking
from lockstep.session.native.record import Record, RecordedTurn
from lockstep_ag2 import again, attaching, layout, planning
from lockstep_ag2.adapter import BY
from lockstep_ag2.again import Asking
from lockstep_ag2.noting import Noting
from lockstep_ag2.recording import Conversation, Recording
from lockstep_ag2.states import EVENTS, Seen

if TYPE_CHECKING:
    from lockstep.log.store import Store


_CODE, _STATE = "code", "state"


def fork(store: Store, place: Place, target: Any, options: ForkOptions) -> Continued:
    """Forks a conversation with the agent that a factory makes. See `lockstep.adapter.native.Native`."""
    no_loop("agents are run asynchronously", "afork")
    with asyncio.Runner() as runner:
        return runner.run(afork(store, place, target, options))


async def afork(store: Store, place: Place, target: Any, options: ForkOptions) -> Continued:
    """The same under a running loop."""
    if options.tasks or options.thread:
        raise TargetError(Code.BAD_TARGET, "tasks= and thread= are for graphs: an agent's conversation has neither")
    by = options.own.get(BY, _CODE)
    if by not in (_CODE, _STATE):
        raise TargetError(Code.BAD_TARGET, f"{BY}= is {_CODE!r} or {_STATE!r}, not {by!r}")
    record = Record(place.timeline.reader)
    plan = planning.plan(
        place, record, options.edits, options.policy, options.branch, within=options.within,
        restore=by == _STATE,
    )  # fmt: skip
    asking = Asking(await attaching.made(target))
    forking = Forked(store, place, record, plan, options)
    try:
        return await forking.run(asking)
    finally:
        forking.close()


class Forked:
    """One fork: what it goes by, and what has come of it so far."""

    def __init__(
        self, store: Store, place: Place, record: Record, plan: planning.Plan, options: ForkOptions
    ) -> None:  # fmt: skip
        self.store = store
        self.place = place
        self.record = record
        self.plan = plan
        self.options = options
        self.states = checkpoints.States(place.timeline.reader)
        meta: Any = place.timeline.reader.meta
        self.agent = str(meta["native"]["agent"])
        self._began = time.monotonic()
        self._parent, self.journal, _ = branched(store, place, plan.tail, at=plan.cut)
        self.calls = Forking(
            self.journal, record, plan.tail, store.path, since=plan.cut if plan.history else 0,
            deadline=options.deadline, ordered=True, gated=True,
        )  # fmt: skip
        self.conversation = Conversation(self.journal, self.calls)
        self.results: list[Any] = []
        self.error: BaseException | None = None

    def close(self) -> None:
        self.journal.close()
        self._parent.close()

    async def run(self, asking: Asking) -> Continued:
        plan, options = self.plan, self.options
        if plan.history is None:
            await self._again(asking)
        elif plan.goes_on:
            await self._restored(asking, plan.history)
        else:
            await asking.continue_from(self._reveal(plan.history))
        last = options.turn
        first = len(self.record.turns) + 1 if plan.leaves is None else plan.leaves.number + plan.goes_on
        for turn in self.record.turns[first - 1 :]:
            if self._is_over or (last is not None and turn.number > last):
                break
            if turn.number > first and not self._follows(turn):
                self.calls.note(
                    f"turn {turn.number}", "its history was set by hand: it was not run, nor those after it"
                )
                break
            await self._ask(asking, turn, self._recording(turn))
        self.journal.flush()
        return self._continued()

    @property
    def _is_over(self) -> bool:
        return self.error is not None

    async def _again(self, asking: Asking) -> None:
        """Asks again what comes before the turn that the fork leaves in: served, and not recorded a second time."""
        leaves = self.plan.leaves
        assert leaves is not None
        kept: Value = []
        for turn in self.record.turns:
            before, after = self._histories(turn)
            if before is not None and before != kept:
                await asking.continue_from(self._reveal(before))
            if turn.pos >= leaves.pos:
                break
            await self._ask(asking, turn, Silent(self))
            if self._is_over:
                return
            kept = after

    async def _restored(self, asking: Asking, history: list[Value]) -> None:
        """Goes on from a history, in the middle of a turn."""
        turn = self.plan.leaves
        assert turn is not None
        step = self.place.step
        assert step is not None
        pos = self.record.position(step.number)
        self.conversation.history.begin_after(self.states.at(pos), pos)
        request: dict[str, Any] = dict(self._request(turn))
        *before, trigger = history
        request.pop("variables", None)
        if variables := self.states.at(pos).get("variables"):
            request["variables"] = self._reveal(variables)
        request |= {"event": self._reveal(trigger), "history": self._reveal(before)}
        await self._drive(asking, turn, self._recording(turn), layout.RESUME, request)

    def _recording(self, turn: RecordedTurn) -> Tail:
        return Tail(self)

    def _follows(self, turn: RecordedTurn) -> bool:
        """Whether a recorded turn went on from where the one before it had ended."""
        before, _ = self._histories(turn)
        _, after = self._histories(self.record.turns[turn.number - 2])
        if before is None or after is None:
            return True
        return bool(before[: len(after)] == after)

    def _histories(self, turn: RecordedTurn) -> tuple[Any, Any]:
        """The recorded history that a turn found, and the one at its last step; None where nothing tells."""
        made = [event for _, event in self.record.steps if turn.pos < event.pos < turn.stop]
        if not made:
            return None, None
        first, last = (self.states.at(event.pos).get(EVENTS) for event in (made[0], made[-1]))
        return (first[:-1] if isinstance(first, list) else None), last

    def _request(self, turn: RecordedTurn) -> Any:
        return self._reveal(self.record.request(turn))

    def _reveal(self, value: Any) -> Any:
        return self.journal.reveal(value)

    async def _ask(self, asking: Asking, turn: RecordedTurn, noting: Noting) -> None:
        await self._drive(asking, turn, noting, turn.entry, self._request(turn))

    async def _drive(self, asking: Asking, turn: RecordedTurn, noting: Noting, entry: str, request: Any) -> None:
        human = again.humans(self.record.tape(turn.pos, turn.stop))
        try:
            reply = await asking.ask(noting, entry, request, human=human)
        except (KeyboardInterrupt, SystemExit):
            raise
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            expected = turn.end is not None and turn.end.what == Status.ERROR
            self.error = None if isinstance(noting, Silent) and expected and not isinstance(error, Stop) else error
        else:
            self.results.append(reply)
        noting.over = True

    def _continued(self) -> Continued:
        plan = self.plan
        return continued(
            self.store, self.calls, upto=plan.cut, began=self._began, origin=plan.tail.origin, results=self.results,
            error=self.error, shared=self.record.last_step(plan.tail.upto),
        )  # fmt: skip


class Tail(Noting):
    """A turn that is part of the branch: recorded there."""

    def __init__(self, forked: Forked) -> None:
        super().__init__(forked.agent, forked.conversation.history, forked.conversation.names)
        self._forked = forked
        self.calls = forked.calls
        self._recording: Recording | None = None

    def begin(self, agent: Any, event: Any, context: Any) -> None:
        forked = self._forked
        self._recording = forked.conversation.begun(forked.agent, agent, event, context, self.resumes, self)

    def step(self, source: str, name: str, state: Seen) -> None:
        if self._recording is not None:
            self._recording.step(source, name, state)

    def end(self, status: Status, value: Any) -> None:
        if self._recording is not None:
            resting = self._forked.calls.resting()
            self._recording.turn.end(status, value, resting)

    def fault(self, where: str, error: BaseException) -> None:
        self._forked.calls.fault(where, error)

    def tell(self) -> None:
        """Faults of a fork are in its report."""

    def stopped(self) -> BaseException | None:
        latch = self._forked.calls.latch
        return latch.error() if latch.stopped else None


class Silent(Noting):
    """A turn before the one that a fork leaves in: the branch shares it."""

    def __init__(self, forked: Forked) -> None:
        super().__init__(forked.agent, forked.conversation.history, forked.conversation.names)
        self._forked = forked
        self.calls = forked.calls
        self._made = [event for _, event in forked.record.steps]

    def step(self, source: str, name: str, state: Seen) -> None:
        found = next((event for event in self._made if event.key == state.digest), None)
        if found is not None:
            self._history.stored(state, found.pos)

    def end(self, status: Status, value: Any) -> None:
        """It has one in the parent."""

    def fault(self, where: str, error: BaseException) -> None:
        self._forked.calls.fault(where, error)

    def stopped(self) -> BaseException | None:
        latch = self._forked.calls.latch
        return latch.error() if latch.stopped else None
