"""CrewAI's ordinary agent as a subject of `lockstep.conformance`: in a crew of one task, sync and on an event loop, in
a flow, and by itself.

Each prompt is a kickoff. Crews remember nothing from one to the next, so the subject does what a program with a chat
does: it gives the agent what was said before as history.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

import lockstep
from lockstep.conformance import outside, telling
from lockstep.conformance.scenario import Tool
from lockstep.conformance.subject import Done, Mode, Work

_CREW, _ASYNC, _FLOW, _ALONE = "crew", "crew async", "flow", "agent alone"


class CrewAI(telling.Made):
    """Runs crews as a program does that has wrapped them, and replays, forks and bisects their runs."""

    modes = (Mode(_CREW, False), Mode(_ASYNC, True), Mode(_FLOW, True), Mode(_ALONE, False))
    unsupported: Mapping[str, str] = {}
    drops_text = True
    hooks: tuple[str, ...] = (
        "lockstep.session.native.journal:Journal.emit",
        "lockstep_crewai.models:question",
        "lockstep_crewai.canonical:result",
        "lockstep_crewai.steps:key_of",
    )
    core_hooks: tuple[str, ...] = telling.NATIVE_HOOKS

    def run(self, work: Work) -> Done:
        pieces: list[str] = []
        return _talk(work, made(work, pieces), pieces)

    def record(self, work: Work) -> Done:
        import lockstep_crewai
        from lockstep_crewai import wrapping

        pieces: list[str] = []
        wrapped = lockstep_crewai.wrap(made(work, pieces), store=work.store)
        done = _talk(work, wrapped, pieces)
        root = wrapping.root_of(wrapped)
        assert root is not None
        recording: Any = root.seams.told
        journal = recording.journal()
        if journal is None:
            return replace(done, faults=recording.faults)
        journal.close()
        return replace(done, run=journal.run, faults=tuple(journal.faults))

    def make(self, work: Work, pieces: list[str]) -> Any:
        return made(work, pieces)

    def word(self, result: Any) -> str:
        return _word(result)

    def told(self, error: BaseException | None) -> str:
        return _told(error)


def made(work: Work, pieces: list[str]) -> Any:
    """The crew, flow or agent of a scenario. Texts that its model streams go to `pieces`."""
    from crewai import LLM, Agent

    scenario = work.scenario
    llm = LLM(model="openai/gpt-4o", base_url=f"{work.url}/v1", api_key=scenario.key, stream=scenario.streams)
    _hear(llm, pieces)
    agent = Agent(
        role="agent", goal="do as you are told", backstory=scenario.system, llm=llm,
        tools=[_tool(work, tool) for tool in scenario.tools],
        respect_context_window=False,  # else each call is warned of, since nobody knows the size of this model's
    )  # fmt: skip
    if work.mode.name == _FLOW:
        return _flow(agent, scenario.ending)
    return _alone(agent, scenario.ending) if work.mode.name == _ALONE else _crew(agent, scenario.ending)


def _crew(agent: Any, ending: str) -> Any:
    from crewai import Crew, Task

    def ends(output: Any) -> Any:
        output.raw += ending
        return output

    task = Task(
        name="answer", description="{prompt}", expected_output="what was found", agent=agent, callback=_remembers(agent)
    )
    return Crew(name="agents", agents=[agent], tasks=[task], after_kickoff_callbacks=[ends])


def _flow(agent: Any, ending: str) -> Any:
    from crewai.flow import Flow, listen, start

    class Agents(Flow[dict]):  # type: ignore[misc]
        """One method hears the prompt, another has it answered."""

        @start()  # type: ignore[untyped-decorator]
        def hear(self) -> None:
            self.state.setdefault("messages", []).append({"role": "user", "content": self.state["prompt"]})

        @listen(hear)  # type: ignore[untyped-decorator]
        async def answer(self) -> str:
            said = await agent.kickoff_async(self.state["messages"])
            self.state["messages"] = _said(said.messages)
            return str(said.raw) + ending

    return Agents(suppress_flow_events=True)  # they are printed


def _alone(agent: Any, ending: str) -> Any:
    # A lambda, since what is annotated must be annotated as CrewAI wants it.
    agent.guardrail = (lambda output: (True, output.raw + ending)) if ending else None
    return agent


# By the identity of an agent: what was said in earlier kickoffs of its crew. One hook for all: those that are CrewAI's
# are everybody's.
_remembered: dict[int, list[Any]] = {}


def _remembers(agent: Any) -> Callable[[Any], None]:
    """The callback of a task that remembers what was said, for its next kickoff."""
    from crewai.hooks import get_before_llm_call_hooks, register_before_llm_call_hook

    if _recalls not in get_before_llm_call_hooks():
        register_before_llm_call_hook(_recalls)
    said: list[Any] = []
    _remembered[id(agent)] = said
    weakref.finalize(agent, _remembered.pop, id(agent), None)

    def remembers(output: Any) -> None:
        said[:] = _said(output.messages)

    return remembers


def _recalls(context: Any) -> None:
    """The hook that tells a model what was said before, where it begins to speak."""
    if all(each["role"] != "assistant" for each in context.messages):
        context.messages[1:1] = _remembered.get(id(context.agent), ())


def _tool(work: Work, tool: Tool) -> Any:
    from crewai.tools import tool as named

    def use(argument: str) -> Any:
        """Looks it up."""
        return outside.use(work.url, tool.name, argument)

    async def ause(argument: str) -> Any:
        """Looks it up."""
        return await outside.ause(work.url, tool.name, argument)

    use.__annotations__ = ause.__annotations__ = {"argument": str, "return": Any}
    tool_of = named(tool.name)
    return lockstep.mark(tool_of(ause if work.mode.asynchronous else use), effect=tool.effect)


# By the identity of a model: where the pieces of its streams go. One listener for all: none can be bound to a model.
_heard: dict[int, list[str]] = {}


def _hear(llm: Any, pieces: list[str]) -> None:
    _listen()
    _heard[id(llm)] = pieces
    weakref.finalize(llm, _heard.pop, id(llm), None)


def _listen() -> None:
    from crewai.events import crewai_event_bus
    from crewai.events.types.llm_events import LLMStreamChunkEvent

    crewai_event_bus.on(LLMStreamChunkEvent)(_piece)


def _piece(source: Any, event: Any) -> None:
    pieces = _heard.get(id(source))
    if pieces is not None and event.tool_call is None:
        pieces.append(event.chunk)


def _talk(work: Work, asked: Any, pieces: list[str]) -> Done:
    """Gives the prompts, each as a kickoff."""
    ask = _asking(work, asked)
    words: list[str] = []
    try:
        for prompt in work.scenario.prompts:
            words.append(_word(ask(prompt)))
    except Exception as error:
        return Done(error=_told(error), pieces=tuple(pieces))
    return Done(outputs=tuple(words), pieces=tuple(pieces))


def _asking(work: Work, asked: Any) -> Callable[[str], Any]:
    said: list[Any] = []

    def alone(prompt: str) -> Any:
        result = asked.kickoff([*said, {"role": "user", "content": prompt}])
        said[:] = _said(result.messages)
        return result

    async def in_loop(prompt: str) -> Any:
        return await asked.akickoff(inputs={"prompt": prompt})

    ways: dict[str, Callable[[str], Any]] = {
        _CREW: lambda prompt: asked.kickoff(inputs={"prompt": prompt}),
        _ASYNC: lambda prompt: asyncio.run(in_loop(prompt)),
        _FLOW: lambda prompt: asyncio.run(in_loop(prompt)),
        _ALONE: alone,
    }
    return ways[work.mode.name]


def _said(messages: Any) -> list[Any]:
    """What was said so far, to be told the model again: without the system's part, which every request has anew."""
    return [each for each in messages if each["role"] != "system"]


def _word(result: Any) -> str:
    """The agent's last word: of a result, or of one that is read from the record."""
    said: Any = result
    if isinstance(result, dict):
        said = result["output"] if "output" in result else result.get("returned", "")
    if isinstance(said, dict):
        return str(said["raw"])
    return str(getattr(said, "raw", said))


def _told(error: BaseException | None) -> str:
    """Of what a crew raises the first line: it may have the answer of a server in its text."""
    return "" if error is None else f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


subject = CrewAI()
