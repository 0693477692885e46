"""A crew, flow and agent of each kind, on the loopback provider: what the tests record, replay and fork.

The provider answers by who asks (`You are writer.`) and by how often that agent has spoken: what is done is always the
same, and the texts bear the number of the request, so that an answer that was asked for again is never like the
recorded one. Models take their address from the environment, so that the same factories serve `--target`.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crewai import LLM, Agent, Crew, Process, Task
from crewai.flow import Flow, and_, listen, or_, router, start
from crewai.flow.persistence import SQLiteFlowPersistence, persist
from crewai.lite_agent import LiteAgent
from crewai.llms.providers.openai.completion import OpenAICompletion
from crewai.tasks.conditional_task import ConditionalTask
from crewai.tasks.task_output import TaskOutput
from crewai.tools import BaseTool, tool
from pydantic import BaseModel

ran: list[str] = []
"""The tools that ran for real since `ran.clear()`."""

numbered = True
"""Whether what a tool returns has the number of the call, so that no two calls return the same."""


def look() -> str:
    return f"look {len(ran)}" if numbered else "a look"


class LookUp(BaseTool):
    """A tool as a class of its own."""

    name: str = "look_up"
    description: str = "Looks an order up."

    def _run(self, order: int) -> str:
        ran.append("look_up")
        return f"order {order}: 40.00, {look()}"


@tool("issue_refund")
def issue_refund(order: int, cents: int) -> str:
    """Pays an order back."""
    ran.append("issue_refund")
    return f"refunded {cents} for {order}, {look()}"


@tool("slowly")
def slowly(place: str, ticks: int) -> str:
    """The weather, after a while."""
    time.sleep(ticks / 100)
    ran.append(f"slowly {place}")
    return f"{place}: {ticks} degrees, {look()}"


class TextOnly(OpenAICompletion):
    """A model that cannot be given tools, so that an agent tells it of them in words."""

    def supports_function_calling(self) -> bool:
        return False


def model(**more: Any) -> Any:
    return LLM(model="openai/gpt-4o", **more)


def agent(role: str, **more: Any) -> Agent:
    """An agent that the script knows by its role."""
    llm = more.pop("llm", None) or model()
    return Agent(role=role, goal=f"be a good {role}", backstory="You do your work.", llm=llm, **more)


def task(name: str, who: Any, **more: Any) -> Task:
    return Task(name=name, description=f"Do the {name} of {{order}}.", expected_output="a line", agent=who, **more)


def _desk(name: str, llm: Callable[[], Any] = model, **more: Any) -> Crew:
    """Three that work one after the other; the first uses a tool."""
    researcher = agent("researcher", tools=[LookUp()], llm=llm())
    writer, checker = agent("writer", llm=llm()), agent("checker", llm=llm())
    research = task("research", researcher)
    letter = task("letter", writer, context=[research])
    tasks = [research, letter, task("check", checker)]
    return Crew(name=name, agents=[researcher, writer, checker], tasks=tasks, **more)


def sequential() -> Crew:
    return _desk("desk")


def streaming() -> Crew:
    """Its models stream."""
    return _desk("talking", lambda: model(stream=True))


def crew_stream() -> Crew:
    """The crew itself is read as a stream."""
    return _desk("shown", stream=True)


def hierarchical() -> Crew:
    """A manager who hands the work on, and a tool behind that."""
    researcher = agent("researcher", tools=[LookUp()])
    return Crew(
        name="office", agents=[researcher, agent("writer")], process=Process.hierarchical, manager_llm=model(),
        tasks=[Task(name="refund", description="Refund order {order}.", expected_output="a line")],
    )  # fmt: skip


def delegating() -> Crew:
    """One that hands the work on without being a manager."""
    researcher, chief = agent("researcher", tools=[LookUp()]), agent("chief", allow_delegation=True)
    return Crew(name="delegates", agents=[chief, researcher], tasks=[task("refund", chief)])


def react() -> Crew:
    """Its model is told of tools in words."""
    thinker = agent("thinker", tools=[LookUp(), issue_refund], llm=TextOnly(model="gpt-4o"))
    return Crew(name="words", agents=[thinker], tasks=[task("refund", thinker)])


def async_tasks() -> Crew:
    """Two tasks at once, and one that waits for both."""
    researcher, writer, checker = agent("researcher", tools=[LookUp()]), agent("writer"), agent("checker")
    both = [task("research", researcher, async_execution=True), task("letter", writer, async_execution=True)]
    joined = task("check", checker, context=both)
    return Crew(name="at-once", agents=[researcher, writer, checker], tasks=[*both, joined])


def parallel() -> Crew:
    """Three tools at once, which end in another order than they began in."""
    scout = agent("scout", tools=[slowly])
    return Crew(name="scouts", agents=[scout], tasks=[task("scouting", scout)])


def twins() -> Crew:
    """The same tool call twice at once."""
    twin = agent("twin", tools=[LookUp()])
    return Crew(name="twins", agents=[twin], tasks=[task("looking", twin)])


class Verdict(BaseModel):
    """What a judge is to answer."""

    score: int
    because: str


def structured() -> Crew:
    """Answers in a shape that the task asked for."""
    judge, checker = agent("judge"), agent("checker")
    tasks = [task("verdict", judge, output_pydantic=Verdict), task("check", checker)]
    return Crew(name="court", agents=[judge, checker], tasks=tasks)


# CrewAI reads what a guardrail returns from its annotation, which it takes no text for: a lambda has none.
_too_long = lambda output: (True, output.raw) if "short" in output.raw else (False, "too long")  # noqa: E731


def guarded() -> Crew:
    """A guardrail has the first answer made again."""
    brief = agent("brief")
    return Crew(name="guarded", agents=[brief], tasks=[task("note", brief, guardrail=_too_long)])


def planned() -> Crew:
    """A plan is made before."""
    return _desk("planned", planning=True, planning_llm=model())


def _never(output: TaskOutput) -> bool:
    return "no such words" in output.raw


def conditional() -> Crew:
    """A task that is passed over."""
    researcher, checker = agent("researcher", tools=[LookUp()]), agent("checker")
    middle = ConditionalTask(
        name="letter", description="Do the letter of {order}.", expected_output="a line", agent=checker,
        condition=_never,
    )  # fmt: skip
    tasks = [task("research", researcher), middle, task("check", checker)]
    return Crew(name="maybe", agents=[researcher, checker], tasks=tasks)


def paying() -> Crew:
    """One agent that looks, and pays."""
    clerk = agent("clerk", tools=[LookUp(), issue_refund])
    return Crew(name="till", agents=[clerk], tasks=[task("refund", clerk)])


class Refund(BaseModel):
    """The state of a flow."""

    id: str = ""
    order: int = 0
    said: list[str] = []


class RefundFlow(Flow[Refund]):
    """A model that is asked by itself, a router, an agent, a crew, two methods at once and one that waits for both."""

    @start()
    def look(self) -> str:
        self.state.said.append(f"look: {model().call('what is it?')}")
        return "40.00"

    @router(look)
    def size(self, price: str) -> str:
        self.state.said.append(f"size: {price}")
        return "big" if float(price) > 10 else "small"

    @listen("small")
    def ignored(self) -> str:
        raise AssertionError("the refund is a big one")

    @listen("big")
    async def asked(self) -> str:
        said = await agent("researcher", tools=[LookUp()]).kickoff_async("look order 7 up")
        self.state.said.append(f"asked: {said.raw}")
        return str(said.raw)

    @listen("big")
    def paid(self) -> str:
        said = paying().kickoff(inputs={"order": self.state.order})
        self.state.said.append(f"paid: {said}")
        return str(said)

    @listen(and_(asked, paid))
    def told(self) -> str:
        return " / ".join(sorted(self.state.said))


def flow() -> Flow[Any]:
    return RefundFlow()


class Counting(Flow[dict[str, Any]]):
    """A loop through a router, and what either way leads to."""

    @start()
    def begin(self) -> None:
        self.state["said"] = []

    @listen(or_(begin, "again"))
    def ask(self) -> None:
        self.state["said"].append(model().call(f"number {len(self.state['said'])}?"))

    @router(ask)
    def more(self) -> str:
        return "again" if len(self.state["said"]) < 3 else "done"

    @listen("done")
    def end(self) -> str:
        return ", ".join(self.state["said"])


def looping() -> Flow[Any]:
    return Counting()


def database() -> Path:
    """Where `persisted` keeps its states."""
    return Path(os.environ["CREWS_PLACE"], "flows.db")


def persisted() -> Flow[Any]:
    """Each method's state is a row of a database."""

    @persist(SQLiteFlowPersistence(str(database())))
    class Kept(Flow[Refund]):
        @start()
        def first(self) -> None:
            self.state.said.append(model().call("first?"))

        @router(first)
        def way(self) -> str:
            return "on"

        @listen("on")
        def second(self) -> str:
            self.state.said.append(model().call("second?"))
            return " / ".join(self.state.said)

    return Kept()


