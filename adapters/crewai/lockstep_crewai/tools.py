"""Tools: each run of one is an effect, on both ways that CrewAI has: `BaseTool.run` and `arun`, where a model calls
tools itself, and `CrewStructuredTool.invoke` and `ainvoke`, where it writes down what it would like to have called.

A tool that hands work to another agent is none: its own code runs, and what that agent asks is recorded. So is a tool
of CrewAI's own that only looks at what the run itself has made.

A tool that is served counts as used, as it did when it ran: how often it may be is a rule of the program's.
"""

from __future__ import annotations

import asyncio
import inspect
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from contextvars import copy_context
from functools import partial, wraps
from hashlib import blake2b
from typing import Any

from crewai.tools.agent_tools.add_image_tool import AddImageTool
from crewai.tools.agent_tools.base_agent_tools import BaseAgentTool
from crewai.tools.agent_tools.read_file_tool import ReadFileTool
from crewai.tools.base_tool import BaseTool
from crewai.tools.structured_tool import CrewStructuredTool

from lockstep.log.model import Value
from lockstep.session.native.answers import Question
from lockstep.session.policy import Declared
from lockstep.tools import declared
from lockstep_crewai import asking, classes, current
from lockstep_crewai.asking import Leaf
from lockstep_crewai.canonical import inert
from lockstep_crewai.events import Overheard
from lockstep_crewai.layout import TOOL
from lockstep_crewai.places import Place
from lockstep_crewai.voice import repeat

# Whose own code runs: it asks other agents, or looks at what the run has.
_LATER = (  # than the oldest version
    classes.there("crewai.tools.agent_tools.deferred_tool_result_reader:DeferredToolResultReader"),
    classes.there("crewai.skills.tool:LoadSkillTool"),
)
_RUN: tuple[type, ...] = (BaseAgentTool, AddImageTool, *(each for each in _LATER if each is not None))
_READS = Declared("read", "it reads a file that the run was given")


def install() -> None:
    """Has all tools ask who answers them. Again before each run: `CrewStructuredTool` has no word for subclasses that
    are made later."""
    classes.each(BaseTool, _see)
    for cls in classes.family(CrewStructuredTool):
        classes.wrap(cls, "invoke", _invoking)
        classes.wrap(cls, "ainvoke", _ainvoking)
    results = classes.there("crewai.utilities.tool_result_artifacts")
    if results is not None:
        classes.wrap_function(results, "token_urlsafe", _drawing)


def _see(cls: type) -> None:
    classes.wrap(cls, "run", _running)
    classes.wrap(cls, "arun", _arunning)


def _running(plain: Any) -> Any:
    @wraps(plain)
    def run(self: Any, *args: Any, **options: Any) -> Any:
        place = _outermost(self)
        if place is None:
            return plain(self, *args, **options)
        return asking.outside(
            place, TOOL, lambda: question(self, by_name(self, args, options)), partial(plain, self, *args, **options),
            _leaf(self, lambda: _count_run(self, args, options)), Overheard,
        )  # fmt: skip

    return run


def _arunning(plain: Any) -> Any:
    @wraps(plain)
    async def arun(self: Any, *args: Any, **options: Any) -> Any:
        place = _outermost(self)
        if place is None:
            return await plain(self, *args, **options)
        return await asking.aoutside(
            place, TOOL, lambda: question(self, by_name(self, args, options)), partial(plain, self, *args, **options),
            _leaf(self, lambda: _count_run(self, args, options)), Overheard,
        )  # fmt: skip

    return arun


def _invoking(plain: Any) -> Any:
    @wraps(plain)
    def invoke(self: Any, input: Any, config: Any = None, **options: Any) -> Any:
        place = _outermost(self)
        if place is None:
            return plain(self, input, config, **options)
        return asking.outside(
            place, TOOL, lambda: question(self, _input(input, options)), partial(plain, self, input, config, **options),
            _leaf(self, lambda: _count_invoke(self, input)), Overheard,
        )  # fmt: skip

    return invoke


