"""docs/format.md says enough: a reader that was written by it alone reads tapes, and finds the same chain and seals."""

import json
import random
from pathlib import Path
from typing import Any

import branch_runs
import forging
import log_runs
import log_values
import msgspec
import native_runs
import pytest
import reader

from lockstep.log.canonical import encode_ordered
from lockstep.log.exchange import export
from lockstep.log.model import Event, Kind
from lockstep.log.store import Store

SECRET = b"0123456789abcdef" * 4


def test_it_shares_no_code_with_lockstep() -> None:
    source = Path(reader.__file__).read_text()
    assert "import lockstep" not in source
    assert "from lockstep" not in source
    assert "msgspec" not in source


@pytest.mark.parametrize("secret", [b"", SECRET])
def test_it_reads_a_tape_as_lockstep_does(
    store: Store, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, secret: bytes
) -> None:
    monkeypatch.setenv("LOCKSTEP_KEY", secret.decode())
    rng = random.Random(11)
    events = log_runs.calls(80, lanes=3)
    bodies = [log_values.value(rng) for _ in events] + [list(log_runs.chat(40))[-1][0].body]
    odd = [msgspec.structs.replace(event, body=body) for event, body in zip(events, bodies, strict=False)]
    log_runs.write(
        store, "odd", [*odd[:-1], msgspec.structs.replace(events[-2], pos=500, body=bodies[-1]), events[-1]], batch=9
    )
    tape = tmp_path / "odd.tape"
    export(str(path), "odd", str(tape))
    [stream] = reader.read(tape, secret)
    ours = store.run("odd")
    assert stream.head == ours.end(1).head
    assert stream.sealed is (True if secret else None)
    for event, fields, body in zip(ours.events(1), stream.events, stream.bodies, strict=True):
        assert fields == [
            int(event.kind), event.pos, event.at, event.lane, event.what, event.name, event.of, event.tick, event.key,
        ]  # fmt: skip
        assert alike(body, event.body)


def test_it_reads_branches_as_lockstep_does(store: Store, path: Path, tmp_path: Path) -> None:
    log_runs.write(store, "refund", branch_runs.LAPPING)
    answers = [
        Event(Kind.END, 16, 20, "main/t.2", "ok", of=6), Event(Kind.END, 17, 21, "main/t.1", "ok", of=5, body="anew"),
    ]  # fmt: skip
    branch_runs.fork(store, "refund", "try-2", "main", 14, answers)
    branch_runs.fork(store, "refund", "try-3", "try-2", 16, branch_runs.call(18))
    tape = tmp_path / "refund.tape"
    export(str(path), "refund", str(tape))
    branches, streams = reader.read_all(tape)
    assert [branch.name for branch in branches] == ["main", "try-2", "try-3"]
    for branch in branches:
        ours = store.run("refund", branch.name)
        told = [
            (seq, [int(event.kind), event.pos, event.at, event.lane, event.what, event.name, event.of])
            for seq, event in ours.heads(ours.main)
        ]
        assert [(seq, fields[:7]) for seq, fields in reader.events_of(branches, streams, branch)] == told


def alike(theirs: Any, value: Any) -> bool:
    match theirs:
        case reader.JsonText():
            return alike(theirs.tree, json.loads(value))
        case dict():
            return list(theirs) == list(value) and all(alike(item, value[name]) for name, item in theirs.items())
        case list():
            return len(theirs) == len(value) and all(map(alike, theirs, value))
        case reader.Extension(code=1, data=data):
            return int.from_bytes(data, "big", signed=True) == value
        case reader.Extension(code=2, data=data):
            return data.decode("utf-8", "surrogatepass") == value
        case reader.Extension(code=3, data=data):
            flat = reader.decode(data)
            pairs = zip(flat[::2], flat[1::2], value.items(), strict=True)
            return all(alike(name, key) and alike(item, own) for name, item, (key, own) in pairs)
    return log_values.same(theirs, value)


def test_it_finds_a_change(store: Store, path: Path, tmp_path: Path) -> None:
    log_runs.write(store, "refund", log_runs.calls(5), batch=5)
    tape = tmp_path / "t"
    export(str(path), "refund", str(tape))
    reader.read(tape)
    with forging.file(tape) as connection:
        connection.execute("UPDATE run SET started=started+1")
    with pytest.raises(AssertionError):
        reader.read(tape)


def test_its_encoding_is_the_shortest() -> None:
    rng = random.Random(3)
    for _ in range(400):
        value = rng.choice([rng.randrange(-(2**63), 2**64) >> rng.randrange(64), log_values.value(rng, 2)])
        try:
            encoded = encode_ordered(value)
        except (OverflowError, UnicodeEncodeError):
            continue  # what msgpack cannot say has an extension of ours
        assert reader.encode(value) == encoded
        assert log_values.same(reader.decode(encoded), value)


def test_it_reads_the_states_of_a_native_run_as_lockstep_does(store: Store, path: Path, tmp_path: Path) -> None:
    thread = native_runs.refund(store)
    tape = tmp_path / "thread.tape"
    export(str(path), native_runs.RUN, str(tape))
    [stream] = reader.read(tape)
    found = reader.states(stream.events, stream.bodies)
    assert {pos: state for pos, state in found.items() if pos} == thread.states
    assert [event[reader.POS] for event in stream.events] == list(range(1, len(stream.events) + 1))
    assert stream.head == store.run(native_runs.RUN).end(1).head
