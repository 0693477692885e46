"""Runs with branches, written event by event."""

from lockstep.log.model import Event, Kind, RunState, Status
from lockstep.log.store import RunReader, Store

# Two calls that overlap, with a nested one each; the program has begun to read the second.
LAPPING = [
    Event(Kind.LANE, 1, 0, "", "main", "main"),
    Event(Kind.START, 2, 1, "main", body={"argv": ["a.py"]}),
    Event(Kind.BEGIN, 3, 2, "main", "tool", "plan", body={"request": "plan"}),
    Event(Kind.END, 4, 3, "main", Status.OK, of=3, body="planned"),
    Event(Kind.BEGIN, 5, 4, "main/t.1", "tool", "slow", body={"request": "slow"}),
    Event(Kind.BEGIN, 6, 5, "main/t.2", "model", "gpt", body={"request": "gpt"}),
    Event(Kind.BEGIN, 7, 6, "main/t.1", "http", "inner", of=5, body={"request": "inner"}),
    Event(Kind.PART, 8, 7, "main/t.1", of=7, body="inner piece"),
    Event(Kind.OUTPUT, 9, 8, "main/t.1", "stdout", of=5, body="slow prints"),
    Event(Kind.PART, 10, 9, "main/t.2", of=6, body="Hel"),
    Event(Kind.OUTPUT, 11, 10, "main/t.2", "stdout", of=6, body="gpt prints"),
    Event(Kind.OUTPUT, 12, 11, "main", "stdout", body="main prints"),
    Event(Kind.BEGIN, 13, 12, "main", "tool", "third", body={"request": "third"}),
    Event(Kind.END, 14, 13, "main", Status.OK, of=13, body="3"),
    Event(Kind.END, 15, 14, "main/t.1", Status.OK, of=7, body="inner"),
    Event(Kind.PART, 16, 15, "main/t.2", of=6, body="lo"),
    Event(Kind.END, 17, 16, "main/t.2", Status.OK, of=6),
    Event(Kind.END, 18, 17, "main/t.1", Status.OK, of=5, body="slow"),
    Event(Kind.FINISH, 19, 18, "main", "complete", body={"end": {"exit": 0}}),
]


def fork(
    store: Store, run: str, name: str, parent: str, pos: int, events: list[Event], state: str = "complete"
) -> RunReader:
    """A branch as the engine makes one: its FORK, then events of its own."""
    made = store.create_branch(run, name, parent, pos)
    appender = store.stream(run, "main", branch=made.name)
    appender.append([Event(Kind.FORK, pos + 1, 0, "main", name=":1", body={"edits": {}, "live": [], "tail": ""})])
    appender.append(events)
    if state:
        last = max([pos + 1, *(event.pos for event in events)])
        appender.append([Event(Kind.FINISH, last + 1, 99, "main", state, body={"end": None})])
    appender.close(RunState(state) if state else None)
    return store.run(run, made.name)


def seen(reader: RunReader) -> list[int]:
    return [event.pos for _, event in reader.heads(reader.streams[0].id)]


def call(pos: int, name: str = "again", value: str = "new") -> list[Event]:
    return [
        Event(Kind.BEGIN, pos, pos, "main", "tool", name, body={"request": name}),
        Event(Kind.END, pos + 1, pos + 1, "main", Status.OK, "edited", of=pos, body=value),
    ]
