"""A codec that turns the bytes of payloads round."""

from __future__ import annotations

from collections.abc import Sequence

from temporalio.api.common.v1 import Payload
from temporalio.converter import PayloadCodec


class Turned(PayloadCodec):
    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(metadata={"encoding": b"binary/turned"}, data=each.SerializeToString()[::-1]) for each in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload.FromString(each.data[::-1]) if each.metadata["encoding"] == b"binary/turned" else each
            for each in payloads
        ]
