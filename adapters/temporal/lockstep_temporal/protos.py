"""Temporal's messages as inert data, and back, exactly.

    value = to_value(activation)                       # {"run_id": …, "jobs": [{"resolve_activity": {…}}]}
    same = of_value(value, WorkflowActivation)         # equal bytes: SerializeToString(deterministic=True)

Only set fields are there, by name. A payload is an entry that says so:

    {"$": "payload", "json": value}                                  of json/plain: what its JSON text says
    {"$": "payload", "json": value, "escaped": true}            the same, non-ASCII characters are escaped in it
    {"$": "payload", "metadata": {…}, "json" | "data": …}       of another encoding
    {"$": "encoded", "metadata": {…}, "data": bytes}            as the user's codec has it

JSON is kept as a value only where writing it gives the same bytes. So long inputs that grow by a message share what
they have in common, and secrets are found in them. Fields that this SDK does not know are kept under "?".
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import msgspec
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from temporalio.api.common.v1 import Payload

from lockstep.errors import Code, StoreError
from lockstep.log.model import Value

KIND = "$"  # the key of an entry that says what was no plain data
PAYLOAD, ENCODED = "payload", "encoded"
UNKNOWN = "?"

type FromPayload = Callable[[Payload], Value]
type ToPayload = Callable[[Mapping[str, Any]], Payload]

_JSON = b"json/plain"
_ENCODING = "encoding"
_PAYLOAD = Payload.DESCRIPTOR.full_name
_SEARCH = "temporal.api.common.v1.SearchAttributes"  # the server reads these: no codec ever sees them
_PLAIN_FIELDS = frozenset({"metadata", "data"})

_read_json = msgspec.json.Decoder().decode
_write_json = msgspec.json.Encoder().encode


def to_value(message: Message, payload: FromPayload | None = None) -> Value:
    """The message as data. `payload`: what is made of each payload in it, `payload_value` if not given."""
    return _Writer(payload or payload_value, _has_unknown(message)).message(message)


def of_value[M: Message](value: Value, cls: type[M], payload: ToPayload | None = None) -> M:
    """The message that `to_value` was given. `payload`: what makes a payload of its entry, `of_payload_value` if not
    given. Raises StoreError LS202 for what is no message of this class."""
    made = cls()
    _Reader(payload or of_payload_value).fill(made, value, cls.DESCRIPTOR.name)
    return made


def exact(message: Message) -> bytes:
    """The bytes that are compared: equal for equal messages of one SDK."""
    return message.SerializeToString(deterministic=True)


# Payloads.


def payload_value(payload: Payload) -> Value:
    """A payload's entry."""
    if any(field.name not in _PLAIN_FIELDS for field, _ in payload.ListFields()):
        return _Writer(payload_value, unknown=False).fields(payload)  # external storage: no data of its own
    metadata, data = payload.metadata, payload.data
    entry: dict[str, Value] = {KIND: PAYLOAD}
    encoding = metadata.get(_ENCODING)
    if not (encoding == _JSON and len(metadata) == 1):
        entry["metadata"] = {key: _text(metadata[key]) for key in sorted(metadata)}
    if encoding is not None and encoding.startswith(b"json/"):
        said = _json_value(data)
        if said is not None:
            return {**entry, **said}
    if data:
        entry["data"] = data
    return entry


def encoded_value(payload: Payload) -> Value:
    """The entry of a payload that a codec has made."""
    metadata: dict[str, Value] = {key: _text(payload.metadata[key]) for key in sorted(payload.metadata)}
    return {KIND: ENCODED, "metadata": metadata, "data": payload.data}


def is_encoded(value: Value) -> bool:
    """Whether a value is the entry of an encoded payload. JSON has no bytes, so that no user's value is one."""
    return isinstance(value, dict) and value.get(KIND) == ENCODED and isinstance(value.get("data"), bytes)


def of_payload_value(entry: Mapping[str, Any]) -> Payload:
    """The payload of an entry; that of an encoded one as the codec has it. Raises StoreError LS202."""
    if KIND not in entry:
        made = Payload()
        _Reader(of_payload_value).fields(made, entry, "Payload")
        return made
    metadata = entry.get("metadata")
    if metadata is None:
        kept = {_ENCODING: _JSON}
    elif isinstance(metadata, dict):
        kept = {key: value.encode() if isinstance(value, str) else value for key, value in metadata.items()}
    else:
        raise _odd("Payload", "its metadata is no map")
    try:
        return Payload(metadata=kept, data=_data(entry))
    except (TypeError, ValueError) as error:
        raise _odd("Payload", str(error)) from None


def json_payload(value: Value) -> Payload:
    """The payload that the SDK's default converter makes of plain data."""
    data = json.dumps(value, separators=(",", ":"), sort_keys=True).encode()
    return Payload(metadata={_ENCODING: _JSON}, data=data)


