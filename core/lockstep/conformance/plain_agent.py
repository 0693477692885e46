"""The sync agent: its model over `http.client`, its tools in threads where several are wanted at once."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import lockstep
from lockstep.conformance import outside, plain_loop
from lockstep.conformance.plain_loop import Ask, Messages, ModelFailed
from lockstep.conformance.scenario import Tool
from lockstep.conformance.subject import Work


def agent(work: Work, pieces: list[str]) -> Callable[[], list[str]]:
    """The agent of a scenario, as a callable without arguments."""
    tools = {tool.name: _tool(work.url, tool) for tool in work.scenario.tools}

    def use(call: tuple[str, str]) -> str:
        name, argument = call
        try:
            return str(tools[name](argument))
        except outside.ToolFailed as failed:
            return f"error: {failed}"

    def use_all(calls: tuple[tuple[str, str], ...]) -> list[str]:
        if len(calls) == 1:
            return [use(calls[0])]
        with ThreadPoolExecutor(len(calls)) as pool:
            return [*pool.map(use, calls)]

    def run() -> list[str]:
        wishes = plain_loop.converse(work.scenario)
        answer: Any = None
        while True:
            try:
                wish = wishes.send(answer)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            answer = _ask(work, wish.messages, pieces) if isinstance(wish, Ask) else use_all(wish.calls)

    return run


def _tool(url: str, tool: Tool) -> Callable[[str], Any]:
    @lockstep.tool(effect=tool.effect, name=tool.name)
    def use(argument: str) -> Any:
        return outside.use(url, tool.name, argument)

    return use


def _ask(work: Work, messages: Messages, pieces: list[str]) -> dict[str, Any]:
    """The model's message. Tries again where the model is not to be had, and raises ModelFailed in the end."""
    problem = ""
    for _ in range(plain_loop.TRIES):
        connection = http.client.HTTPConnection(urlsplit(work.url).netloc)
        try:
            connection.request(
                "POST",
                "/v1/chat/completions",
                json.dumps(plain_loop.body(work.scenario, messages)),
                {"content-type": "application/json", "authorization": f"Bearer {work.scenario.key}"},
            )
            response = connection.getresponse()
            if response.status < 400:
                return _message(response, pieces) if work.scenario.streams else _choice(response.read())
            problem = f"{response.status} {response.reason}"
            response.read()
            if response.status < 500:
                break
        finally:
            connection.close()
    raise ModelFailed(problem)


def _choice(answer: bytes) -> dict[str, Any]:
    return json.loads(answer)["choices"][0]["message"]  # type: ignore[no-any-return]


def _message(response: http.client.HTTPResponse, pieces: list[str]) -> dict[str, Any]:
    chunks: list[dict[str, Any]] = []
    for line in _lines(response):
        part = plain_loop.chunk(line)
        if part is not None:
            chunks.append(part)
            if text := plain_loop.piece(part):
                pieces.append(text)
    return plain_loop.gathered(chunks)


def _lines(response: http.client.HTTPResponse) -> Iterator[str]:
    while line := response.readline():
        yield line.decode()
