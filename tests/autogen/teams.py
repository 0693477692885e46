"""A team of each kind, on the loopback provider: what the tests record, replay and fork.

The provider answers by who asks (`You are writer.`) and by how often that agent has spoken: what is done is always the
same, and the texts bear the number of the request, so that an answer that was asked for again is never like the
recorded one. Clients take their address from the environment, so that the same factories serve `--target`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from autogen_agentchat.agents import AssistantAgent, CodeExecutorAgent, SocietyOfMindAgent, UserProxyAgent
from autogen_agentchat.base import ChatAgent, TaskResult, Team
from autogen_agentchat.conditions import HandoffTermination, MaxMessageTermination, TextMentionTermination
from autogen_agentchat.messages import (
    BaseChatMessage,
    ModelClientStreamingChunkEvent,
    MultiModalMessage,
    StructuredMessage,
    TextMessage,
)
from autogen_agentchat.teams import (
    DiGraphBuilder,
    GraphFlow,
    MagenticOneGroupChat,
    RoundRobinGroupChat,
    SelectorGroupChat,
    Swarm,
)
from autogen_agentchat.tools import AgentTool, TeamTool
from autogen_core import CancellationToken, Image
from autogen_core.code_executor import CodeBlock, CodeExecutor, CodeResult
from autogen_ext.models.openai import OpenAIChatCompletionClient
from PIL import Image as Picture
from pydantic import BaseModel

ran: list[str] = []
"""The tools, executors and people that were asked for real since `ran.clear()`."""


def client(**more: Any) -> OpenAIChatCompletionClient:
    # No connection outlives its request: it would be closed by the loop of a later test, which it is not of.
    own = {"max_retries": 0, "default_headers": {"Connection": "close"}}
    return OpenAIChatCompletionClient(model="gpt-4o-2024-08-06", **own, **more)


def agent(name: str, **more: Any) -> AssistantAgent:
    """An agent that the script knows by its system message."""
    of = more.pop("model_client", None) or client()
    told = more.pop("system_message", f"You are {name}.")
    return AssistantAgent(name, of, system_message=told, description=f"the {name}", **more)


def until(word: str) -> Any:
    return TextMentionTermination(word) | MaxMessageTermination(40)


async def look_up(order: int) -> str:
    """Looks an order up."""
    ran.append("look_up")
    return f"order {order}: 40.00, look {len(ran)}"


async def issue_refund(order: int, cents: int) -> str:
    """Pays an order back."""
    ran.append("issue_refund")
    return f"refunded {cents} for {order}, payment {len(ran)}"


async def slowly(place: str, ticks: int) -> str:
    """The weather, after so many turns of the loop."""
    for _ in range(ticks):
        await asyncio.sleep(0)
    ran.append(f"slowly {place}")
    return f"{place}: {ticks} degrees, look {len(ran)}"


def round_robin() -> Team:
    """Two that take turns; the first uses a tool."""
    return RoundRobinGroupChat(
        [agent("writer", tools=[look_up]), agent("critic")], name="desk", termination_condition=until("APPROVE")
    )


def capped() -> Team:
    """Ends by its count of turns, and has no condition."""
    return RoundRobinGroupChat([agent("writer", tools=[look_up]), agent("critic")], name="capped", max_turns=3)


def selector() -> Team:
    """A model chooses who speaks."""
    return SelectorGroupChat(
        [agent("planner"), agent("searcher", tools=[look_up]), agent("analyst")],
        client(),
        name="office",
        termination_condition=until("DONE"),
        selector_prompt="You are selector. {roles}\nOne of {participants} is next.\nSo far:\n{history}",
    )


def swarm() -> Team:
    """Agents that hand over to each other; one handoff takes a tool's result along in its context."""
    return Swarm(
        [
            agent("triage", handoffs=["refunds"]),
            agent("refunds", handoffs=["triage"], tools=[look_up, issue_refund]),
        ],
        name="desks",
        termination_condition=until("DONE"),
    )