def _ainvoking(plain: Any) -> Any:
    @wraps(plain)
    async def ainvoke(self: Any, input: Any, config: Any = None, **options: Any) -> Any:
        place = _outermost(self)
        if place is None:
            if current.place() is not None and is_run(self) and not inspect.iscoroutinefunction(self.func):
                return await _on_a_thread(self, input, options)
            return await plain(self, input, config, **options)
        return await asking.aoutside(
            place, TOOL, lambda: question(self, _input(input, options)), partial(plain, self, input, config, **options),
            _leaf(self, lambda: _count_invoke(self, input)), Overheard,
        )  # fmt: skip

    return ainvoke


def _drawing(plain: Any) -> Any:
    """The names of long results, which CrewAI keeps in files and tells the model of: drawn by chance, they would be
    others in each run. Within a turn they are made of where the result was got, and are as long."""

    @wraps(plain)
    def token_urlsafe(nbytes: int | None = None) -> Any:
        place = current.place()
        if place is None:
            return plain(nbytes)
        made = place.root.names.lane(place.lane, "tool-result")
        return urlsafe_b64encode(blake2b(made.encode(), digest_size=nbytes or 32).digest()).rstrip(b"=").decode()

    return token_urlsafe


async def _on_a_thread(tool: Any, input: Any, options: Mapping[str, Any]) -> Any:
    """As `CrewStructuredTool.ainvoke`, which loses the context on the way to its thread: who asks there is not known
    then. Only for tools that ask other agents."""
    given = tool._parse_args(input)
    if tool.has_reached_max_usage_count():
        return tool.invoke(input, None, **options)  # raises what it raises
    tool._increment_usage_count()
    really = partial(tool.func, **given, **options)
    return await asyncio.get_running_loop().run_in_executor(None, copy_context().run, really)


def _outermost(tool: Any) -> Place | None:
    """Where a tool is run, None where nobody asks, its own code is to run, or it is a part of itself."""
    place = current.place()
    if place is None or is_run(tool):
        return None
    return None if asking.inside.get() == (TOOL, str(tool.name)) else place


def is_run(tool: Any) -> bool:
    """Whether a tool's own code runs, whoever answers its calls."""
    return isinstance(original(tool), _RUN)


def original(tool: Any) -> Any:
    """The tool that a structured tool was made of; any other, itself."""
    return getattr(tool, "_original_tool", None) or tool


# What is asked.


def question(tool: Any, arguments: Mapping[str, Any]) -> Question:
    """What a tool is asked, as data."""
    request: dict[str, Value] = {"arguments": inert(arguments)}
    return Question(str(tool.name), request, request, effect_of(tool))


def by_name(tool: Any, args: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a run, by their names, as far as they have some."""
    if not args:
        return dict(options)
    function: Callable[..., Any] = getattr(tool, "func", None) or tool._run
    names = [
        name for name, each in inspect.signature(function).parameters.items()
        if each.kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ]  # fmt: skip
    if len(args) > len(names) or not {*names[: len(args)]}.isdisjoint(options):
        return {"args": [*args], **options}
    return {**dict(zip(names, args, strict=False)), **options}


def _input(input: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    return {**(input if isinstance(input, Mapping) else {"input": input}), **options}


def effect_of(tool: Any) -> Declared | None:
    """What running a tool means, as far as somebody said so: the program by `lockstep.mark` of the tool, of its class
    or of its function, or the annotations that an MCP server gave it."""
    of = original(tool)
    for said in (tool, of, getattr(tool, "func", None), getattr(of, "func", None)):
        found = declared(said) if said is not None else None
        if found is not None:
            return found
    return _READS if isinstance(of, ReadFileTool) else None


# What is answered.


def _leaf(tool: Any, counts: Callable[[], object]) -> Leaf:
    return Leaf(serves=counts, tell=partial(repeat, tool))


def _count_run(tool: Any, args: Sequence[Any], options: dict[str, Any]) -> None:
    """A run that is served counts, if the tool would have run with these arguments."""
    try:
        if not args:
            tool._validate_kwargs(options)
    except Exception:
        return  # it did not, and what it raised is recorded
    tool._claim_usage()


def _count_invoke(tool: Any, input: Any) -> None:
    try:
        tool._parse_args(input)
    except Exception:
        return
    if not tool.has_reached_max_usage_count():
        tool._increment_usage_count()
