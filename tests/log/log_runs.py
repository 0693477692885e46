"""Runs to test with: events as a session makes them."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from log_values import text

from lockstep.log.canonical import key
from lockstep.log.model import Event, Kind, RunState, Status
from lockstep.log.store import RunReader, Store


def calls(count: int, *, seed: int = 1, lanes: int = 1, size: int = 300) -> list[Event]:
    """START, `count` model calls one after another, FINISH."""
    rng = random.Random(seed)
    system = text(rng, 900)
    events = [Event(Kind.START, 1, 0, "main", body={"argv": ["agent.py"]})]
    pos = 2
    for number in range(count):
        lane = "main" if lanes == 1 else f"main/task.{number % lanes + 1}"
        request = {"model": "gpt-4o", "messages": [system, text(rng, size)], "n": number}
        body: Any = {"request": request, "site": f"agent.py:{number} in ask"}
        name = key("model", "gpt-4o", request)
        events.append(Event(Kind.BEGIN, pos, pos * 1000, lane, "model", "gpt-4o", key=name, body=body))
        events.append(Event(Kind.END, pos + 1, pos * 1000 + 700, lane, Status.OK, of=pos, body=text(rng, size)))
        pos += 2
    events.append(Event(Kind.FINISH, pos, pos * 1000, "main", "complete", body={"exit": 0}))
    return events


def chat(turns: int, *, seed: int = 1, size: int = 1000) -> Iterator[list[Event]]:
    """A chat that sends its whole history with each call, one batch for each turn."""
    rng = random.Random(seed)
    messages: list[Any] = []
    for turn in range(turns):
        messages.append({"role": "user", "content": text(rng, size)})
        pos = 2 * turn + 1
        request = {"model": "gpt-4o", "messages": list(messages)}
        answer = {"role": "assistant", "content": text(rng, size)}
        yield [
            Event(Kind.BEGIN, pos, pos, "main", "model", "gpt-4o", body={"request": request}),
            Event(Kind.END, pos + 1, pos + 1, "main", Status.OK, of=pos, body=answer),
        ]
        messages.append(answer)


def write(store: Store, name: str, events: Sequence[Event], *, batch: int = 1) -> RunReader:
    """Writes a whole run, `batch` events a commit."""
    run = store.create_run(name, {"argv": [name]})
    appender = store.stream(run, "main")
    for start in range(0, len(events), batch):
        appender.append(events[start : start + batch])
    last = events[-1]
    appender.close(RunState(last.what) if last.kind is Kind.FINISH else None)
    return store.run(run.name)