def handing_to_user() -> Team:
    """A swarm that stops to ask its user."""
    return Swarm(
        [agent("clerk", handoffs=["user"])], name="counter", termination_condition=HandoffTermination(target="user")
    )


def graph() -> Team:
    """One, then two at a time, then one that has heard both."""
    drafter, critic, editor, joiner = agent("drafter"), agent("critic_a"), agent("critic_b"), agent("joiner")
    built = DiGraphBuilder()
    for node in (drafter, critic, editor, joiner):
        built.add_node(node)
    built.add_edge(drafter, critic).add_edge(drafter, editor)
    built.add_edge(critic, joiner).add_edge(editor, joiner)
    return GraphFlow(built.get_participants(), built.build(), name="flow")


def _approved(message: BaseChatMessage) -> bool:
    return "APPROVE" in message.to_model_text()


def _not_approved(message: BaseChatMessage) -> bool:
    return not _approved(message)


def looping() -> Team:
    """A graph with a circle: back to the author until the reviewer approves."""
    author, reviewer, publisher = agent("author"), agent("reviewer"), agent("publisher")
    built = DiGraphBuilder()
    for node in (author, reviewer, publisher):
        built.add_node(node)
    built.set_entry_point(author)
    built.add_edge(author, reviewer)
    built.add_edge(reviewer, author, condition=_not_approved)
    built.add_edge(reviewer, publisher, condition=_approved)
    return GraphFlow(
        built.get_participants(), built.build(), name="rounds", termination_condition=MaxMessageTermination(20)
    )


def magentic() -> Team:
    """An orchestrator with a ledger, who says what is to be done next and by whom."""
    return MagenticOneGroupChat([agent("coder"), agent("surfer", tools=[look_up])], client(), name="orchestra")


def nested() -> Team:
    """A team as a participant of a team."""
    inner = RoundRobinGroupChat([agent("first"), agent("second")], name="inner", max_turns=2)
    return RoundRobinGroupChat([inner, agent("boss")], name="outer", termination_condition=until("APPROVE"))


def agent_tool() -> Team:
    """An agent that another uses as a tool, and that uses a tool itself."""
    expert = agent("expert", tools=[look_up], reflect_on_tool_use=True)
    asked = AgentTool(expert, return_value_as_last_message=True)
    main = agent("main", tools=[asked], model_client=client(parallel_tool_calls=False))
    return RoundRobinGroupChat([main], name="asking", termination_condition=until("DONE"))


def team_tool() -> Team:
    """A team that an agent uses as a tool, twice."""
    inside = RoundRobinGroupChat([agent("first"), agent("second", tools=[look_up])], name="inside", max_turns=2)
    asked = TeamTool(inside, name="panel", description="asks the panel")
    main = agent("chair", tools=[asked], model_client=client(parallel_tool_calls=False))
    return RoundRobinGroupChat([main], name="hearing", termination_condition=until("DONE"))


def society() -> Team:
    """An agent that is a team inside, beside a plain one."""
    inside = RoundRobinGroupChat([agent("first"), agent("second")], name="inside", max_turns=2)
    mind = SocietyOfMindAgent("mind", inside, client(), instruction="You are mind.", response_prompt="Say it.")
    return RoundRobinGroupChat([mind, agent("critic")], name="society", termination_condition=until("APPROVE"))


_words = ["make it shorter", "approved"]


async def _typed(prompt: str, cancellation_token: CancellationToken | None = None) -> str:
    """What the user says: first a wish, then a yes."""
    ran.append("user")
    return _words[min(ran.count("user"), len(_words)) - 1]


def user_proxy() -> Team:
    """A person among the agents."""
    return RoundRobinGroupChat(
        [agent("helper"), UserProxyAgent("user_proxy", input_func=_typed)],
        name="talk",
        termination_condition=until("approved"),
    )


