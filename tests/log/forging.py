"""A forger's tools: changes to a store with the chain, the totals and the end made anew, as somebody would who knows
the format and has no key."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from lockstep.log import chain
from lockstep.log.model import Event, Kind
from lockstep.log.pack import Packer
from lockstep.log.sqlite import rows, schema
from lockstep.log.sqlite.read import SqliteRun
from lockstep.log.steps import StepCount
from lockstep.log.store import open_store

NOTE = Event(Kind.STEP, 10_000, 5, "main", name="put in")


@contextmanager
def file(path: Path) -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA synchronous=OFF")
    try:
        yield connection
        connection.commit()
    finally:
        connection.close()


def body(event: Event, value: Any) -> Event:
    return msgspec.structs.replace(event, body=value)


def at(event: Event, nanoseconds: int) -> Event:
    return msgspec.structs.replace(event, at=nanoseconds)


def rewrite(
    connection: sqlite3.Connection,
    stream: int,
    change: Callable[[int, Event], Event | None],
    extra: Event | None = None,
) -> None:
    """Stores a stream again with changed events, its chain and totals right, and its last event's state."""
    [(path,)] = [(row[2],) for row in connection.execute("PRAGMA database_list") if row[1] == "main"]
    with open_store(path) as opened:
        reader = opened.run(opened.runs()[0].name)
        assert isinstance(reader, SqliteRun)
        events = [changed for n, e in enumerate(reader.events(stream)) if (changed := change(n, e)) is not None]
    if extra is not None:
        events.insert(len(events) - 1, extra)
    _store(connection, stream, events)


def restart(connection: sqlite3.Connection, stream: int, meta: bytes | None = None) -> None:
    """Gives the run another start, or meta."""
    if meta is not None:
        connection.execute("UPDATE run SET meta=?", (meta,))
    else:
        connection.execute("UPDATE run SET started=started+1")
    connection.commit()
    rewrite(connection, stream, lambda _, event: event)


def _store(connection: sqlite3.Connection, stream: int, events: list[Event]) -> None:
    [(started, meta, process, parent, base)] = connection.execute(
        "SELECT run.started, run.meta, stream.process, branch.parent, stream.base FROM stream"
        " JOIN branch ON branch.id=stream.branch JOIN run ON run.id=branch.run WHERE stream.id=?",
        (stream,),
    ).fetchall()
    base = head = base if parent else chain.base(started, meta, process)
    packer, count = Packer(), StepCount()
    bodies: list[bytes] = []
    top = late = 0
    for seq, event in enumerate(events):
        packed, code = packer.pack(event.body) if event.body is not None else (b"", b"")
        head = chain.link(head, seq, event, code)
        count.feed(event)
        late += event.pos < top
        top = max(top, event.pos)
        bodies.append(packed)
    blobs, _ = packer.take()
    cols, stored = rows.make(events, bodies, blobs, rows.Squeezer())
    keys = (schema.first_key(stream), schema.last_key(stream))
    connection.execute("DELETE FROM segment WHERE id BETWEEN ? AND ?", keys)
    connection.execute(
        "INSERT INTO segment VALUES (?,?,?,?,?,?,?,?,?)",
        (keys[0], len(events), count.steps, len(cols) + len(stored), late, 0, head, cols, stored),
    )
    state = schema.STATES[str(events[-1].what)] if events[-1].kind is Kind.FINISH else 0
    connection.execute(
        "UPDATE stream SET base=?, events=?, steps=?, size=?, head=?, state=? WHERE id=?",
        (
            base,
            len(events),
            count.steps,
            len(cols) + len(stored),
            head,
            state,
            stream,
        ),
    )
