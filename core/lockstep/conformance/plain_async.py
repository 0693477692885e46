"""The async agent: its model is a function that is declared a tool, its tools are coroutines."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any
from urllib.parse import urlsplit

import lockstep
from lockstep.conformance import outside, plain_loop
from lockstep.conformance.plain_loop import Ask, Messages, ModelFailed
from lockstep.conformance.scenario import Tool
from lockstep.conformance.subject import Work


def agent(work: Work, pieces: list[str]) -> Callable[[], Coroutine[Any, Any, list[str]]]:
    """The agent of a scenario, as a coroutine function without arguments."""
    tools = {tool.name: _tool(work.url, tool) for tool in work.scenario.tools}
    connect = _connect(work)
    model, streamed = _model(connect), _streamed(connect)

    async def ask(messages: Messages) -> dict[str, Any]:
        body = plain_loop.body(work.scenario, messages)
        problem = ""
        for _ in range(plain_loop.TRIES):
            try:
                return await _message(streamed(body), pieces) if work.scenario.streams else await model(body)
            except ModelFailed as failed:
                problem = str(failed)
                if problem.startswith("4"):
                    break
        raise ModelFailed(problem)

    async def use(name: str, argument: str) -> str:
        try:
            return str(await tools[name](argument))
        except outside.ToolFailed as failed:
            return f"error: {failed}"

    async def run() -> list[str]:
        wishes = plain_loop.converse(work.scenario)
        answer: Any = None
        while True:
            try:
                wish = wishes.send(answer)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            if isinstance(wish, Ask):
                answer = await ask(wish.messages)
            else:
                answer = await asyncio.gather(*(use(*call) for call in wish.calls))

    return run


def _tool(url: str, tool: Tool) -> Callable[[str], Coroutine[Any, Any, Any]]:
    @lockstep.tool(effect=tool.effect, name=tool.name)
    async def use(argument: str) -> Any:
        return await outside.ause(url, tool.name, argument)

    return use


type Connect = Callable[[dict[str, Any]], http.client.HTTPResponse]


def _connect(work: Work) -> Connect:
    def connect(body: dict[str, Any]) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection(urlsplit(work.url).netloc)
        headers = {"content-type": "application/json", "authorization": f"Bearer {work.scenario.key}"}
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {**headers, "connection": "close"})
        response = connection.getresponse()
        if response.status >= 400:
            raise ModelFailed(f"{response.status} {response.reason}")
        return response

    return connect


def _model(connect: Connect) -> Callable[[dict[str, Any]], Coroutine[Any, Any, dict[str, Any]]]:
    @lockstep.tool(effect="inference", name="model")
    async def model(body: dict[str, Any]) -> dict[str, Any]:
        def read() -> dict[str, Any]:
            return json.loads(connect(body).read())["choices"][0]["message"]  # type: ignore[no-any-return]

        return await asyncio.to_thread(read)

    return model


def _streamed(connect: Connect) -> Callable[[dict[str, Any]], AsyncIterator[str]]:
    @lockstep.tool(effect="inference", name="model")
    async def model(body: dict[str, Any]) -> AsyncIterator[str]:
        response = await asyncio.to_thread(connect, body)
        while line := await asyncio.to_thread(response.readline):
            yield line.decode()

    return model


async def _message(lines: AsyncIterator[str], pieces: list[str]) -> dict[str, Any]:
    chunks: list[dict[str, Any]] = []
    async for line in lines:
        part = plain_loop.chunk(line)
        if part is not None:
            chunks.append(part)
            if text := plain_loop.piece(part):
                pieces.append(text)
    return plain_loop.gathered(chunks)
