"""Events as a workflow's code would see their payloads: decoded by the user's codec.

The history that a server gives is as the codec has it; what the code commands is compared before it is encoded.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from temporalio.api.common.v1 import Payload, Payloads
from temporalio.converter import DataConverter, WorkflowSerializationContext

from lockstep.errors import Code, TargetError

_PLAIN = Payload.DESCRIPTOR.full_name
_LIST = Payloads.DESCRIPTOR.full_name
# Never encoded by a codec: search attributes, since the server has to read them; headers, unless a worker says so.
_CLEAR = frozenset({"temporal.api.common.v1.SearchAttributes", "temporal.api.common.v1.Header"})
_MARKER = "marker_recorded_event_attributes"  # of local activities and patches: core writes these itself
# Encodings of the SDK's own converters: what has another one was made by a codec, or by a converter of the user's.
OWN = frozenset({
    b"binary/null", b"binary/plain", b"json/plain", b"json/protobuf", b"binary/protobuf",
})  # fmt: skip


def decoded(events: Sequence[Any], converter: DataConverter, *, namespace: str, workflow_id: str) -> list[Any]:
    """Copies of the events with decoded payloads; the events themselves where there is no codec. Raises TargetError
    LS402 where the codec cannot decode them."""
    if converter.payload_codec is None:
        return list(events)
    context = WorkflowSerializationContext(namespace=namespace, workflow_id=workflow_id)
    codec = converter.with_context(context).payload_codec
    found = []
    for event in events:
        made = type(event)()
        made.CopyFrom(event)
        found.append(made)
    try:
        aside(lambda: asyncio.run(_decode(codec, found)))
    except Exception as error:
        raise TargetError(
            Code.BAD_TARGET,
            f"the data converter's codec cannot decode this history ({type(error).__name__}: {error}). Give the one "
            "that the workflow ran with",
        ) from error
    return found


def encodings(events: Iterable[Any]) -> set[str]:
    """The encodings of payloads that the SDK's own converters do not know."""
    found = set()
    for event in events:
        for message in _holders(event):
            if message.DESCRIPTOR.full_name == _PLAIN:
                encoding = message.metadata.get("encoding", b"")
                if encoding and encoding not in OWN:
                    found.add(encoding.decode("utf-8", "replace"))
    return found


def aside[T](call: Callable[[], T]) -> T:
    """Calls what runs a loop: in a thread of its own under a running one."""
    if asyncio._get_running_loop() is None:
        return call()
    found: list[T] = []
    raised: list[BaseException] = []

    def there() -> None:
        try:
            found.append(call())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=there, name="lockstep-temporal")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
    return found[0]


async def _decode(codec: Any, events: Sequence[Any]) -> None:
    for event in events:
        lists = [message for message in _holders(event, whole=True) if message.DESCRIPTOR.full_name == _LIST]
        single = [message for message in _holders(event, whole=True) if message.DESCRIPTOR.full_name == _PLAIN]
        for message in lists:
            payloads = await codec.decode(list(message.payloads))
            del message.payloads[:]
            message.payloads.extend(payloads)
        for message in single:
            (payload,) = await codec.decode([message])
            message.CopyFrom(payload)


def _holders(message: Any, *, whole: bool = False) -> Iterator[Any]:
    """Messages that are payloads; with `whole` those of a list as that list."""
    name = message.DESCRIPTOR.full_name
    if name in _CLEAR:
        return
    if name == _PLAIN or (whole and name == _LIST):
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is None or field.name == _MARKER:
            continue
        if field.message_type.GetOptions().map_entry:
            if field.message_type.fields_by_name["value"].message_type is not None:
                for key in value:
                    yield from _holders(value[key], whole=whole)
        elif hasattr(value, "DESCRIPTOR"):
            yield from _holders(value, whole=whole)
        else:
            for item in value:
                yield from _holders(item, whole=whole)
