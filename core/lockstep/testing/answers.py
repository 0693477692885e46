"""What a test says to the loopback provider: the request it gets and the answer it gives."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec


class Request(msgspec.Struct, frozen=True):
    """One request as it arrived.

    number   counts the requests of this provider, from 1, in the order in which they were complete
    target   path and query, as sent
    headers  in the order and with the case in which they were sent
    json     the decoded body, None where it is not JSON
    """

    number: int
    method: str
    target: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    json: Any = None

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))

    def header(self, name: str, default: str = "") -> str:
        """The first header of that name, in any case."""
        wanted = name.lower()
        return next((value for key, value in self.headers if key.lower() == wanted), default)

    @property
    def prompt(self) -> str:
        """The text of the last message, in any of the three model APIs; "" for other requests."""
        if not isinstance(self.json, dict):
            return ""
        messages = self.json.get("messages", self.json.get("input", ""))
        if isinstance(messages, list):
            last = messages[-1] if messages else ""
            messages = last.get("content") or last.get("output") or "" if isinstance(last, dict) else last
        return _text(messages)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return " ".join(filter(None, (_text(part) for part in content)))
    if isinstance(content, dict):
        return _text(content.get("text", content.get("content", "")))
    return ""


class ToolCall(msgspec.Struct, frozen=True):
    """A tool that the model wants to be called. Without an `id` it gets one of its own."""

    name: str
    arguments: dict[str, Any] = {}
    id: str = ""


class Answer(msgspec.Struct, frozen=True):
    """What the model says, and how it travels. Times are in seconds.

    text     the message; in an error its wording
    calls    tool calls after the text
    status   400 and above is an error in the shape of the API that was asked
    body     sent as it is, instead of what the API would send; a tuple goes out chunk by chunk
    headers  added to the ones of the API
    delay    before the status line
    lag      between the head and the first byte of the body
    gap      between the events of a stream
    cut      the connection breaks after so many events of a stream (of a plain body: 0, after the
             head); -1 is before the status line
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    status: int = 200
    body: bytes | tuple[bytes, ...] | None = None
    headers: tuple[tuple[str, str], ...] = ()
    delay: float = 0.0
    lag: float = 0.0
    gap: float = 0.0
    cut: int | None = None


type Scripted = Answer | str | None
type Script = Sequence[Scripted] | Callable[[Request], Scripted]

_WORDS = ("amber", "basil", "cedar", "delta", "ember", "fjord", "grove", "heron", "islet", "juniper", "kelp", "lotus")


def default_answer(request: Request, seed: int) -> Answer:
    """A short text with the request's number in it, so that equal requests get different answers."""
    draw = random.Random(f"{seed}/text/{request.number}")
    return Answer(f"answer {request.number}: {' '.join(draw.choices(_WORDS, k=6))}")


def scripted_answer(script: Script, request: Request, turn: int) -> Answer | None:
    """What the script has for this request, None where it leaves it open. A sequence is used up by
    model calls in order of arrival: `turn` counts them from 0 and is -1 for other requests."""
    if callable(script):
        said = script(request)
    else:
        said = script[turn] if 0 <= turn < len(script) else None
    return Answer(said) if isinstance(said, str) else said


def paced(answer: Answer, request: Request, seed: int, jitter: tuple[float, float]) -> Answer:
    """The answer with its times: jitter is drawn by request number; the request itself may ask for
    delay, lag, gap, cut and status, by headers (`x-delay: 0.02`) or in the query (`?delay=0.02`), so
    that a program in another process can be slowed or cut off without a script."""
    low, high = jitter
    drawn = random.Random(f"{seed}/jitter/{request.number}").uniform(low, high) if high > 0 else 0.0
    query = request.query
    asked: dict[str, Any] = {}
    for name, kind in (("delay", float), ("lag", float), ("gap", float), ("cut", int), ("status", int)):
        if value := request.header(f"x-{name}") or query.get(name, ""):
            asked[name] = kind(value)
    asked.setdefault("delay", answer.delay + drawn)
    return msgspec.structs.replace(answer, **asked)


def tokens(value: Any) -> int:
    """A plausible token count: words of all text in a JSON value."""
    if isinstance(value, str):
        return len(value.split())
    if isinstance(value, list):
        return sum(map(tokens, value))
    if isinstance(value, dict):
        return sum(map(tokens, value.values()))
    return 0


def pieces(text: str) -> list[str]:
    """The text as a model streams it: a word at a time, each with the space before it."""
    words = text.split(" ")
    return [word if n == 0 else f" {word}" for n, word in enumerate(words)] if text else []


def identity(prefix: str, request: Request, seed: int, part: int = 0) -> str:
    """An id in the API's style, the same for the same seed and request number."""
    draw = random.Random(f"{seed}/{prefix}/{request.number}/{part}")
    return prefix + "".join(draw.choices("0123456789abcdefghijkmnpqrstuvwxyz", k=24))


def encode(value: Any) -> bytes:
    return msgspec.json.encode(value)
