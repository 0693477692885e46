"""What is not recorded yet: memory and knowledge (embeddings, and pools of threads that go on when a turn is over), and
agents that CrewAI does not run itself.

A crew or agent that has some is refused when it is wrapped, before anything has run. Where that cannot be seen (a
flow's memory is always there, and rarely used; a crew that a flow makes), its use is recorded as a call whose answer is
not known: the recording is incomplete and says so, and a replay stops there instead of asking it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

from crewai.agents.agent_adapters.base_agent_adapter import BaseAgentAdapter
from crewai.knowledge.knowledge import Knowledge
from crewai.llms.base_llm import BaseLLM
from crewai.memory.unified_memory import Memory

from lockstep.errors import Code, LockstepError, TargetError
from lockstep.log.model import Value
from lockstep.session.native.answers import Question
from lockstep_crewai import asking, classes, current
from lockstep_crewai.asking import Leaf
from lockstep_crewai.canonical import inert
from lockstep_crewai.layout import TOOL
from lockstep_crewai.places import Place

_MEMORY = (
    "remember", "remember_many", "recall", "extract_memories", "forget", "update", "list_scopes", "list_records",
    "info", "tree", "list_categories", "reset", "reset_all", "aremember", "aremember_many", "arecall",
    "aextract_memories",
)  # fmt: skip
_KNOWLEDGE = ("query", "aquery", "add_sources", "aadd_sources", "reset", "areset")
_MODELS = ("llm", "function_calling_llm", "manager_llm", "planning_llm", "chat_llm")


def install() -> None:
    """Has memory and knowledge ask who answers them. Once."""
    for name in _MEMORY:
        classes.wrap(Memory, name, _unrecorded("memory"))
    for name in _KNOWLEDGE:
        classes.wrap(Knowledge, name, _unrecorded("knowledge"))


def check(target: Any) -> None:
    """Raises TargetError LS411 for a crew, agent or flow that has what is not recorded."""
    found = list(unseen(target))
    if found:
        raise TargetError(Code.UNSUPPORTED, f"this cannot be recorded: {'; '.join(found)}")


def unseen(target: Any) -> Iterator[str]:
    """What of a crew or agent is not recorded, in words, each with what to do."""
    if getattr(target, "agents", None) is not None and getattr(target, "tasks", None) is not None:
        yield from _of("the crew", target)
        every = [*target.agents, getattr(target, "manager_agent", None), *(task.agent for task in target.tasks)]
        for agent in dict.fromkeys(id(each) for each in every if each is not None):
            yield from _of_agent(next(each for each in every if id(each) == agent))
    elif hasattr(target, "role"):
        yield from _of_agent(target)


def _of(who: str, owner: Any) -> Iterator[str]:
    if getattr(owner, "memory", None):
        yield f"{who} has a memory, whose embeddings are not recorded: set memory=False"
    if getattr(owner, "knowledge_sources", None) or getattr(owner, "knowledge", None):
        yield f"{who} has knowledge, whose embeddings are not recorded: leave it out, or look it up by a tool"
    for name in _MODELS:
        llm = vars(owner).get(name)  # by itself, some of them warn that they are old
        if llm is not None and not isinstance(llm, str):
            yield from _of_model(f"{who}'s {name}", llm)


def _of_agent(agent: Any) -> Iterator[str]:
    who = f"agent {getattr(agent, 'role', type(agent).__name__)}"
    if isinstance(agent, BaseAgentAdapter):
        yield f"{who} is run by another framework ({type(agent).__name__}): record it with that framework's adapter"
        return
    yield from _of(who, agent)
    if getattr(agent, "a2a", None):
        yield f"{who} asks other agents by A2A, which is not recorded: give it a tool that asks them"
    if getattr(agent, "apps", None):
        yield f"{who} has apps of CrewAI's platform, which are looked up there: give it their tools"


def _of_model(what: str, llm: Any) -> Iterator[str]:
    if not isinstance(llm, BaseLLM):
        yield f"{what} is a {type(llm).__name__} and no BaseLLM: build it on crewai.BaseLLM"
    elif {"call", "acall"} & vars(llm).keys():
        yield f"{what} has a call of its own, put on the object: override it in a class"


def _unrecorded(what: str) -> Any:
    def make(plain: Any) -> Any:
        name = f"{what}.{plain.__name__}"

        @wraps(plain)
        def use(self: Any, *args: Any, **options: Any) -> Any:
            place = _outermost(what)
            if place is None:
                return plain(self, *args, **options)
            return asking.outside(
                place, TOOL, lambda: _question(name, args, options), lambda: plain(self, *args, **options),
                Leaf(_refuse(what)),
            )  # fmt: skip

        @wraps(plain)
        async def ause(self: Any, *args: Any, **options: Any) -> Any:
            place = _outermost(what)
            if place is None:
                return await plain(self, *args, **options)
            return await asking.aoutside(
                place, TOOL, lambda: _question(name, args, options), lambda: plain(self, *args, **options),
                Leaf(_refuse(what)),
            )  # fmt: skip

        return ause if iscoroutinefunction(plain) else use

    return make


def _outermost(what: str) -> Place | None:
    return None if asking.inside.get()[1].startswith(f"{what}.") else current.place()


def _question(name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Question:
    request: dict[str, Value] = {"arguments": inert([*args, options] if options else [*args])}
    return Question(name, request, request)


def _refuse(what: str) -> Any:
    def keep(result: Any) -> Value:
        raise LockstepError(Code.UNSUPPORTED, f"what {what} answers is not recorded yet: run it without {what}")

    return keep