def plain(payload: Payload) -> Value:
    """What a payload holds, as far as it is plain data; its entry otherwise."""
    encoding = payload.metadata.get(_ENCODING, b"")
    if encoding.startswith(b"json/"):
        try:
            return _read_json(payload.data)  # type: ignore[no-any-return]
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return payload_value(payload)
    if encoding == b"binary/null":
        return None
    if encoding == b"binary/plain":
        return payload.data
    return payload_value(payload)


def _json_value(data: bytes) -> dict[str, Value] | None:
    try:
        value = _read_json(data)
        if _write_json(value) == data:
            return {"json": value}
        # As `json.dumps` has it, but for the order of keys, which is that of the text.
        if json.dumps(value, separators=(",", ":")).encode() == data:
            return {"json": value, "escaped": True}
    except (msgspec.DecodeError, msgspec.EncodeError, UnicodeError, RecursionError, ValueError):
        pass
    return None


def _data(entry: Mapping[str, Any]) -> bytes:
    if "json" in entry:
        if entry.get("escaped") is True:
            return json.dumps(entry["json"], separators=(",", ":")).encode()
        return _write_json(entry["json"])
    data = entry.get("data", b"")
    if not isinstance(data, bytes):
        raise _odd("Payload", "its data are no bytes")
    return data


def _text(data: bytes) -> Value:
    """Bytes as text where they are UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


# Messages.


@lru_cache(1024)
def _shape(field: FieldDescriptor) -> tuple[str, bool, bool, bool]:
    """Name; whether it is a map; whether it is repeated; whether what it holds are messages."""
    described: Any = field
    message = described.message_type
    is_map = message is not None and message.GetOptions().map_entry
    held = message.fields_by_name["value"] if is_map else described
    # Protobuf before 6.31 has labels only, those from 7.34 have none.
    many = described.is_repeated if hasattr(field, "is_repeated") else described.label == described.LABEL_REPEATED
    return described.name, bool(is_map), bool(many), held.message_type is not None


class _Writer:
    def __init__(self, payload: FromPayload, unknown: bool) -> None:
        self._payload = payload
        self._unknown = unknown

    def message(self, message: Any) -> Value:
        name = message.DESCRIPTOR.full_name
        if name == _PAYLOAD:
            return self._payload(message)
        if name == _SEARCH and self._payload is not payload_value:
            return _Writer(payload_value, self._unknown).fields(message)
        return self.fields(message)

    def fields(self, message: Any) -> dict[str, Value]:
        found: dict[str, Value] = {}
        for field, value in message.ListFields():
            name, is_map, repeated, messages = _shape(field)
            if is_map:
                keys = sorted(value)
                found[name] = {str(key): self.message(value[key]) if messages else value[key] for key in keys}
            elif repeated:
                found[name] = [self.message(item) for item in value] if messages else list(value)
            else:
                found[name] = self.message(value) if messages else value
        if self._unknown and (rest := _unknown(message)):
            found[UNKNOWN] = rest
        return found


def _has_unknown(message: Any) -> bool:
    known = type(message)()
    known.CopyFrom(message)
    known.DiscardUnknownFields()
    return bool(known.ByteSize() != message.ByteSize())


def _unknown(message: Any) -> bytes:
    """The bytes of the fields that this SDK does not know, of the message itself."""
    rest = type(message)()
    rest.CopyFrom(message)
    for field, _ in message.ListFields():
        rest.ClearField(field.name)
    data: bytes = rest.SerializeToString()
    return data


class _Reader:
    def __init__(self, payload: ToPayload) -> None:
        self._payload = payload

    def fill(self, message: Any, value: Value, where: str) -> None:
        if not isinstance(value, dict):
            raise _odd(where, "it is no map")
        if message.DESCRIPTOR.full_name == _PAYLOAD:
            message.CopyFrom(self._payload(value))
        else:
            self.fields(message, value, where)

    def fields(self, message: Any, value: Mapping[str, Any], where: str) -> None:
        known = message.DESCRIPTOR.fields_by_name
        message.SetInParent()
        for name, item in value.items():
            if name == UNKNOWN:
                message.MergeFromString(item)
                continue
            field = known.get(name)
            if field is None:
                raise _odd(where, f"this version of temporalio has no {name} in it; a newer one has recorded it")
            try:
                self._field(message, field, item, f"{where}.{name}")
            except (TypeError, ValueError, AttributeError) as error:
                raise _odd(f"{where}.{name}", str(error)) from None

    def _field(self, message: Any, field: FieldDescriptor, item: Any, where: str) -> None:
        name, is_map, repeated, messages = _shape(field)
        there = getattr(message, name)
        if is_map:
            for key, value in item.items():
                if messages:
                    self.fill(there[key], value, where)
                else:
                    there[key] = value
        elif repeated and messages:
            for value in item:
                self.fill(there.add(), value, where)
        elif repeated:
            there.extend(item)
        elif messages:
            there.SetInParent()
            self.fill(there, item, where)
        else:
            setattr(message, name, item)


def _odd(where: str, why: str) -> StoreError:
    return StoreError(Code.DAMAGED, f"a stored {where} of a Temporal workflow makes no sense: {why}")