class Inline(CodeExecutor):
    """Runs Python in this process, and counts how often."""

    component_provider_override = "teams.Inline"

    async def execute_code_blocks(
        self, code_blocks: list[CodeBlock], cancellation_token: CancellationToken
    ) -> CodeResult:
        ran.append("code")
        lines: list[str] = []
        for block in code_blocks:
            exec(block.code, {"print": lambda *words: lines.append(" ".join(map(str, words)))})
        return CodeResult(exit_code=0, output="\n".join([*lines, f"run {len(ran)}"]))

    async def start(self) -> None: ...
    async def stop(self) -> None: ...
    async def restart(self) -> None: ...


def agreed() -> dict[str, Any]:
    """Of versions that ask whether code may run: it may."""
    try:
        from autogen_agentchat.agents._code_executor_agent import ApprovalResponse
    except ImportError:
        return {}
    return {"approval_func": lambda asked: ApprovalResponse(approved=True, reason="a test")}


def executor() -> Team:
    """One writes code, one runs it, twice."""
    runner = CodeExecutorAgent("runner", Inline(), **agreed())
    return RoundRobinGroupChat([agent("coder"), runner], name="workshop", termination_condition=until("DONE"))


def coding() -> Team:
    """An agent that writes code and runs it in the same turn."""
    runner = CodeExecutorAgent("runner", Inline(), model_client=client(), system_message="You are runner.", **agreed())
    return RoundRobinGroupChat([runner], name="solo", max_turns=1)


def single() -> ChatAgent:
    """One agent without a team, that goes on with its tools until it knows."""
    return agent("loner", tools=[look_up, issue_refund], max_tool_iterations=4)


def streaming() -> Team:
    """What the models say comes in pieces."""
    return RoundRobinGroupChat(
        [agent("writer", tools=[look_up], model_client_stream=True), agent("critic", model_client_stream=True)],
        name="live",
        termination_condition=until("APPROVE"),
    )


def parallel() -> Team:
    """Three tools at once, that end in another order than they began; and then the words for them."""
    return RoundRobinGroupChat(
        [agent("scout", tools=[slowly], reflect_on_tool_use=True)], name="scouts", termination_condition=until("DONE")
    )


def reflecting() -> Team:
    """A tool's answer is put in words by a second call, and streamed."""
    return RoundRobinGroupChat(
        [agent("writer", tools=[look_up], reflect_on_tool_use=True, model_client_stream=True)],
        name="thinking",
        max_turns=1,
    )


class Verdict(BaseModel):
    """What a judge is to answer."""

    score: int
    because: str


def structured() -> Team:
    """Answers in a shape that the agent asked for."""
    return RoundRobinGroupChat(
        [agent("judge", output_content_type=Verdict), agent("critic")],
        name="court",
        custom_message_types=[StructuredMessage[Verdict]],
        termination_condition=until("APPROVE"),
    )


def picture() -> Sequence[BaseChatMessage]:
    """A task of two messages, the second with an image."""
    return [
        TextMessage(content="look at this", source="user"),
        MultiModalMessage(content=["what is it?", Image(Picture.new("RGB", (2, 2), "red"))], source="user"),
    ]


type Task = str | Callable[[], str | Sequence[BaseChatMessage]]


@dataclass(frozen=True)
class Kind:
    """A team, what it is asked, and what comes of it: who says something, in order (`|` at once), why it ends, how many
    requests the provider gets and which tools run."""

    make: Callable[[], Team | ChatAgent]
    speakers: str
    stop: str | None
    requests: int
    tools: tuple[str, ...] = ()
    task: Task = "refund order 7"

    @property
    def name(self) -> str:
        return self.make.__name__

    def asked(self) -> Any:
        return self.task() if callable(self.task) else self.task


_APPROVED = "Text 'APPROVE' mentioned"
_DONE = "Text 'DONE' mentioned"
_GRAPH = "Digraph execution is complete"

