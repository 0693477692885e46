"""Chat models for tests: they say what they are told to, in a stream or whole, and count how often they are asked."""

from __future__ import annotations

import itertools
import json
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import BaseTool
from pydantic import PrivateAttr

type Says = Callable[[list[BaseMessage]], AIMessage | Exception]

_fresh = itertools.count(1)  # no answer was ever given before


class Asked:
    """What reached the outside: `models` and `tools` count it."""

    def __init__(self) -> None:
        self.models = 0
        self.tools: list[str] = []
        self._lock = threading.Lock()

    def model(self) -> None:
        with self._lock:
            self.models += 1

    def tool(self, name: str) -> int:
        with self._lock:
            self.tools.append(name)
        return next(_fresh)

    def clear(self) -> None:
        self.models = 0
        self.tools.clear()


class Scripted(BaseChatModel):
    """Answers by `says`, a function of the messages, with a token that is new each time and as a provider counts."""

    model: str = "scripted-1"
    says: Any
    asked: Any
    _heard: list[Any] = PrivateAttr(default_factory=list)

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        named = [tool.name if isinstance(tool, BaseTool) else getattr(tool, "__name__", str(tool)) for tool in tools]
        return self.bind(tools=[{"name": name} for name in named], **kwargs)

    def _said(self, messages: list[BaseMessage]) -> AIMessage:
        self.asked.model()
        said = self.says(messages)
        if isinstance(said, Exception):
            raise said
        number = next(_fresh)
        text = f"{said.content} #{number}" if not said.tool_calls else said.content
        calls = [{**call, "id": f"call_{number}_{n}"} for n, call in enumerate(said.tool_calls)]
        usage: Any = {"input_tokens": 10 + len(messages), "output_tokens": 5, "total_tokens": 15 + len(messages)}
        return AIMessage(text, tool_calls=calls, usage_metadata=usage, response_metadata={"finish_reason": "stop"})

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:  # fmt: skip
        said = self._said(messages)
        return ChatResult(
            generations=[ChatGeneration(message=said, generation_info={"logprobs": None})],
            llm_output={"token_usage": dict(said.usage_metadata or {}), "model_name": self.model},
        )

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": self.model, "temperature": 0.5}


class Streaming(Scripted):
    """The same, which can give its answer in pieces."""

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: Any = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        yield from self._pieces(self._said(messages))

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:  # fmt: skip
        for piece in self._pieces(self._said(messages)):
            yield piece

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:  # fmt: skip
        return self._generate(messages, stop=stop, **kwargs)

    def _pieces(self, said: AIMessage) -> Iterator[ChatGenerationChunk]:
        for text in re.split(r"(?<= )", str(said.content)):
            if text:
                yield ChatGenerationChunk(message=AIMessageChunk(text))
        for index, call in enumerate(said.tool_calls):
            args = json.dumps(call["args"])
            first: Any = {"name": call["name"], "args": args[:4], "id": call["id"], "index": index}
            rest: Any = {"name": None, "args": args[4:], "id": None, "index": index}
            yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=[first]))
            yield ChatGenerationChunk(message=AIMessageChunk("", tool_call_chunks=[rest]))
        yield ChatGenerationChunk(
            message=AIMessageChunk("", usage_metadata=said.usage_metadata),
            generation_info={"finish_reason": "stop", "model_name": self.model},
        )


def says(*script: AIMessage | str | Exception | list[tuple[str, dict[str, Any]]]) -> Says:
    """One answer after the other, by how many the model has given in the conversation; a list is one of tool calls."""

    def say(messages: list[BaseMessage]) -> AIMessage | Exception:
        found = script[min(sum(message.type == "ai" for message in messages), len(script) - 1)]
        if isinstance(found, (AIMessage, Exception)):
            return found
        if isinstance(found, str):
            return AIMessage(found)
        return AIMessage("", tool_calls=[{"name": name, "args": args, "id": ""} for name, args in found])

    return say
