"""What hiding secrets costs: a scan of 100 kB, and what is added to a call of 1.4 kB (on the writer's thread).

    python bench/hiding.py

Prints microseconds, the best of several rounds. A union of the same patterns in `re` stands beside it.
"""

from __future__ import annotations

import json
import re
import timeit
from typing import Any

from lockstep.log import canonical, tokens
from lockstep.log.names import STEMS, Judge
from lockstep.log.redact import scan
from lockstep.session.pieces import Pieces
from lockstep.session.secrets import Secrets
from lockstep.taps.http.request import asked

_WORDS = "Where is my order? It should have come on Monday, and nobody has said a word about what happens next. "
_TOOL = {
    "type": "function",
    "function": {"name": "get_order", "parameters": {"properties": {"id": {"type": "integer"}}}},
}


def body(size: int) -> bytes:
    """A chat request of about that size, with nothing secret in it."""
    messages: list[Any] = []
    request = {"model": "gpt-4o", "max_tokens": 512, "messages": messages, "tools": [_TOOL], "stream": False}
    while len(json.dumps(request)) < size:
        messages.append({"role": "user", "content": _WORDS * (4 if size < 5000 else 12)})
    return json.dumps(request).encode()


def rows(size: int) -> bytes:
    """JSON of many small fields: each has a name that must be looked at."""
    return json.dumps([{"id": n, "key": f"k{n}", "name": "x", "tokens": 3} for n in range(size // 50)]).encode()


def best(function: Any, *arguments: Any) -> float:
    """Microseconds a call."""
    timer = timeit.Timer(lambda: function(*arguments))
    number = max(1, timer.autorange()[0] // 40)
    return min(timer.repeat(60, number)) / number * 1e6


def main() -> None:
    """Measures and prints."""
    judge = Judge()
    union = re.compile(
        "|".join(f"({pattern})" for _, _, pattern in tokens._TABLE).encode() + b"|(?i:" + b"|".join(STEMS) + b")"
    )
    for name, data in (("a chat", body(100_000)), ("many small fields", rows(100_000)), ("a chat", body(1400))):
        scanned, joined = best(scan, data, judge), best(lambda text: [*union.finditer(text)], data)
        print(f"scan of {name}, {len(data):,} bytes: {scanned:,.1f} µs   (one union in re: {joined:,.1f} µs)")

    secrets = Secrets()
    secrets.know_environment(
        {"OPENAI_API_KEY": "sk-proj-0123456789abcdefghijklmnop", "DB_PASSWORD": "s3cret-of-the-db"}
    )
    headers = [
        ("Host", "127.0.0.1"), ("Accept", "application/json"), ("Content-Type", "application/json"),
        ("User-Agent", "OpenAI/Python 3.0"), ("X-Stainless-Lang", "python"),
    ]  # fmt: skip
    for label, more in (
        ("without a key", []),
        ("with its key", [("Authorization", "Bearer sk-proj-0123456789abcdefghijklmnop")]),
    ):
        text = body(1400)
        what = asked("POST", "http://127.0.0.1:8000/v1/chat/completions", [*headers, *more], text)

        def call(what: Any = what) -> None:
            secrets.hiding.forget_last()
            secrets.asked("model", what.name, what.request, what.key)

        plain = best(canonical.key, "model", what.name, what.key)
        print(f"a call of {len(text):,} bytes {label}: {best(call) - plain:,.1f} µs added")
    pieces = Pieces(secrets)
    chunk = b'data: {"id":"chatcmpl-1","choices":[{"index":0,"delta":{"content":" word"}}]}\n\n'
    print(f"a chunk of {len(chunk)} bytes: {best(pieces.hide, chunk):,.1f} µs")


if __name__ == "__main__":
    main()
