"""The agent of a scenario as a program that drives a browser: its model and its tools are what a page asks for.

A tool that reads is a GET, one that acts a POST, as on any site. What the agent has heard it shows in the page, and
looks at it there: that is where a run that was recorded by a tap has it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable, Generator
from typing import Any

from lockstep.conformance import outside, plain_loop
from lockstep.conformance.plain_loop import Ask, ModelFailed
from lockstep.conformance.scenario import Tool
from lockstep.conformance.subject import Work
from lockstep.conformance.world import tokens

# In the page. A stream's pieces are told by a function of the agent's; of one that breaks off a browser keeps what it
# has handed out by then and drops the rest, so nothing of that is used.
_ASK = """async ([url, key, body]) => {
    const answer = await fetch(url, {
        method: "POST", body: JSON.stringify(body),
        headers: {"content-type": "application/json", authorization: `Bearer ${key}`},
    });
    if (!answer.ok) return {status: answer.status};
    if (!body.stream) return {message: (await answer.json()).choices[0].message};
    const lines = [], reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let left = "";
    for (;;) {
        const {done, value, broken} = await reader.read().catch(() => ({broken: true}));
        if (broken) return {lines: []};
        const parts = (left + (value || "")).split("\\n");
        left = parts.pop();
        lines.push(...parts);
        if (done) break;
    }
    for (const line of lines) await window.heard(line);
    return {lines};
}"""
_USE = """async (calls) => Promise.all(calls.map(async ([url, reads, argument]) => {
    const answer = reads
        ? await fetch(`${url}?argument=${encodeURIComponent(argument)}`, {cache: "no-store"})
        : await fetch(url, {
            method: "POST", body: JSON.stringify({argument}), headers: {"content-type": "application/json"},
        });
    return answer.json();
}))"""
_SHOW = "([word, title]) => { document.title = title; }"

type Run = Callable[[Any], list[str]]
type ARun = Callable[[Any], Awaitable[list[str]]]

# What the agent wants of its page: (the script, its argument), answered with what the script gave.
type Script = tuple[str, Any]


def agent(work: Work, pieces: list[str]) -> Run:
    """The agent, as a function of a context of the sync API."""

    def run(context: Any) -> list[str]:
        page = context.new_page()
        page.expose_function("heard", _hear(pieces))
        page.goto(f"{work.url}/")
        wishes = _wishes(work)
        answer: Any = None
        while True:
            try:
                answer = page.evaluate(*wishes.send(answer))
            except StopIteration as end:
                page.title()
                return end.value  # type: ignore[no-any-return]

    return run


def aagent(work: Work, pieces: list[str]) -> ARun:
    """The same, of the async API."""

    async def run(context: Any) -> list[str]:
        page = await context.new_page()
        await page.expose_function("heard", _hear(pieces))
        await page.goto(f"{work.url}/")
        wishes = _wishes(work)
        answer: Any = None
        while True:
            try:
                answer = await page.evaluate(*wishes.send(answer))
            except StopIteration as end:
                await page.title()
                return end.value  # type: ignore[no-any-return]

    return run


def tool_url(work: Work, name: str) -> str:
    return f"{work.url}/tools/{name}"


def _hear(pieces: list[str]) -> Callable[[str], None]:
    def heard(line: str) -> None:
        part = plain_loop.chunk(line)
        if part is not None and (text := plain_loop.piece(part)):
            pieces.append(text)

    return heard


def _wishes(work: Work) -> Generator[Script, Any, list[str]]:
    """The agent without I/O: yields scripts, and is sent what they gave."""
    tools = {tool.name: tool for tool in work.scenario.tools}
    wishes = plain_loop.converse(work.scenario)
    answer: Any = None
    while True:
        try:
            wish = wishes.send(answer)
        except StopIteration as end:
            words: list[str] = end.value
            for word in words:
                # As a repetition, which it is: each answer is the outcome of the one effect that gave it.
                yield _SHOW, [word, " ".join(f"~{token}" for token in tokens(word))]
            return words
        if isinstance(wish, Ask):
            answer = yield from _ask(work, wish)
        else:
            calls = [[tool_url(work, name), tools[name].effect == "read", argument] for name, argument in wish.calls]
            told = yield _USE, calls
            answer = [_said(tools[name], each) for (name, _), each in zip(wish.calls, told, strict=True)]


def _ask(work: Work, wish: Ask) -> Generator[Script, Any, dict[str, Any]]:
    """The model's message. Tries again where the model is not to be had, and raises ModelFailed in the end."""
    status = 0
    body = plain_loop.body(work.scenario, wish.messages)
    for _ in range(plain_loop.TRIES):
        told = yield _ASK, [f"{work.url}/v1/chat/completions", work.scenario.key, body]
        if "lines" in told:
            return plain_loop.gathered([part for line in told["lines"] if (part := plain_loop.chunk(line)) is not None])
        if "message" in told:
            return told["message"]  # type: ignore[no-any-return]
        status = told["status"]
        if status < 500:
            break
    raise ModelFailed(str(status))


def _said(tool: Tool, told: dict[str, Any]) -> str:
    if told.get("kill"):
        os.kill(os.getpid(), signal.SIGKILL)
    if "error" in told:
        return f"error: {tool.name} {told['error']}"
    return str(outside.Opaque(told["answer"]) if told.get("object") else told["answer"])