def alone() -> Agent:
    """An agent without a crew."""
    return agent("clerk", tools=[LookUp(), issue_refund])


def lite() -> LiteAgent:
    """What CrewAI had for that before."""
    tools = [LookUp(), issue_refund]
    return LiteAgent(role="thinker", goal="be a thinker", backstory="You do your work.", llm=model(), tools=tools)


INPUTS = {"order": 7}
THREE = [{"order": 7}] * 3


def kickoff(target: Any) -> Any:
    return target.kickoff(inputs=INPUTS)


def read(target: Any) -> Any:
    """Reads a crew's stream to its end."""
    streamed = target.kickoff(inputs=INPUTS)
    for _ in streamed:
        pass
    return streamed


def kickoff_async(target: Any) -> Any:
    return asyncio.run(target.kickoff_async(inputs=INPUTS))


def akickoff(target: Any) -> Any:
    return asyncio.run(target.akickoff(inputs=INPUTS))


def aread(target: Any) -> Any:
    async def run() -> Any:
        streamed = await target.akickoff(inputs=INPUTS)
        async for _ in streamed:
            pass
        return streamed

    return asyncio.run(run())


def for_each(target: Any) -> Any:
    return target.kickoff_for_each(inputs=THREE)


def for_each_async(target: Any) -> Any:
    return asyncio.run(target.kickoff_for_each_async(inputs=THREE))


