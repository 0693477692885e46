"""A tool-calling agent without I/O: what it wants to be asked and done, for a sync and an async driver alike."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from typing import Any

import msgspec

from lockstep.conformance.scenario import Scenario

TRIES = 3  # a model is asked so often before the agent gives up

type Messages = list[dict[str, Any]]


class ModelFailed(Exception):
    """The model gave no answer."""


class Ask(msgspec.Struct, frozen=True):
    """Ask the model; the driver sends back its message: {"content": ..., "tool_calls": [...]}."""

    messages: Messages


class Use(msgspec.Struct, frozen=True):
    """Call these tools at once, each (name, argument); the driver sends back a text for each."""

    calls: tuple[tuple[str, str], ...]


type Wish = Ask | Use


def converse(scenario: Scenario) -> Generator[Wish, Any, list[str]]:
    """The agent: yields what it wants, is sent what came of it, and returns its last word to each prompt."""
    messages: Messages = [{"role": "system", "content": scenario.system}]
    words: list[str] = []
    for prompt in scenario.prompts:
        messages.append({"role": "user", "content": prompt})
        while True:
            said = yield Ask(messages)
            wanted = said.get("tool_calls") or []
            messages.append({"role": "assistant", "content": said["content"], "tool_calls": wanted})
            if not wanted:
                break
            calls = tuple(_call(each) for each in wanted)
            results: Sequence[str] = yield Use(calls)
            for each, result in zip(wanted, results, strict=True):
                messages.append({"role": "tool", "tool_call_id": each["id"], "content": result})
        words.append(said["content"] + scenario.ending)
    return words


def body(scenario: Scenario, messages: Messages) -> dict[str, Any]:
    """What the model is asked, in the wire format of OpenAI."""
    tools = [{"type": "function", "function": {"name": tool.name}} for tool in scenario.tools]
    return {"model": "conformance", "messages": messages, "tools": tools, "stream": scenario.streams}


def gathered(chunks: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The message that the chunks of a stream make up."""
    content = ""
    calls: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        for choice in chunk.get("choices", ()):
            delta = choice["delta"]
            content += delta.get("content") or ""
            for piece in delta.get("tool_calls") or ():
                call = calls.setdefault(piece["index"], {"id": "", "function": {"name": "", "arguments": ""}})
                call["id"] += piece.get("id") or ""
                for part, text in piece.get("function", {}).items():
                    call["function"][part] += text or ""
    return {"content": content, "tool_calls": [calls[index] for index in sorted(calls)]}


def chunk(line: str) -> dict[str, Any] | None:
    """The chunk in a line of an event stream, None where it has none."""
    data = line.removeprefix("data: ").strip()
    return json.loads(data) if line.startswith("data: ") and data != "[DONE]" else None


def piece(part: dict[str, Any]) -> str:
    """The text that a chunk adds."""
    return "".join(choice["delta"].get("content") or "" for choice in part.get("choices", ()))


def _call(wanted: dict[str, Any]) -> tuple[str, str]:
    function = wanted["function"]
    return function["name"], json.loads(function["arguments"])["argument"]
