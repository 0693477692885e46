"""What a fork's tail may do, what its edits may say, and what is told where it goes another way."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import runs
import teams

import lockstep
import lockstep_autogen
from lockstep.errors import AddressError, Code, EditError, Refused, TargetError
from lockstep.testing import Answer, Provider

MORE = {"3.1:content[0].arguments": '{"order": 7, "cents": 4500}'}


def test_a_mutating_tool_past_the_cut_is_refused_with_the_way_to_allow_it(provider: Provider) -> None:
    kind = teams.named("swarm")
    run, _ = runs.recorded(kind)
    teams.ran.clear()
    with pytest.raises(Refused) as raised:
        lockstep.fork(f"{run}:3", kind.make, edits=MORE)
    fork = raised.value.run
    assert (fork.state, teams.ran) == ("refused", [])
    assert "issue_refund" in fork.refused[0]
    assert "--live issue_refund" in fork.refused[0]
    allowed = lockstep.fork(f"{run}:3", kind.make, edits=MORE, live=["issue_refund"])
    assert (allowed.state, teams.ran) == ("complete", ["issue_refund"])


def test_a_refused_fork_leaves_nothing_in_the_loop_and_can_be_read(provider: Provider) -> None:
    kind = teams.named("swarm")
    run, _ = runs.recorded(kind)

    async def fork() -> Any:
        with pytest.raises(Refused) as refused:
            await lockstep.afork(f"{run}:3", kind.make, edits=MORE, branch="no")
        return refused.value.run

    refused: Any = runs.alone(fork)
    assert refused.state == "refused"
    assert [step.name for step in runs.steps(f"{run}@no")] == ["user", "triage", "refunds", ""]


def test_a_tool_that_is_marked_as_a_look_runs(provider: Provider) -> None:
    kind = teams.named("round_robin")

    def make() -> Any:
        team: Any = kind.make()
        lockstep.mark(team._participants[0]._workbench[0]._tools[0], effect="read")
        return team

    run, _ = runs.recorded(teams.Kind(make, kind.speakers, kind.stop, kind.requests, kind.tools))
    teams.ran.clear()
    fork = lockstep.fork(f"{run}:0", make)
    assert (fork.state, teams.ran) == ("complete", ["look_up"])


def test_an_unchanged_mutating_call_is_answered_from_the_record(provider: Provider) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)
    teams.ran.clear()
    fork = lockstep.fork(f"{run}:0", kind.make)
    assert (fork.reused, teams.ran) == (1, [])


def test_answers_that_came_beside_an_edited_one_are_kept(provider: Provider) -> None:
    kind = teams.named("graph")
    run, result = runs.recorded(kind)
    (edited, first), (_, second) = runs.calls(run, "model")[1:3]
    before = provider.requests
    fork = lockstep.fork(f"{run}:2", kind.make, edits={edited: "EDITED"})
    assert (fork.edited, fork.served, provider.requests - before) == (1, 1, 1)
    assert teams.speakers(fork.result) == teams.speakers(result)
    now = {message.source: message.content for message in fork.result.messages}
    was = {message.source: message.content for message in result.messages}
    changed, kept = (effect.lane.rpartition("/")[2] for effect in (first, second))
    assert (now[changed], now[kept]) == ("EDITED", was[kept])


def test_a_person_is_not_asked_again_for_what_was_typed(provider: Provider) -> None:
    kind = teams.named("user_proxy")
    run, _ = runs.recorded(kind)
    teams.ran.clear()
    fork = lockstep.fork(f"{run}:1", kind.make)
    assert (fork.state, teams.ran) == ("complete", [])


# What an edit may say.


def test_a_model_may_be_given_calls_of_tools(provider: Provider) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)
    calls = [{"id": "call_x", "name": "look_up", "arguments": '{"order": 9}'}]
    fork = lockstep.fork(f"{run}:3", kind.make, edits={"3.1": {"content": calls}}, live=["look_up"])
    assert any("order 9" in str(message.content) for message in fork.result.messages)


def test_one_place_of_an_answer_may_be_edited(provider: Provider) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)
    fork = lockstep.fork(f"{run}:2", kind.make, edits={"2.1:content": "APPROVE"})
    assert fork.result.stop_reason == "Text 'APPROVE' mentioned"
    assert teams.speakers(fork.result) == "user writer critic"


def test_what_was_streamed_is_edited_as_what_was_said_at_once(provider: Provider) -> None:
    kind = teams.named("streaming")
    run, _ = runs.recorded(kind)
    for edits in ({"2.1": "APPROVE"}, {"2.1:content": "APPROVE"}):
        fork = lockstep.fork(f"{run}:2", kind.make, edits=edits)
        assert (fork.edited, fork.result.messages[-1].content) == (1, "APPROVE")
        assert lockstep.replay(fork.address, kind.make).identical


def test_a_tool_that_fails_is_an_answer_as_autogen_makes_one(provider: Provider) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)
    fork = lockstep.fork(f"{run}:1", kind.make, edits={"1.2": ValueError("no such order")})
    executed = next(message for message in fork.result.messages if message.type == "ToolCallExecutionEvent")
    assert (executed.content[0].is_error, executed.content[0].content) == (True, "no such order")


def test_a_model_that_fails_ends_the_branch(provider: Provider) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)
    fork = lockstep.fork(f"{run}:2", kind.make, edits={"2.1": RuntimeError("429")})
    assert fork.state == "failed"
    assert "429" in str(fork.error)


def test_an_edit_that_comes_after_the_step_is_refused(provider: Provider) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)
    with pytest.raises(AddressError, match="is answered only after"):
        lockstep.fork(f"{run}:2", kind.make, edits={"3.1": "no"})


def test_an_edit_that_is_no_answer_is_refused(provider: Provider) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)
    with pytest.raises(EditError, match="a model's answer is a text") as raised:
        lockstep.fork(f"{run}:2", kind.make, edits={"2.1": 7})
    assert raised.value.code is Code.UNEDITABLE


# Other ways.


def test_code_that_does_something_else_before_the_cut_is_told_where(provider: Provider) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)
    before = provider.requests
    fork = lockstep.fork(f"{run}:3", runs.with_prompt(kind.make, "critic", "You are judge."))
    found = fork.report.difference
    assert found is not None
    assert (fork.state, found.step, found.lane, found.path) == ("diverged", 2, "desk/critic", "messages[0].content")
    assert provider.requests == before


def test_another_prompt_past_the_cut_is_asked_with(provider: Provider) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)
    fork = lockstep.fork(f"{run}:1", runs.with_prompt(kind.make, "critic", "You are critic. Be brief."))
    assert fork.state == "complete"


def test_a_branch_is_forked_in_its_turn_and_that_one_too(provider: Provider) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)
    one = lockstep.fork(f"{run}:2", kind.make, edits={"2.1": "first"}, branch="one")
    two = lockstep.fork(f"{one.address}:3", kind.make, edits={"3.1": "second"}, branch="two")
    three = lockstep.fork(f"{two.address}:4", kind.make, edits={"4.1": "APPROVE third"}, branch="three")
    said = [message.content for message in three.result.messages if message.type == "TextMessage"]
    assert said[1:] == ["first", "second", "APPROVE third"]
    for fork in (one, two, three):
        runs.is_again(lockstep.replay(fork.address, kind.make), fork.result)


def test_the_turns_that_followed_are_made_again_with_what_they_were_given(provider: Provider) -> None:
    kind = teams.named("capped")

    async def run() -> Any:
        team = lockstep_autogen.attach(kind.make())
        return await runs.turns(team, ["one", "two"])

    asyncio.run(run())
    fork = lockstep.fork("autogen/capped:2", kind.make, live=["look_up"])
    assert [result.messages[0].content for result in fork.results] == ["one", "two"]
    assert lockstep.replay(fork.address, kind.make).identical
    later = lockstep.fork("autogen/capped:5", kind.make, live=["look_up"])
    assert [result.messages[0].content for result in later.results] == ["one", "two"]
    assert 0 < later.live < fork.live
    alone = lockstep.fork("autogen/capped:2", kind.make, live=["look_up"], turn=1)
    assert len(alone.results) == 1


def test_a_failed_run_is_forked_from_its_last_message(provider: Provider) -> None:
    kind = teams.named("round_robin")
    script = provider.script
    provider.script = lambda request: Answer(status=400) if request.number == 3 else script(request)
    team: Any = lockstep_autogen.attach(kind.make())
    with pytest.raises(RuntimeError):
        teams.run(team, "go")
    provider.script = script
    assert lockstep.replay("autogen/desk", kind.make).report.cut
    last = runs.steps("autogen/desk")[-1].number - 1
    fork = lockstep.fork(f"autogen/desk:{last}", kind.make)
    assert (fork.state, fork.result.stop_reason) == ("complete", kind.stop)
    runs.is_again(lockstep.replay(fork.address, kind.make), fork.result)


def test_a_running_loop_awaits_a_fork(provider: Provider) -> None:
    kind = teams.named("graph")
    run, _ = runs.recorded(kind)
    fork: Any = asyncio.run(lockstep.afork(f"{run}:1", kind.make))
    assert fork.state == "complete"

    async def blocking() -> None:
        lockstep.fork(f"{run}:1", kind.make)

    with pytest.raises(TargetError, match=r"await lockstep\.afork"):
        asyncio.run(blocking())


def test_a_fork_says_nothing_on_stderr(provider: Provider, capfd: Any) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)
    capfd.readouterr()
    lockstep.fork(f"{run}:1", kind.make)
    with pytest.raises(Refused):
        lockstep.fork(f"{run}:2", kind.make, edits={"2.1": "say something else"}, tail="record")
    assert capfd.readouterr().err == ""
