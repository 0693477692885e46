"""Branches of random runs: whatever overlaps, nests and is stored out of order reads as the format says."""

import random
from pathlib import Path

import msgspec
import pytest
import reader

from lockstep.log import cut
from lockstep.log.exchange import export
from lockstep.log.model import Event, Kind, RunState
from lockstep.log.store import Store
from lockstep.log.timeline import Timeline
from lockstep.log.verify import verify


def went_on(rng: random.Random, pos: int, flying: dict[int, bool], count: int) -> list[Event]:
    """Events from a position on: calls that begin, nest, print, are answered in pieces and end, in any order. `flying`:
    what is in flight, and whether it is nested."""
    events = []
    for _ in range(count):
        pos += rng.randrange(1, 3)
        what = rng.choice(["begin", "begin", "nest", "part", "end", "end", "print", "step", "read"])
        of = rng.choice(list(flying)) if flying else 0
        lane = f"main/t.{rng.randrange(3)}"
        if what == "begin" or not flying:
            kind = rng.choice(["tool", "model", "process", "human"])
            events.append(Event(Kind.BEGIN, pos, pos, lane, kind, "call", body={"request": pos}))
            flying[pos] = False
        elif what == "nest":
            events.append(Event(Kind.BEGIN, pos, pos, lane, "http", "inner", of=of, body={"request": pos}))
            flying[pos] = True
        elif what == "part":
            events.append(Event(Kind.PART, pos, pos, lane, of=of, body=f"piece {pos}"))
        elif what == "end":
            events.append(Event(Kind.END, pos, pos, lane, "ok", of=of, body=pos))
            del flying[of]
        elif what == "print":
            events.append(Event(Kind.OUTPUT, pos, pos, lane, "stdout", of=rng.choice([0, of]), body=f"line {pos}"))
        elif what == "step":
            events.append(Event(Kind.STEP, pos, pos, lane, name="named", body=pos))
        else:
            events.append(Event(Kind.READS, pos, pos, lane, "time.time", of=of, body={"first": 0, "values": b"\0\0"}))
    return events


def stored_as_threads_do(rng: random.Random, events: list[Event]) -> list[list[Event]]:
    """In batches, some events a little late; no call is stored after what came of it."""
    late = sorted(events, key=lambda event: event.pos + (rng.choice([0, 0, 3]) if event.kind is not Kind.BEGIN else 0))
    return [late[start : start + 4] for start in range(0, len(late), 4)]


@pytest.mark.parametrize("seed", range(16))
def test_a_branch_reads_as_the_format_says(store: Store, path: Path, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    ordered = seed % 2 == 0
    run = store.create_run("random", {}).name
    events = [Event(Kind.START, 1, 1, "main", body={}), *went_on(rng, 1, {}, 120)]
    appender = store.stream(run, "main")
    for batch in [[event] for event in events] if ordered else stored_as_threads_do(rng, events):
        appender.append(batch)
    appender.close(None)
    names = ["main"]
    for number in range(6):
        parent = rng.choice(names)
        seen = store.run(run, parent)
        heads = [event for _, event in seen.heads(seen.main)]
        pos = rng.choice(heads).pos
        made = store.create_branch(run, f"b{number}", parent, pos)
        [at] = cut.cuts(seen.heads(seen.main), [pos])
        own = went_on(rng, pos + 1, {call.pos: False for call in at.flying}, rng.randrange(30))
        appender = store.stream(run, "main", branch=made.name)
        fork = Event(Kind.FORK, pos + 1, pos, "main", name=":1", body={"edits": {}})
        for batch in [[fork], *([[event] for event in own] if ordered else stored_as_threads_do(rng, own))]:
            appender.append(batch)
        if rng.random() < 0.5:
            last = max([pos + 1, *(event.pos for event in own)]) + 1
            appender.append([Event(Kind.FINISH, last, last, "main", "complete", body={"end": None})])
            appender.close(RunState.COMPLETE)
        else:
            appender.close(None)
        names.append(made.name)
    assert [str(problem) for problem in verify(store.run(run)).problems] == []
    tape = tmp_path / "random.tape"
    export(str(path), run, str(tape))
    branches, streams = reader.read_all(tape)
    for branch in branches:
        ours = store.run(run, branch.name)
        told = [
            (seq, [int(event.kind), event.pos, event.at, event.lane, event.what, event.name, event.of])
            for seq, event in ours.heads(ours.main)
        ]
        assert told == [(seq, fields[:7]) for seq, fields in reader.events_of(branches, streams, branch)]
        steps = Timeline(ours).steps
        assert ours.info.steps == len(steps) - 2
        for step in rng.sample(steps, min(8, len(steps))):
            found = Timeline(ours).step(step.number)
            assert msgspec.structs.replace(found, before=0) == msgspec.structs.replace(step, before=0)
