"""A run of COUNT events, an even number, in our store: written, opened to read the event in the middle, or verified.

long_run.py write STORE COUNT
long_run.py read STORE COUNT FIGURES
long_run.py verify STORE COUNT FIGURES
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Callable
from functools import partial

from meter import Figures, process, wall

import lockstep.log.sqlite.store  # noqa: F401 before the measuring, as the peer's modules are
from lockstep.log import verify as log_verify
from lockstep.log.canonical import key
from lockstep.log.model import Event, Kind, RunState, Status, Value
from lockstep.log.store import open_store


def write(path: str, count: int) -> None:
    with open_store(path, create=True) as store:
        appender = store.stream(store.create_run("long", None), "main")
        batch: list[Event] = []
        for pos in range(1, count - 1, 2):
            asked: Value = {"arguments": {"order": pos}}
            digest = key("tool", "get_order", asked)
            batch.append(Event(Kind.BEGIN, pos, pos * 1009, "main", "tool", "get_order", key=digest, body=asked))
            answer: Value = {"order": pos, "note": f"{pos:200}"}
            batch.append(Event(Kind.END, pos + 1, pos * 1009 + 500, "main", Status.OK, of=pos, body=answer))
            if len(batch) >= 100:
                appender.append(batch)
                batch = []
        finish = Event(Kind.FINISH, count, count * 1009, "main", "complete", body={"faults": []})
        appender.append([*batch, finish])
        appender.close(RunState.COMPLETE)


def measured(figures: Figures, act: Callable[[], None]) -> None:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, spent = wall(), process()
    act()
    figures.add("wall", (wall() - began) / 1e3)
    figures.add("process", (process() - spent) / 1e3)
    figures.add("memory", (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024)
    figures.write()


def read(path: str, count: int) -> None:
    with open_store(path) as store:
        run = store.run("long")
        body = run.body(run.streams[0].id, count // 2 + 1)
    if not isinstance(body, dict) or "order" not in body:
        raise ValueError(f"not the event in the middle: {body!r}")


def verify(path: str, count: int) -> None:
    with open_store(path) as store:
        found = log_verify.verify(store.run("long"))
    if not found.consistent or found.events != count - 1:
        raise ValueError(f"not verified: {found}")


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2], int(sys.argv[3]))
    else:
        act = {"read": read, "verify": verify}[sys.argv[1]]
        measured(Figures(sys.argv[4]), partial(act, sys.argv[2], int(sys.argv[3])))
