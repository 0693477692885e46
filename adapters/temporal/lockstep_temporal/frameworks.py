"""Which model or tool an activity is that an AI framework runs: their types say nothing of it, their arguments do.

Tried with temporalio-openai-agents 1.1 and pydantic-ai 2.68. By their sources only: temporalio-mcp 0.2 and MCP in
openai-agents, temporalio-strands-agents 0.1, temporalio-deepagents 0.0.3, temporalio-google-genai 0.1. A node of
temporalio-langgraph is an activity `graph.node` and stays one: a node is no call.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec

from lockstep.session.policy import Declared
from lockstep_temporal.commands import Command

MODEL, TOOL = "model", "tool"


class Named(msgspec.Struct, frozen=True):
    """An effect's kind and name, and who says of which class it is, None if nobody."""

    kind: str
    name: str
    declared: Declared | None = None


_SAID = "by its framework"
_MODEL = Declared("inference", _SAID)
_READ = Declared("read", _SAID)


def named(command: Command) -> Named | None:
    """What a framework's activity is; None of any other."""
    for pattern, read in _FRAMEWORKS:
        found = pattern.fullmatch(command.name)
        if found is not None:
            return read(command, found)
    return None


def _model(command: Command, found: re.Match[str]) -> Named:
    return Named(MODEL, _text(_first(command).get("model_name")) or "default", _MODEL)


def _strands_model(command: Command, found: re.Match[str]) -> Named | None:
    """Its type is a name that others may give an activity of theirs."""
    return _model(command, found) if {"model_name", "messages"} <= _first(command).keys() else None


def _gemini(command: Command, found: re.Match[str]) -> Named | None:
    """Any request to the API: "models/gemini-2.5-flash:generateContent" is one to a model."""
    path = _text(_first(command).get("path"))
    asked = re.fullmatch(r"(?:.*/)?models/([^/:]+):(?:stream)?[gG]enerateContent.*", path)
    return Named(MODEL, asked[1], _MODEL) if asked is not None else None


def _tool(command: Command, found: re.Match[str]) -> Named | None:
    """In older versions of openai-agents the first argument is the tool's name itself."""
    first = _first(command)
    name = _text(first.get("tool_name")) or _text(first.get("name")) or _text(_argument(command, 0))
    return Named(TOOL, name) if name else None


def _pydantic_model(command: Command, found: re.Match[str]) -> Named:
    """Where an agent has but one model, its own name is all that the call says."""
    return Named(MODEL, _text(_first(command).get("model_id")) or found["agent"], _MODEL)


def _list(command: Command, found: re.Match[str]) -> Named:
    """What is asked of a server of tools before any is called."""
    return Named(command.kind, command.name, _READ)


type _Reads = Callable[[Command, re.Match[str]], Named | None]

_FRAMEWORKS: tuple[tuple[re.Pattern[str], _Reads], ...] = (
    (re.compile(r"invoke_model_activity(_streaming)?"), _model),
    (re.compile(r"agent__(?P<agent>.+?)__model_request(_stream)?"), _pydantic_model),
    (re.compile(r"agent__.+__(toolset|dynamic_toolset|mcp_server)__.+__call_tool"), _tool),
    (re.compile(r"agent__.+__(dynamic_toolset|mcp_server)__.+__(get_tools|get_instructions)"), _list),
    (re.compile(r"(temporalio\.mcp\..+\.|.+-)call-tool(-v2)?"), _tool),
    (
        re.compile(r"(temporalio\.mcp\..+\.|.+-(stateless|stateful)-)(list-[\w-]+|read-resource|get-prompt(-v2)?)"),
        _list,
    ),
    (re.compile(r"deepagents\.invoke_model(_streaming)?"), _model),
    (re.compile(r"deepagents\.invoke_tool"), _tool),
    (re.compile(r"invoke_model(_streaming)?"), _strands_model),
    (re.compile(r"gemini_api_client_async_request(_streamed)?"), _gemini),
)


def _argument(command: Command, at: int) -> Any:
    arguments = command.request.get("arguments")
    return arguments[at] if isinstance(arguments, list) and len(arguments) > at else None


def _first(command: Command) -> dict[str, Any]:
    first = _argument(command, 0)
    return first if isinstance(first, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
