"""A data converter whose codec encrypts, for commands that name it."""

from collections.abc import Sequence
from dataclasses import replace

import kitchen_sink
from temporalio.api.common.v1 import Payload
from temporalio.converter import DataConverter, PayloadCodec

from lockstep_temporal.setup import Setup


class Xor(PayloadCodec):
    def __init__(self, key: int) -> None:
        self._key = key

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(metadata={"encoding": b"binary/xor"}, data=self._crypt(each.SerializeToString()))
            for each in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload.FromString(self._crypt(each.data)) if each.metadata["encoding"] == b"binary/xor" else each
            for each in payloads
        ]

    def _crypt(self, data: bytes) -> bytes:
        return bytes(each ^ self._key for each in data)


converter = replace(DataConverter.default, payload_codec=Xor(91))
workers = Setup(
    workflows=kitchen_sink.WORKFLOWS, activities=kitchen_sink.ACTIVITIES, data_converter=converter
)  # fmt: skip
strangers = Setup(
    workflows=kitchen_sink.WORKFLOWS, activities=kitchen_sink.ACTIVITIES,
    data_converter=replace(DataConverter.default, payload_codec=Xor(17)),
)  # fmt: skip
