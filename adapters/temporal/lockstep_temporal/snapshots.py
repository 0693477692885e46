"""What is kept of Python objects at the moment of a call: as payloads, which nobody changes any more.

The program may go on changing what it gave (a list of messages that grows), so the objects themselves are never kept.
What the user's codec would encrypt on its way to the server is written as the codec has it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.converter import DataConverter, PayloadCodec

from lockstep.log.model import Value
from lockstep_temporal import layout
from lockstep_temporal.awaiting import wait
from lockstep_temporal.protos import encoded_value, plain, to_value

type Told = Callable[[], Value]


class Withholds(PayloadCodec):
    """Says nothing of payloads, for a worker whose converter is not known: it may have a codec."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [Payload(metadata={"encoding": b"lockstep/withheld"}) for _ in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return list(payloads)


def known(converter: DataConverter | None) -> DataConverter:
    """The worker's converter, or one that gives nothing away."""
    return converter if converter is not None else DataConverter(payload_codec=Withholds())


class Taker:
    """Takes payloads of objects, in the thread that has them, and gives what makes stored values of these later.

    converter  the worker's
    """

    def __init__(self, converter: DataConverter) -> None:
        self._converter = converter
        self._codec: Any = converter.payload_codec

    @property
    def quick(self) -> bool:
        """Whether no codec has to be waited for."""
        return self._codec is None

    def values(self, objects: Sequence[Any]) -> Told:
        """A list of what they are."""
        payloads = self._converter.payload_converter.to_payloads(objects)
        return lambda: [plain(payload) for payload in payloads] if self._codec is None else self._encoded(payloads)

    def failure(self, error: BaseException) -> Told:
        """What is stored of an exception, as of one that the server knows."""
        failure = Failure()
        self._converter.failure_converter.to_failure(error, self._converter.payload_converter, failure)
        return lambda: layout.failure_form(failure, write=self._message)

    def _message(self, failure: Failure) -> Value:
        return to_value(failure, None if self._codec is None else lambda payload: self._encoded([payload])[0])

    def _encoded(self, payloads: Sequence[Payload]) -> list[Value]:
        return [encoded_value(payload) for payload in wait(lambda: self._codec.encode(list(payloads)))]
