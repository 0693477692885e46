"""A replay of changed code names the step, the agent and the field where it first differs, and stops there."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest
import runs
import teams
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import FunctionCall

import lockstep
import lockstep_autogen
from lockstep.errors import Code, Difference
from lockstep.testing import Provider


def differs(replay: Any) -> Difference:
    found = replay.report.difference
    assert found is not None
    assert not replay.identical
    return found  # type: ignore[no-any-return]


def test_another_prompt_is_told_by_agent_and_field_with_both_sides(provider: Provider) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)
    found = differs(lockstep.replay(run, runs.with_prompt(kind.make, "critic", "You are judge.")))
    assert (found.code, found.step, found.lane, found.kind) == (Code.REQUEST, 2, "desk/critic", "model")
    assert (found.path, found.expected, found.actual) == (
        "messages[0].content", '"You are critic."', '"You are judge."',
    )  # fmt: skip
    assert found.same_until == 1


class Elsewhere(AssistantAgent):
    """Looks at another place than its model says."""

    @classmethod
    async def _execute_tool_call(cls, tool_call: FunctionCall, **options: Any) -> Any:
        changed = tool_call.arguments.replace("Rome", "Bonn")
        return await super()._execute_tool_call(FunctionCall(tool_call.id, changed, tool_call.name), **options)


def test_a_difference_in_one_of_several_tools_at_once_does_not_leave_its_agent_waiting(provider: Provider) -> None:
    kind = teams.named("parallel")
    run, _ = runs.recorded(kind)

    def changed() -> Any:
        team: Any = kind.make()
        team._participants[0].__class__ = Elsewhere
        return team

    found = differs(lockstep.replay(run, changed))
    assert (found.code, found.lane, found.kind, found.name) == (Code.REQUEST, "scouts/scout", "tool", "slowly")
    assert "Bonn" in found.actual


@pytest.mark.parametrize(("turns", "step", "expected"), [(2, 2, "null"), (4, 3, "Maximum number of turns 3 reached.")])
def test_a_team_that_stops_earlier_or_later_is_told_where(
    turns: int, step: int, expected: str, provider: Provider
) -> None:
    kind = teams.named("capped")
    run, _ = runs.recorded(kind)

    def other() -> Any:
        team: Any = kind.make()
        team._max_turns = turns
        return team

    found = differs(lockstep.replay(run, other))
    assert (found.code, found.step, found.lane, found.path) == (Code.STATE, step, "capped", "stop")
    assert expected in found.expected


def test_another_reason_to_stop_is_a_difference(provider: Provider) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)

    def counted() -> Any:
        team = kind.make()
        team._termination_condition = MaxMessageTermination(8)
        return team

    found = differs(lockstep.replay(run, counted))
    assert found.path == "stop"
    assert "APPROVE" in found.expected
    assert found.step == 4


def test_what_an_agent_keeps_to_itself_is_compared(provider: Provider) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)

    class Forgetful(AssistantAgent):
        async def save_state(self) -> Any:
            return {**await super().save_state(), "mood": "gloomy"}

    def moody() -> Any:
        team: Any = kind.make()
        critic = Forgetful("critic", teams.client(), system_message="You are critic.", description="the critic")
        return RoundRobinGroupChat(
            [team._participants[0], critic], name="desk", termination_condition=team._termination_condition
        )

    found = differs(lockstep.replay(run, moody))
    assert (found.code, found.lane) == (Code.STATE, "desk")
    assert "state" in found.reason


def test_an_agent_that_dials_by_itself_is_stopped(provider: Provider) -> None:
    kind = teams.named("round_robin")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def dialling() -> Any:
            team: Any = kind.make()
            writer = team._participants[0]
            plain = writer.on_messages_stream

            async def on_messages_stream(*args: Any) -> Any:
                with socket.create_connection(("127.0.0.1", port)):
                    async for each in plain(*args):
                        yield each

            writer.on_messages_stream = on_messages_stream
            return team

        teams.run(lockstep_autogen.attach(dialling()), kind.asked())
        found = differs(lockstep.replay("autogen/desk", dialling))
    assert (found.code, found.name) == (Code.NOT_COVERED, f"127.0.0.1:{port}")


def test_code_that_hides_a_difference_does_not_hide_it_from_the_replay(provider: Provider) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)

    def hiding() -> Any:
        team = runs.with_prompt(kind.make, "critic", "You are judge.")()
        critic = team._participants[1]
        plain = critic.on_messages_stream

        async def on_messages_stream(*args: Any) -> Any:
            try:
                async for each in plain(*args):
                    yield each
            except BaseException:
                async for each in plain(*args):
                    yield each

        critic.on_messages_stream = on_messages_stream
        return team

    assert differs(lockstep.replay(run, hiding)).path == "messages[0].content"


def test_a_team_that_waits_for_something_else_is_told_after_the_deadline(provider: Provider) -> None:
    kind = teams.named("round_robin")
    run, _ = runs.recorded(kind)

    def waiting() -> Any:
        team = kind.make()

        async def on_messages_stream(*args: Any) -> Any:
            await asyncio.Event().wait()
            yield None

        team._participants[1].on_messages_stream = on_messages_stream
        return team

    found = differs(lockstep.replay(run, waiting, deadline=0.3))
    assert found.code in (Code.STUCK, Code.MISSING)
    assert found.step == 2


def test_what_could_not_be_recorded_is_told_by_a_replay(provider: Provider) -> None:
    class Broken:
        def reason(self, *about: Any) -> str:
            raise ZeroDivisionError("a fault of ours")

    kind = teams.named("round_robin")
    team: Any = lockstep_autogen.attach(kind.make())
    team._lockstep_root.stops = Broken()
    teams.run(team, kind.asked())
    replay = lockstep.replay(f"autogen/{team.name}", kind.make)
    assert replay.divergence is None and not replay.identical
    said = "when it was recorded: where a team stops: ZeroDivisionError: a fault of ours"
    assert set(replay.report.faults) == {said}