KINDS = [
    Kind(round_robin, "user writer critic writer critic", _APPROVED, 4, ("look_up",)),
    Kind(capped, "user writer critic writer", "Maximum number of turns 3 reached.", 3, ("look_up",)),
    Kind(selector, "user planner searcher analyst planner", _DONE, 8, ("look_up",)),
    Kind(swarm, "user triage refunds refunds triage", _DONE, 4, ("look_up", "issue_refund")),
    Kind(handing_to_user, "user clerk clerk", "Handoff to user from clerk detected.", 2),
    Kind(graph, "user drafter critic_a|critic_b joiner", _GRAPH, 4),
    Kind(looping, "user author reviewer author reviewer publisher", _GRAPH, 5),
    Kind(
        magentic,
        "user LEADER LEADER coder LEADER surfer LEADER".replace("LEADER", "MagenticOneOrchestrator"),
        "both were asked",
        8,
        ("look_up",),
    ),
    Kind(nested, "user first second boss first second boss", _APPROVED, 6),
    Kind(agent_tool, "user user expert main main", _DONE, 4, ("look_up",)),
    Kind(team_tool, "user user first second chair user first second chair chair", _DONE, 7, ("look_up",)),
    Kind(society, "user first second mind critic first second mind critic", _APPROVED, 8),
    Kind(user_proxy, "user helper user_proxy helper user_proxy", "Text 'approved' mentioned", 2, ("user", "user")),
    Kind(executor, "user coder runner coder runner coder", _DONE, 3, ("code", "code")),
    Kind(coding, "user runner", "Maximum number of turns 1 reached.", 2, ("code",)),
    Kind(single, "user loner", None, 3, ("look_up", "issue_refund")),
    Kind(streaming, "user writer critic writer critic", _APPROVED, 4, ("look_up",)),
    Kind(parallel, "user scout scout", _DONE, 3, ("slowly Oslo", "slowly Rome", "slowly Pune")),
    Kind(reflecting, "user writer", "Maximum number of turns 1 reached.", 2, ("look_up",)),
    Kind(structured, "user judge critic judge critic", _APPROVED, 4),
    Kind(round_robin, "user user writer critic writer critic", _APPROVED, 4, ("look_up",), picture),
]


def named(name: str) -> Kind:
    return next(kind for kind in KINDS if kind.name == name)


def labelled(kind: Kind) -> str:
    """The name that a test of this kind has."""
    return kind.name if kind.task == Kind.task else f"{kind.name} with a picture"


def run(team: Team | ChatAgent, task: Any = None) -> TaskResult:
    """One turn, on a loop of its own."""
    return asyncio.run(running(team, task))


async def running(team: Team | ChatAgent, task: Any = None) -> TaskResult:
    result: TaskResult | None = None
    async for event in team.run_stream(task=task):
        if isinstance(event, TaskResult):
            result = event
    assert result is not None
    return result


async def streamed(team: Team | ChatAgent, task: Any = None) -> list[dict[str, Any]]:
    """All that the caller of a stream is shown, pieces included."""
    return [alike(event) async for event in team.run_stream(task=task) if not isinstance(event, TaskResult)]


def alike(message: Any) -> dict[str, Any]:
    """A message without what is another one in each run: ids and times."""
    dumped: dict[str, Any] = message.model_dump(mode="json")
    return {key: value for key, value in dumped.items() if key not in _ANEW}


_ANEW = ("id", "created_at", "full_message_id", "request_id")


def messages(result: TaskResult) -> list[dict[str, Any]]:
    """What was said and done, to be compared with another run's."""
    return [alike(message) for message in result.messages]


def speakers(result: TaskResult) -> str:
    """Who said something, in order; events of theirs left out."""
    said = [message.source for message in result.messages if isinstance(message, BaseChatMessage)]
    return " ".join(said)


def pieces(events: Sequence[Any]) -> list[str]:
    """What came in pieces."""
    return [event.content for event in events if isinstance(event, ModelClientStreamingChunkEvent)]


def spoke(pattern: str, said: str) -> bool:
    """Whether `said` is the order of a kind's `speakers`, where those at once may come in any."""
    options = [sorted(place.split("|")) for place in pattern.split()]
    names = said.split()
    for option in options:
        if sorted(names[: len(option)]) != option:
            return False
        names = names[len(option) :]
    return not names
