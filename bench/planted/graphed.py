"""The agent as a LangGraph graph: a node for each of the five things, routed from one to the next, with a chat model
and tools of LangChain that ask the provider in process. Its system prompt is in the state, as it was read last.
"""

from __future__ import annotations

from typing import Any, TypedDict

from bench.planted import faults
from bench.planted.faults import INBOX, MODEL, PROMPT, SEARCH, TOOL, Case
from bench.planted.provider import Provider

import lockstep

provider = Provider()


class State(TypedDict):
    """What the agent has with it. `wanted`: the order that the model wants to be looked up."""

    step: int
    total: int
    system: str
    wanted: int


def graph(case: Case, saver: Any) -> Any:
    """The agent of a case. `saver`: its checkpointer, None for bisect."""
    from langgraph.graph import END, START, StateGraph

    def role(state: State) -> str:
        return case.roles[state["step"]] if state["step"] < case.steps else END

    built: Any = StateGraph(State)
    ways = [MODEL, *_tools()]
    for name, tool in _tools().items():
        built.add_node(name, _using(case, name, tool))
        built.add_conditional_edges(name, role, [*ways, END])
    built.add_node(MODEL, _asking(case))
    built.add_conditional_edges(MODEL, role, [*ways, END])
    built.add_conditional_edges(START, role, ways)
    return built.compile(checkpointer=saver)


def begin() -> State:
    return {"step": 0, "total": 0, "system": "", "wanted": 0}


def _using(case: Case, role: str, tool: Any) -> Any:
    def use(state: State) -> dict[str, Any]:
        step = state["step"] + 1
        order = state["wanted"] if case.told(step) else case.order(step)
        text = tool.invoke({"step": step, "order": order, "total": state["total"]})
        told = {"step": step, "total": faults.counted(state["total"], role, text)}
        return {**told, "system": text} if role == PROMPT else told

    return use


def _asking(case: Case) -> Any:
    asked = _chat_model()

    def ask(state: State) -> dict[str, Any]:
        step = state["step"] + 1
        question = f"step {step}, order {case.order(step)}, total {state['total']}"
        text = asked.invoke([("system", state["system"]), ("user", question)]).text
        total = faults.counted(state["total"], MODEL, text)
        return {"step": step, "total": total, "wanted": faults.found(MODEL, text)}

    return ask


def _chat_model() -> Any:
    import re

    from langchain_core.language_models import SimpleChatModel

    class Model(SimpleChatModel):
        """Asks the provider."""

        @property
        def _llm_type(self) -> str:
            return "clerk"

        def _call(self, messages: Any, *_: Any, **__: Any) -> str:
            step, order, total = map(int, re.findall(r"\d+", messages[-1].text))
            return provider.answer(step, order, total)

    return Model()


def _tools() -> dict[str, Any]:
    from langchain_core.tools import StructuredTool

    def ask(step: int, order: int, total: int) -> str:
        """Asks the provider."""
        return provider.answer(step, order, total)

    def made(name: str) -> Any:
        tool = StructuredTool.from_function(ask, name=name)
        lockstep.mark(tool, effect="read")
        return tool

    return {name: made(name) for name in (TOOL, SEARCH, INBOX, PROMPT)}
