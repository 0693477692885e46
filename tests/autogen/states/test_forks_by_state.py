"""A fork by state runs nothing that came before, and goes on exactly as one that does it all again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import kept
import pytest
import teams
from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.base import Response
from autogen_agentchat.conditions import TimeoutTermination
from autogen_agentchat.messages import BaseChatMessage, TextMessage
from autogen_agentchat.teams import RoundRobinGroupChat

import lockstep
from lockstep.errors import Code
from lockstep.testing import Provider
from lockstep_autogen.layout import STOP

EXACT = ["round_robin", "capped", "selector", "swarm", "looping", "nested", "user_proxy", "structured"]


@pytest.mark.parametrize("name", EXACT)
def test_from_each_step_it_says_what_the_recorded_team_said(name: str, settled: Provider) -> None:
    kind = teams.named(name)
    recorded = kept.record(kind)
    asked = [*settled.seen]
    for step in recorded.steps:
        if step.channels[STOP]:
            continue
        teams.ran[:] = recorded.ran[recorded.steps.index(step) - 1] if step.number else []
        del settled.seen[:]
        fork = lockstep.fork(f"{recorded.run}:{step.number}", kind.make, by="state", live=["look_up", "issue_refund"])
        assert (fork.state, fork.results[-1].stop_reason) == ("complete", kind.stop)
        assert teams.messages(fork.results[-1]) == recorded.messages[-len(fork.results[-1].messages) :]
        assert [request.body for request in settled.seen] == [
            one.body for one in asked[len(asked) - settled.requests :]
        ]
        assert settled.requests < len(asked) or not step.number
        # All that was remembered at the last step, and everything that led to it.
        assert kept.steps(fork.address)[-1].key == recorded.last.key
    assert lockstep.replay(fork.address, kind.make).identical


def test_it_is_the_fork_that_does_everything_again(settled: Provider) -> None:
    kind = teams.named("graph")
    recorded = kept.record(kind)
    by_state = lockstep.fork(f"{recorded.run}:2", kind.make, by="state")
    by_code = lockstep.fork(f"{recorded.run}:2", kind.make)
    assert kept.steps(by_state.address)[-1].key == kept.steps(by_code.address)[-1].key
    assert (by_state.live, by_code.live) == (1, 1)


def test_a_team_with_another_prompt_goes_on_with_what_was_said(settled: Provider) -> None:
    kind = teams.named("round_robin")
    recorded = kept.record(kind)

    def make() -> Any:
        return RoundRobinGroupChat(
            [teams.agent("writer", tools=[teams.look_up]), teams.agent("critic", system_message="You are judge.")],
            name="desk", max_turns=4,
        )  # fmt: skip

    fork = lockstep.fork(f"{recorded.run}:2", make, by="state")
    told = settled.seen[-1].json["messages"]
    assert told[0]["content"] == "You are judge."
    assert "say more" in str(told)
    assert fork.results[-1].stop_reason == "Maximum number of turns 4 reached."


def test_it_is_stopped_and_gone_on_with(settled: Provider) -> None:
    kind = teams.named("round_robin")
    recorded = kept.record(kind)
    stopped = lockstep.fork(f"{recorded.run}:1", kind.make, by="state", stop=3)
    assert stopped.result.stop_reason.startswith("Stopped by Lockstep after step 3")
    on = lockstep.fork(f"{stopped.address}:3", kind.make, by="state")
    assert (on.result.stop_reason, teams.messages(on.result)) == (kind.stop, recorded.messages[-1:])
    assert kept.steps(on.address)[-1].key == recorded.last.key
    assert lockstep.replay(on.address, kind.make).identical


def again() -> Any:
    return RoundRobinGroupChat(
        [teams.agent("writer", tools=[teams.look_up]), teams.agent("critic")], name="two words/one", max_turns=3
    )


def test_in_a_later_turn_nothing_of_the_earlier_ones_runs_and_those_that_followed_are_made_again(
    settled: Provider,
) -> None:
    recorded = kept.record(teams.Kind(again, "", "", 0), turns=2)
    assert [step.source for step in recorded.steps].index("input", 1) == 4
    late = lockstep.fork(f"{recorded.run}:5", again, by="state")
    assert [teams.speakers(result) for result in late.results] == ["writer critic"]
    begun = lockstep.fork(f"{recorded.run}:4", again, by="state")
    assert [teams.speakers(result) for result in begun.results] == ["user critic writer critic"]
    early = lockstep.fork(f"{recorded.run}:2", again, by="state")
    assert [teams.speakers(result) for result in early.results] == ["writer", "user critic writer critic"]
    for fork in (late, begun, early):
        assert lockstep.replay(fork.address, again).identical


class Counter(BaseChatAgent):
    """An agent of the user's own, that says what it keeps."""

    def __init__(self) -> None:
        super().__init__("counter", "counts")
        self.count = 0

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return (TextMessage,)

    async def on_messages(self, messages: Any, cancellation_token: Any) -> Response:
        self.count += 1
        return Response(chat_message=TextMessage(content=f"count {self.count}", source=self.name))

    async def on_reset(self, cancellation_token: Any) -> None:
        self.count = 0

    async def save_state(self) -> dict[str, Any]:
        return {"count": self.count}

    async def load_state(self, state: Any) -> None:
        self.count = state["count"]


