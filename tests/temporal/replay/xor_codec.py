"""A codec that hides what it is given, and is another one with another key."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from temporalio.api.common.v1 import Payload
from temporalio.converter import DataConverter, PayloadCodec


class Xor(PayloadCodec):
    def __init__(self, key: int = 77, *, suspends: bool = False) -> None:
        self._key = key
        self._suspends = suspends

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        await self._wait()
        return [
            Payload(metadata={"encoding": b"binary/xor"}, data=self._crypt(each.SerializeToString()))
            for each in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        await self._wait()
        return [
            Payload.FromString(self._crypt(each.data)) if each.metadata["encoding"] == b"binary/xor" else each
            for each in payloads
        ]

    async def _wait(self) -> None:
        """As one that asks a key service."""
        if self._suspends:
            await asyncio.sleep(0)

    def _crypt(self, data: bytes) -> bytes:
        return bytes(each ^ self._key for each in data)


def converter(key: int = 77, *, suspends: bool = False) -> DataConverter:
    return replace(DataConverter.default, payload_codec=Xor(key, suspends=suspends))
