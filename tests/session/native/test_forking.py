"""A fork of a native run: what is served, edited, live, reused and refused, and what the branch says of it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.session.native.conftest import RUN, answer, begin

from lockstep.debugger.branches import fork as told_of
from lockstep.debugger.probes import reused
from lockstep.errors import Code, Divergence, Refusal
from lockstep.log.model import Kind, RunState, Status
from lockstep.log.store import open_store
from lockstep.log.timeline import Timeline
from lockstep.log.verify import verify
from lockstep.session.call import Piece
from lockstep.session.native.forking import Forking, told
from lockstep.session.policy import Declared, Policy
from lockstep.session.tail import Edit, Plan

READ, CHANGES = Declared("read", "said here"), Declared("mutating", "said here")


class Recorded:
    """A run of two steps: a model and two tools on the way to the second, a mutating one after it."""

    def __init__(self, run: Any) -> None:
        self.run = run
        journal = run.journal
        turn = journal.begin_turn("invoke", {"input": 1})
        self.first = journal.step("main", "input", "input", {"n": 0}, b"0")
        answer(journal, "plan", "look it up")
        answer(journal, {"arguments": {"id": 1}}, "found", kind="tool", name="look")
        answer(journal, "again", "send it")
        self.second = journal.step("main", "plan", "loop", {"n": 1}, b"1", self.first)
        answer(journal, {"arguments": {"to": "bob"}}, "sent", kind="tool", name="send")
        self.third = journal.step("main", "act", "loop", {"n": 2}, b"2", self.second)
        turn.end(Status.OK, "done")
        self.calls = {event.name: event for _, event in run.record().heads if event.kind is Kind.BEGIN}
        self.ends = {event.of: event.pos for _, event in run.record().heads if event.kind is Kind.END}

    def end_of(self, name: str) -> int:
        return self.ends[self.calls[name].pos]

    def fork(self, plan: Plan, **more: Any) -> Forking:
        journal = self.run.journal.fork("try", plan.upto, latest=False, origin=plan.origin, told=told(plan))
        return Forking(journal, self.run.record(), plan, self.run.path, **more)


@pytest.fixture
def recorded(run: Any) -> Recorded:
    return Recorded(run)


def plan(upto: int, until: int = 0, *edits: Edit, **policy: Any) -> Plan:
    return Plan("try", "main", ":0", upto, until or upto, edits, Policy(**policy))


def look(calls: Any, id: int = 1) -> Any:
    call = calls.call("main/plan", "tool")
    call.ask("look", {"arguments": {"id": id}}, {"arguments": {"id": id}}, declared=READ)
    call.ready()
    return call


def send(calls: Any, to: str = "bob") -> Any:
    call = calls.call("main/plan", "tool")
    call.ask("send", {"arguments": {"to": to}}, {"arguments": {"to": to}}, declared=CHANGES)
    call.ready()
    return call


def test_past_the_cut_what_only_looks_runs_and_is_recorded_in_the_branch(recorded: Recorded) -> None:
    calls = recorded.fork(plan(recorded.first))
    turn = calls.journal.begin_turn("invoke", {"input": 1})
    call = look(calls, 2)
    assert call.live
    with call.inside():
        pass
    call.end(Status.OK, "fresh")
    turn.end(Status.OK, None)
    report = calls.report("complete")
    assert (report.state, report.live, report.branch, report.answers) == ("complete", 1, "try", {})
    own = [event for _, event in recorded.run.record("try").heads if event.pos > recorded.first]
    assert [event.kind for event in own] == [Kind.FORK, Kind.BEGIN, Kind.BEGIN, Kind.END, Kind.END]
    assert calls.first == own[2].pos


def test_a_mutating_call_that_asks_what_was_recorded_gets_that_answer(recorded: Recorded) -> None:
    calls = recorded.fork(plan(recorded.second))
    call = send(calls)
    assert not call.live and call.take() == Piece("sent", Status.OK)
    calls.journal.flush()
    assert calls.answers == {"reused": 1}
    with open_store(recorded.run.path) as store:
        reader = store.run(RUN, "try")
        assert reused(reader) == ("tool send",)
        told = told_of(reader, recorded.run.path, next(one for one in reader.branches if one.name == "try"))
        assert (told.reused, told.live) == (1, 0)
        assert verify(reader).consistent


def test_any_other_mutating_call_is_refused_and_stops_all_that_follow(recorded: Recorded) -> None:
    calls = recorded.fork(plan(recorded.second))
    turn = calls.journal.begin_turn("invoke", {})
    with pytest.raises(Refusal) as caught:
        send(calls, "eve")
    assert 'tool send(to="eve") would run for real' in str(caught.value) and '"bob" → "eve"' in str(caught.value)
    with pytest.raises(Refusal):
        look(calls)
    turn.end(Status.ERROR, caught.value, calls.resting())
    report = calls.report("failed")
    assert report.state == "refused" and len(report.refused) == 1
    with open_store(recorded.run.path) as store:
        found = next(each for each in store.run(RUN).branches if each.name == "try")
        assert found.state is RunState.REFUSED
        assert Timeline(store.run(RUN, "try")).steps[-1].effects[-1].end is None


def test_what_was_named_runs(recorded: Recorded) -> None:
    calls = recorded.fork(plan(recorded.second, live=("send",)))
    assert send(calls, "eve").live


def test_an_edited_call_gets_its_edit_and_what_came_before_it_is_served(recorded: Recorded) -> None:
    edit = Edit(recorded.calls["look"].pos, {"1.2": "lost"}, (Piece("lost", Status.OK),))
    upto = recorded.end_of("look") - 1
    calls = recorded.fork(plan(upto, recorded.second, edit), since=recorded.first)
    before = begin(calls, "plan")
    before.ready()
    assert not before.live and before.take() == Piece("look it up", Status.OK)
    assert look(calls).take() == Piece("lost", Status.OK)
    after = begin(calls, "another question")
    after.ready()
    assert after.live
    after.end(Status.OK, "never mind")
    report = calls.report("complete")
    assert report.answers == {"edited": 1} and report.live == 1 and report.unreached == ()
    (step,) = [step for step in Timeline(recorded.run.record("try").reader).steps if step.effects]
    how = [(effect.name, effect.end.name if effect.end else None) for effect in step.effects]
    assert how == [("gpt-4o", ""), ("look", "edited"), ("gpt-4o", "")]


def test_calls_are_served_past_an_edit_until_the_first_that_asks_something_else(recorded: Recorded) -> None:
    edit = Edit(recorded.calls["look"].pos, {"1.2": "found"}, (Piece("found", Status.OK),))
    calls = recorded.fork(plan(recorded.first, recorded.second, edit))
    plans = begin(calls, "plan")
    plans.ready()
    assert plans.take().value == "look it up" and look(calls).take().value == "found"
    again = begin(calls, "again")
    again.ready()
    assert not again.live and again.take().value == "send it"
    assert calls.answers == {"served": 2, "edited": 1}


def test_an_edit_whose_call_is_not_made_is_named(recorded: Recorded) -> None:
    edit = Edit(recorded.calls["look"].pos, {"1.2": "lost"}, (Piece("lost", Status.OK),))
    calls = recorded.fork(plan(recorded.first, recorded.second, edit))
    begin(calls, "something else").ready()
    assert calls.report("complete").unreached == ("1.2",)


def test_an_edit_of_one_of_two_calls_at_once_is_found_whichever_comes_first(run: Any) -> None:
    first = run.journal.step("main", "input", "input", {}, b"0")
    one, two = begin(run.journal, "one", name="a"), begin(run.journal, "two", name="b")
    one.end(Status.OK, 1)
    two.end(Status.OK, 2)
    run.journal.step("main", "plan", "loop", {}, b"1", first)
    record = run.record()
    pos = next(event.pos for _, event in record.heads if event.name == "b")
    calls = Forking(
        run.journal.fork("try", first, latest=False), record,
        plan(first, record.position(1), Edit(pos, {"1.2": 3}, (Piece(3, Status.OK),))), run.path,
    )  # fmt: skip
    second = begin(calls, "two", name="b")
    second.ready()
    assert second.take().value == 3
    other = begin(calls, "one", name="a")
    other.ready()
    assert other.take().value == 1


def test_a_task_that_is_served_and_asks_something_else_has_diverged(recorded: Recorded) -> None:
    upto = recorded.end_of("look") - 1
    calls = recorded.fork(plan(upto, recorded.second), since=recorded.first)
    with pytest.raises(Divergence) as caught:
        begin(calls, "another plan")
    assert caught.value.difference.code is Code.REQUEST
    assert calls.report("complete").state == "diverged" and calls.resting() is RunState.FAILED


def test_what_a_live_call_calls_is_recorded_inside_it_and_asks_nobody(recorded: Recorded) -> None:
    calls = recorded.fork(plan(recorded.second, live=("send",)))
    outer = send(calls, "eve")
    inner = begin(calls, "inside", within=outer)
    assert inner.live and not inner.held
    inner.end(Status.OK, 1)
    outer.end(Status.OK, 2)
    calls.journal.flush()
    begun = [event for _, event in recorded.run.record("try").heads if event.pos > recorded.second + 1]
    assert begun[1].of == begun[0].pos


def test_the_branch_says_what_it_was_to_be(recorded: Recorded) -> None:
    edit = Edit(recorded.calls["look"].pos, {"1.2": "lost"}, (Piece("lost", Status.OK),))
    recorded.fork(plan(recorded.first, recorded.second, edit, live=("send",), tail="reuse"))
    event = recorded.run.record("try").reader.fork
    assert event is not None and event.pos == recorded.first + 1 and event.name == ":0"
    assert event.body == {
        "edits": {"1.2": "lost"}, "live": ["send"], "tail": "reuse", "upto": recorded.first,
        "until": recorded.second, "latest": False,
    }  # fmt: skip


def test_what_is_served_is_recorded_where_the_branch_does_not_share_it(recorded: Recorded) -> None:
    edit = Edit(recorded.calls["look"].pos, {"1.2": "lost"}, (Piece("lost", Status.OK),))
    left = recorded.run.journal.fork("try", recorded.first, latest=False)
    upto = recorded.end_of("look") - 1
    calls = Forking(
        left, recorded.run.record(), plan(upto, recorded.second, edit), recorded.run.path, since=recorded.first
    )
    before = begin(calls, "plan")
    before.ready()
    assert before.take().value == "look it up" and look(calls).take().value == "lost"
    assert calls.report("complete").answers == {"served": 1, "edited": 1}
    (step,) = [step for step in Timeline(recorded.run.record("try").reader).steps if step.effects]
    how = [(effect.name, effect.end.name if effect.end else None) for effect in step.effects]
    assert how == [("gpt-4o", "served"), ("look", "edited")]


def test_a_lane_whose_task_did_not_run_again_is_not_served_once_the_tasks_have_made_a_checkpoint(run: Any) -> None:
    first = run.journal.step("main", "input", "input", {}, b"0")
    answer(run.journal, "kept", "as it was", lane="main/kept")
    again = begin(run.journal, "again", lane="main/again")
    again.end(Status.OK, 1)
    run.journal.step("main", "kept, again", "loop", {}, b"1", first)
    record = run.record()
    pos = next(event.pos for _, event in record.heads if event.lane == "main/again")
    edit = Edit(pos, {"1.2": 2}, (Piece(2, Status.OK),))
    branch = run.journal.fork("try", first, latest=False)
    calls = Forking(branch, record, plan(pos, record.position(1), edit), run.path, since=first)
    edited = begin(calls, "again", lane="main/again")
    edited.ready()
    assert edited.take().value == 2
    branch.step("main", "kept, again", "loop", {}, b"2", first)
    later = begin(calls, "in the next turn", lane="main/kept")
    later.ready()
    assert later.live and calls.report("complete").state == "complete"


def test_of_equal_calls_at_once_the_edited_one_is_told_by_its_place_among_them(run: Any) -> None:
    first = run.journal.step("main", "input", "input", {}, b"0")
    calls = [begin(run.journal, "same") for _ in range(3)]
    for number in (2, 0, 1):
        calls[number].end(Status.OK, number)
    run.journal.step("main", "plan", "loop", {}, b"1", first)
    record = run.record()
    pos = [event.pos for _, event in record.heads if event.kind is Kind.BEGIN][2]
    edit = Edit(pos, {"1.3": "edited"}, (Piece("edited", Status.OK),))
    forking = Forking(run.journal.fork("try", first, latest=False), record, plan(first, 0, edit), run.path)
    same = [begin(forking, "same") for _ in range(3)]
    for call in same:
        call.ready()
    assert [call.live for call in same] == [True, True, False] and same[2].take().value == "edited"


def test_what_acts_is_not_made_once_more_in_silence(recorded: Recorded, caplog: pytest.LogCaptureFixture) -> None:
    calls = recorded.fork(plan(recorded.first, live=("look", "send")))
    look(calls).end(Status.OK, "found")
    look(calls).end(Status.OK, "found")
    send(calls).end(Status.OK, "sent")
    send(calls, "ann").end(Status.OK, "sent")
    assert caplog.text == ""
    send(calls).end(Status.OK, "sent")
    assert [record.getMessage() for record in caplog.records] == [
        "tool send runs for real once more with the same request: 2 times in this fork"
    ]
