"""The test vectors of docs/format.md: what is printed there is what the code makes."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lockstep.log import canonical, chain, checkpoints, columns, cut, merkle, native, seal, steps
from lockstep.log.model import Event, Kind
from lockstep.log.pack import Packer, encode_plain
from lockstep.log.sqlite import schema
from lockstep.log.unpack import Coder, Expander
from lockstep.session import engine, reads

PAGE = (Path(__file__).parents[2] / "docs" / "format.md").read_text()
SEPARATOR = " | "


def block(name: str) -> str:
    """The fenced block that is marked `vectors NAME`."""
    found = re.findall(rf"^```\w+ vectors {name}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(found) == 1, f"docs/format.md has {len(found)} blocks of {name}"
    return str(found[0])


def rows(name: str, columns_: int) -> list[list[str]]:
    found = [line.split(SEPARATOR) for line in block(name).splitlines()]
    assert found
    assert all(len(row) == columns_ for row in found)
    return found


def value(text: str) -> Any:
    """A value as the page writes it: a Python expression of plain data."""
    return eval(text, {"__builtins__": {}, "float": float})


class Made:
    """The blobs and leaves that a packer has made."""

    def __init__(self) -> None:
        self.blobs: list[bytes] = []
        self.bigs: list[bytes] = []

    def blob(self, number: int) -> bytes:
        return self.blobs[number]

    def big(self, number: int) -> bytes:
        return self.bigs[number]


@pytest.mark.parametrize(("text", "encoded", "digest"), rows("values", 3))
def test_values_have_their_canonical_bytes_and_digests(text: str, encoded: str, digest: str) -> None:
    made = canonical.canonical(value(text)).hex()
    assert encoded == (made if len(made) <= 64 else "-")
    assert canonical.digest(value(text)).hex() == digest


@pytest.mark.parametrize(("kind", "name", "text", "key"), rows("keys", 4))
def test_calls_have_their_match_keys(kind: str, name: str, text: str, key: str) -> None:
    assert canonical.key(kind, name, value(text)).hex() == key


@pytest.mark.parametrize(("text", "packed"), rows("reads", 2))
def test_reads_are_packed_as_printed(text: str, packed: str) -> None:
    assert reads.pack(value(text)).hex() == packed
    assert reads.unpack(bytes.fromhex(packed)) == value(text)


def test_values_are_packed_as_printed_and_share_what_was_stored() -> None:
    packer, made = Packer(), Made()
    for text, packed, blobs, bigs, code in rows("packed", 5):
        bytes_, code_ = packer.pack(value(text))
        new_blobs, new_bigs = packer.take()
        made.blobs += new_blobs
        made.bigs += [data for _, data in new_bigs]
        assert (bytes_.hex(), len(new_blobs), len(new_bigs)) == (packed, int(blobs), int(bigs)), text
        assert code_.hex() == code, text
        assert Expander(made).expand(bytes.fromhex(packed)) == value(text)
        assert Coder(made).code(bytes.fromhex(packed)).hex() == code, text


def test_a_chain_has_its_heads_and_columns() -> None:
    told = json.loads(block("chain"))
    meta = bytes.fromhex(told["meta"])
    head = chain.base(told["started"], meta, told["process"])
    assert head.hex() == told["base"]
    events = []
    for seq, fields in enumerate(told["events"]):
        code, expected = bytes.fromhex(fields.pop("code")), fields.pop("head")
        body = fields.pop("body")
        event = Event(**{**fields, "kind": Kind[fields["kind"]], "key": bytes.fromhex(fields["key"])})
        assert merkle.code(body, canonical.encode_ordered, ordered=True) == code
        head = chain.link(head, seq, event, code)
        assert head.hex() == expected
        events.append(event)
    assert columns.encode(events).hex() == told["columns"]
    assert columns.decode(bytes.fromhex(told["columns"])) == events
    assert Expander(Made()).expand(meta) == {"cwd": "/agent", "seed": bytes(4)}
    assert encode_plain({"cwd": "/agent", "seed": bytes(4)}) == meta


def test_a_seal_is_made_of_a_key_and_the_end_of_a_chain() -> None:
    told = json.loads(block("seal"))
    key = seal.made(told["key"].encode())
    base, head = bytes.fromhex(told["base"]), bytes.fromhex(told["head"])
    made = seal.make(key, base, told["state"], told["events"], told["faults"], head)
    assert (made.key, made.mac.hex()) == (told["id"], told["mac"])
    assert seal.holds(made, key, base, told["state"], told["faults"], head)


def test_a_branch_begins_from_what_it_shares() -> None:
    told, whole = json.loads(block("branch")), json.loads(block("chain"))
    events = [
        (seq, Event(Kind[each["kind"]], each["pos"], each["at"], each["lane"], each["what"], each["name"], each["of"]))
        for seq, each in enumerate(whole["events"])
    ]
    [made] = cut.cuts(events, [told["pos"]])
    assert (made.seq, made.steps, cut.pack(made.flying).hex()) == (told["seq"], told["steps"], told["flying"])
    assert cut.unpack(bytes.fromhex(told["flying"])) == made.flying
    head = bytes.fromhex(told["head"])
    assert head.hex() == whole["events"][told["seq"] - 1]["head"]
    base = chain.branch_base(
        whole["started"], bytes.fromhex(whole["meta"]), whole["process"], told["name"], told["pos"], told["seq"], head
    )
    assert base.hex() == told["base"]


def test_a_native_run_has_its_chain_steps_and_states() -> None:
    told = json.loads(block("native"))
    head = chain.base(told["started"], bytes.fromhex(told["meta"]), told["process"])
    assert head.hex() == told["base"] and steps.is_native(Expander(Made()).expand(bytes.fromhex(told["meta"])))
    events, bodies = [], {}
    for seq, fields in enumerate(told["events"]):
        event = Event(**{**fields, "kind": Kind[fields["kind"]], "key": bytes.fromhex(fields["key"])})
        body = event.body
        code = merkle.code(body, canonical.encode_ordered, ordered=True) if body is not None else b""
        head = chain.link(head, seq, event, code)
        events.append((seq, event))
        bodies[event.pos] = body
    assert head.hex() == told["head"]
    found = list(native.steps(events, 1))
    assert [(step.number, step.seq + 1, [effect.begin.pos for effect in step.effects]) for step in found] == [
        (step["number"], step["pos"], step["effects"]) for step in told["steps"]
    ]
    states: dict[int, dict[str, Any]] = {0: {}}
    for step in told["steps"]:
        state = dict(states[events[step["pos"] - 1][1].of])
        checkpoints.apply(state, bodies[step["pos"]])
        states[step["pos"]] = state
        assert state == step["state"]
    (turn,) = native.turns(events)
    assert turn.end is not None and schema.STATES[steps.rest(str(turn.end.what)).value] == told["state"]


def test_a_run_has_its_digest() -> None:
    told = json.loads(block("run"))
    lanes = [
        engine.LaneSum(
            name=lane["name"],
            effects=tuple((bytes.fromhex(key), bytes.fromhex(outcome)) for key, outcome in lane["effects"]),
            reads=tuple((source, count) for source, count in lane["reads"]),
            output=tuple((channel, bytes.fromhex(digest)) for channel, digest in lane["output"]),
        )
        for lane in told["lanes"]
    ]
    assert engine.digest(lanes, canonical.digest(told["end"])).hex() == told["digest"]