def counting() -> Any:
    return RoundRobinGroupChat([Counter(), teams.agent("critic")], name="counting", max_turns=5)


def test_an_agent_of_the_users_own_that_saves_its_state_is_given_it(settled: Provider) -> None:
    recorded = kept.record(teams.Kind(counting, "", "", 0))
    assert recorded.steps[3].channels["counter.state"] == {"count": 2}
    fork = lockstep.fork(f"{recorded.run}:4", counting, by="state")
    assert fork.result.messages[-1].content == "count 3"
    assert kept.steps(fork.address)[-1].key == recorded.last.key


def timed() -> Any:
    return RoundRobinGroupChat([teams.agent("writer")], name="timed", max_turns=2, termination_condition=_hour())


def _hour() -> Any:
    return TimeoutTermination(3600)


REFUSED = [
    (teams.named("magentic"), 1, "plans anew whenever it is run"),
    (teams.named("agent_tool"), 1, "what expert of main remembers is no part of the state"),
    (teams.named("team_tool"), 3, "what panel of chair remembers is no part of the state"),
    (teams.named("society"), 3, "mind saves only the state of the team inside it"),
    (teams.named("nested"), 1, "a step of outer/inner, a team inside of the one that was run"),
    (teams.named("single"), 1, "an agent without a team"),
    (teams.named("round_robin"), 4, "nothing is left of its run"),
    (teams.named("coding"), 0, "runner, a CodeExecutorAgent, does not save what it remembers"),
    (teams.Kind(timed, "", "", 2), 1, "TimeoutTermination counts from when the team was made"),
]


@pytest.mark.parametrize(("kind", "step", "why"), REFUSED, ids=lambda each: getattr(each, "name", ""))
def test_where_it_would_not_be_exact_it_is_refused_with_the_reason(
    kind: teams.Kind, step: int, why: str, settled: Provider
) -> None:
    recorded = kept.record(kind)
    asked = settled.requests
    with pytest.raises(lockstep.LockstepError, match=why) as raised:
        lockstep.fork(f"{recorded.run}:{step}", kind.make, by="state")
    assert raised.value.code is Code.UNSUPPORTED
    assert "exact everywhere" in raised.value.message
    assert settled.requests == asked
    with kept.place(recorded.run) as place:
        assert [branch.name for branch in place.timeline.reader.branches] == ["main"]


def test_an_answer_cannot_be_edited_there(settled: Provider) -> None:
    kind = teams.named("round_robin")
    recorded = kept.record(kind)
    with pytest.raises(lockstep.LockstepError, match="nothing before that step is run again"):
        lockstep.fork(f"{recorded.run}:2", kind.make, by="state", edits={"2.1": "no"})
    with pytest.raises(lockstep.LockstepError, match='by= is "code" or "state", not \'magic\''):
        lockstep.fork(f"{recorded.run}:2", kind.make, by="magic")
