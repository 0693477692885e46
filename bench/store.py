"""What the log costs: bytes and microseconds an event, for the loads that runs are made of.

    python bench/store.py [--scale 0.1]

Each load is written one event a commit into a store of its own, as the writer's thread does, and then read.
Text is runs of words from a small vocabulary: it compresses better than an agent's; the hex load is the hard
case. `stored` is the bytes of rows, `file` the whole store file, both per call (two events).
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from lockstep.log.canonical import digest, key
from lockstep.log.model import Event, Kind, RunState, Status
from lockstep.log.store import open_store
from lockstep.log.verify import verify

type Load = Callable[[int, random.Random], Iterator[list[Event]]]


def words(rng: random.Random, size: int) -> str:
    return " ".join(f"{rng.randrange(4000):x}" for _ in range(size // 4))


class Script:
    """Makes the two events of a call."""

    def __init__(self) -> None:
        self.pos = 0

    def call(self, kind: str, name: str, request: Any, answer: Any, parts: tuple[str, ...] = ()) -> list[Event]:
        begin = self.pos + 1
        at = begin * 1_000_003
        body = {"request": request, "site": "agent.py:12 in ask"}
        events = [Event(Kind.BEGIN, begin, at, "main", kind, name, key=key(kind, name, request), body=body)]
        for index, part in enumerate(parts):
            events.append(Event(Kind.PART, begin + 1 + index, at + index * 20_011, "main", of=begin, body=part))
        self.pos = begin + 1 + len(parts)
        events.append(Event(Kind.END, self.pos, at + 900_001, "main", Status.OK, of=begin, body=answer))
        return events


def model_calls(count: int, rng: random.Random) -> Iterator[list[Event]]:
    script = Script()
    system = words(rng, 900)
    for _ in range(count):
        messages = [{"role": "system", "content": system}, {"role": "user", "content": words(rng, 300)}]
        request = {"model": "gpt-4o", "messages": messages, "temperature": 0.2}
        yield script.call("model", "gpt-4o", request, {"content": words(rng, 200), "tokens": rng.randrange(900)})


def growing_chat(count: int, rng: random.Random) -> Iterator[list[Event]]:
    script = Script()
    messages: list[Any] = []
    for _ in range(count):
        messages.append({"role": "user", "content": words(rng, 1000)})
        body = json.dumps({"model": "gpt-4o", "messages": messages}, separators=(",", ":")).encode()
        answer = {"role": "assistant", "content": words(rng, 1000)}
        yield script.call("http", "POST /v1/chat", {"method": "POST", "body": body}, answer)
        messages.append(answer)


def tool_text(count: int, rng: random.Random) -> Iterator[list[Event]]:
    script = Script()
    for number in range(count):
        yield script.call("tool", "get_order", {"id": number}, words(rng, 200))


def tool_hex(count: int, rng: random.Random) -> Iterator[list[Event]]:
    script = Script()
    for number in range(count):
        yield script.call("tool", "get_order", {"id": number}, rng.randbytes(100).hex())


def streams(count: int, rng: random.Random) -> Iterator[list[Event]]:
    script = Script()
    for _ in range(count):
        chunk = '{"id":"chatcmpl-1","object":"chat.completion.chunk","choices":[{"delta":{"content":"%s "}}]}'
        parts = tuple(f"data: {chunk % words(rng, 5)}\n\n" for _ in range(300))
        yield script.call("model", "gpt-4o", {"stream": True, "prompt": words(rng, 300)}, None, parts)


LOADS: tuple[tuple[str, Load, int], ...] = (
    ("model call, 1.2 kB request", model_calls, 2000),
    ("model call, few", model_calls, 200),
    ("growing chat as JSON, 2 x 1 kB", growing_chat, 300),
    ("tool call, 200 B text", tool_text, 5000),
    ("tool call, 200 B hex", tool_hex, 5000),
    ("stream of 300 chunks", streams, 20),
)


def run(title: str, load: Load, count: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        with open_store(path, create=True) as store:
            appender = store.stream(store.create_run("bench", None), "main")
            events = 0
            spent = cpu = 0.0
            for batch in load(count, random.Random(1)):
                began, began_cpu = time.perf_counter(), time.process_time()
                for event in batch:
                    appender.append([event])
                spent += time.perf_counter() - began
                cpu += time.process_time() - began_cpu
                events += len(batch)
            appender.close(RunState.FAILED)
        began = time.perf_counter()
        with open_store(path) as store:
            (info,) = store.runs()
            listed = time.perf_counter() - began
            reader = store.run("bench")
            began = time.perf_counter()
            reader.body(info.streams[0].id, events // 2 & ~1)
            middle = time.perf_counter() - began
            began = time.perf_counter()
            for _ in reader.heads(info.streams[0].id):
                pass
            heads = time.perf_counter() - began
            began = time.perf_counter()
            verify(reader)
            checked = time.perf_counter() - began
        print(
            f"{title:<32}{count:>6}{info.size / count:>9.0f}{path.stat().st_size / count:>8.0f}"
            f"{spent / events * 1e6:>9.0f}{cpu / events * 1e6:>8.0f}"
            f"{listed * 1e3:>8.1f}{middle * 1e3:>8.1f}{heads * 1e3:>8.1f}{checked * 1e3:>9.0f}"
        )


def hot() -> None:
    """What the agent's own thread pays: the match key of a request, and the digest of an outcome."""
    rng = random.Random(1)
    for size in (1000, 5000):
        request = {"model": "gpt-4o", "messages": [{"role": "user", "content": words(rng, size)}], "n": 1}
        print(f"key of {size} B: {each(partial(key, 'model', 'gpt-4o', request)):.1f} µs")
        print(f"digest of {size} B: {each(partial(digest, request)):.1f} µs")


def each(function: Callable[[], Any], times: int = 5000) -> float:
    began = time.perf_counter()
    for _ in range(times):
        function()
    return (time.perf_counter() - began) / times * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of calls (default 1)")
    scale = parser.parse_args().scale
    columns = f"{'stored':>9}{'file':>8}{'µs/event':>9}{'cpu':>8}{'list ms':>8}{'n/2':>8}{'heads':>8}{'verify':>9}"
    print(f"{'load':<32}{'calls':>6}{columns}")
    for title, load, count in LOADS:
        run(title, load, max(1, int(count * scale)))
    hot()


if __name__ == "__main__":
    main()