def akickoff_for_each(target: Any) -> Any:
    return asyncio.run(target.akickoff_for_each(inputs=THREE))


def ask(target: Any) -> Any:
    return target.kickoff("refund order 7")


def aask(target: Any) -> Any:
    return asyncio.run(target.kickoff_async("refund order 7"))


@dataclass(frozen=True)
class Kind:
    """What is run and how, and what comes of it: its name, how many requests the provider gets and which tools run.

    racy  copies of one crew run at once, and share a model: CrewAI says of each what that has used by the time at which
          it ends, which is another number in each run; a replay says the recorded one
    """

    make: Callable[[], Any]
    how: Callable[[Any], Any]
    run: str
    requests: int
    tools: tuple[str, ...] = ()
    racy: bool = False

    @property
    def name(self) -> str:
        """The name that a test of this kind has."""
        return self.make.__name__ if self.how in (kickoff, ask, read) else f"{self.make.__name__}-{self.how.__name__}"


_PAID = ("look_up", "issue_refund")

KINDS = [
    Kind(sequential, kickoff, "desk", 4, ("look_up",)),
    Kind(streaming, kickoff, "talking", 4, ("look_up",)),
    Kind(crew_stream, read, "shown", 4, ("look_up",)),
    Kind(crew_stream, aread, "shown", 4, ("look_up",)),
    Kind(hierarchical, kickoff, "office", 4, ("look_up",)),
    Kind(delegating, kickoff, "delegates", 4, ("look_up",)),
    Kind(react, kickoff, "words", 3, _PAID),
    Kind(async_tasks, kickoff, "at-once", 4, ("look_up",)),
    Kind(parallel, kickoff, "scouts", 2, ("slowly Oslo", "slowly Rome", "slowly Pune")),
    Kind(twins, kickoff, "twins", 2, ("look_up", "look_up")),
    Kind(structured, kickoff, "court", 2),
    Kind(guarded, kickoff, "guarded", 2),
    Kind(planned, kickoff, "planned", 5, ("look_up",)),
    Kind(conditional, kickoff, "maybe", 3, ("look_up",)),
    Kind(paying, kickoff, "till", 3, _PAID),
    Kind(sequential, kickoff_async, "desk", 4, ("look_up",)),
    Kind(sequential, akickoff, "desk", 4, ("look_up",)),
    Kind(streaming, akickoff, "talking", 4, ("look_up",)),
    Kind(paying, for_each, "till", 9, _PAID * 3),
    Kind(paying, for_each_async, "till", 9, _PAID * 3, racy=True),
    Kind(paying, akickoff_for_each, "till", 9, _PAID * 3, racy=True),
    Kind(flow, kickoff, "RefundFlow", 6, ("look_up", "look_up", "issue_refund")),
    Kind(flow, akickoff, "RefundFlow", 6, ("look_up", "look_up", "issue_refund")),
    Kind(looping, kickoff, "Counting", 3),
    Kind(persisted, kickoff, "Kept", 2),
    Kind(alone, ask, "clerk", 3, _PAID),
    Kind(alone, aask, "clerk", 3, _PAID),
    Kind(lite, ask, "thinker", 3, _PAID),
]


def named(name: str) -> Kind:
    return next(kind for kind in KINDS if kind.name == name)


def labelled(kind: Kind) -> str:
    return kind.name


def alike(result: Any, *, racy: bool = False) -> Any:
    """What came of it, to be compared with another run's. `racy`: as of its kind."""
    if isinstance(result, list):
        return [alike(each, racy=racy) for each in result]
    if hasattr(result, "is_completed"):  # a stream that has been read
        return alike(result.result, racy=racy)
    if isinstance(result, BaseModel):
        dumped: dict[str, Any] = result.model_dump(mode="json", exclude={"token_usage"} if racy else None)
        return dumped
    return result


def used(target: Any) -> Any:
    """The tokens that CrewAI says were used."""
    usage = getattr(target, "usage_metrics", None)
    return usage.model_dump() if usage is not None else None
