"""Reading what interceptors have recorded, and a codec that encrypts."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.converter import DataConverter, PayloadCodec

from lockstep.log.model import Event, Kind
from lockstep.log.store import open_store
from lockstep_temporal.layout import run_name
from lockstep_temporal.recorded import Recorded, RecordedEffect


class Xor(PayloadCodec):
    """Encrypts, as far as a test can tell."""

    async def encode(self, payloads: Any) -> list[Payload]:
        await asyncio.sleep(0)
        return [Payload(metadata={"encoding": b"binary/xor"}, data=_xor(each.SerializeToString())) for each in payloads]

    async def decode(self, payloads: Any) -> list[Payload]:
        return [Payload.FromString(_xor(each.data)) for each in payloads]


def _xor(data: bytes) -> bytes:
    return bytes(byte ^ 0x5A for byte in data)


CODED = DataConverter(payload_codec=Xor())


def recorded(store: Path, workflow_id: str) -> Recorded:
    return Recorded(open_store(str(store)).run(run_name(workflow_id)))


def effects(read: Recorded) -> list[tuple[str, str, Any, Any]]:
    """Kind, name, request and answer of each, in their order."""
    return [(each.kind, each.name, read.request(each), read.answer(each)) for each in read.effects]


def steps(read: Recorded) -> list[tuple[str, str]]:
    return [(step.event.what, step.event.name) for step in read.steps]


def attempts(read: Recorded, of: RecordedEffect) -> list[dict[str, Any]]:
    """Of an effect: {"name", "request", "beats", "status", "end"} for each attempt."""
    found: dict[int, dict[str, Any]] = {}
    for event in _events(read):
        if event.kind is Kind.BEGIN and event.of == of.begin.pos:
            body: Any = event.body
            found[event.pos] = {"name": event.name, "request": body["request"], "beats": [], "status": "", "end": None}
        elif event.kind is Kind.PART and event.of in found:
            found[event.of]["beats"].append(event.body)
        elif event.kind is Kind.END and event.of in found:
            found[event.of] |= {"status": event.name or str(event.what), "end": event.body}
    return list(found.values())


def _events(read: Recorded) -> list[Event]:
    return list(read.reader.events(read.reader.main))


def whole(store: Path) -> str:
    """Everything that the store says, in all of its runs, and as it lies in its files."""
    told = []
    with open_store(str(store)) as opened:
        for name in opened.names():
            reader = opened.run(name)
            told.append(repr((name, reader.meta, list(reader.events(reader.main)))))
    files = [
        path.read_bytes().decode("latin-1") for path in sorted(store.parent.glob(f"{store.name}*")) if path.is_file()
    ]
    return "\n".join(told + files)
