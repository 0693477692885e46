"""The calls whose storage is measured, as pairs of a request and an answer: the same for both tools."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

_LETTERS = "etaoinshrdlucmfwypvbgkjqxz"


def _vocabulary() -> list[str]:
    rng = random.Random(7)
    return ["".join(rng.choices(_LETTERS, range(26, 0, -1), k=rng.randint(2, 9))) for _ in range(2000)]


_WORDS = _vocabulary()
_WEIGHTS = [1 / (rank + 2) for rank in range(len(_WORDS))]  # as language has it, few words make most of a text


def prose(rng: random.Random, size: int) -> str:
    """About so many characters."""
    return " ".join(rng.choices(_WORDS, _WEIGHTS, k=size // 6))


type Call = tuple[bytes, bytes]


def calls(count: int) -> Iterator[Call]:
    """Requests of about 1.4 kB that share their system prompt, and answers of about 0.6 kB."""
    rng = random.Random(1)
    system = {"role": "system", "content": prose(rng, 900)}
    for _ in range(count):
        messages = [system, {"role": "user", "content": prose(rng, 330)}]
        yield _json({"model": "gpt-4o", "messages": messages, "temperature": 0.2}), _answer(rng, prose(rng, 200))


def chat(count: int) -> Iterator[Call]:
    """A chat that grows by 2 kB with each call, and is sent whole."""
    rng = random.Random(2)
    messages: list[dict[str, Any]] = []
    for _ in range(count):
        messages.append({"role": "user", "content": prose(rng, 1000)})
        text = prose(rng, 1000)
        yield _json({"model": "gpt-4o", "messages": messages}), _answer(rng, text)
        messages.append({"role": "assistant", "content": text})


LOADS = {"calls": calls, "chat": chat}


def _answer(rng: random.Random, text: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": rng.randrange(900), "completion_tokens": rng.randrange(90)}
    return _json({"object": "chat.completion", "model": "gpt-4o", "choices": [choice], "usage": usage})


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
