"""Temporal's messages become inert data and come back exactly, whatever is in them."""

import json
import random
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from temporalio.api.common.v1 import Payload
from temporalio.api.history.v1 import HistoryEvent
from temporalio.bridge.proto.workflow_activation import WorkflowActivation
from temporalio.bridge.proto.workflow_completion import WorkflowActivationCompletion
from temporalio.contrib.pydantic import pydantic_data_converter
from temporalio.converter import DataConverter

from lockstep.errors import StoreError
from lockstep.log import canonical
from lockstep_temporal.protos import (
    exact,
    is_encoded,
    json_payload,
    of_payload_value,
    of_value,
    payload_value,
    plain,
    to_value,
)

UNKNOWN = b"\xfa\x3e\x03abc"  # field 1007, which nobody has

TEXTS = ["", "plain", "ümläut ✓", "$", "?", "\x00", "a" * 300, "${x}", "json"]
JSONS: list[Any] = [
    None, True, 0, -1, 2**70, 1.5, 1e16, -0.0, "é", "", [], {}, {"$": "payload"}, {"b": 1, "a": [1, {"c": None}]},
    [1, "x", {"$": "encoded", "data": "text"}],
]  # fmt: skip


def filled(message: Any, draw: random.Random, depth: int = 0) -> Any:
    """The message with random fields set, oneofs, maps and lists among them."""
    if isinstance(message, Payload):
        message.CopyFrom(payload(draw))
        return message
    for field in message.DESCRIPTOR.fields:
        if draw.random() < (0.3 if depth < 3 else 0.75):
            continue
        holder = field.message_type
        if holder is not None and holder.GetOptions().map_entry:
            items = getattr(message, field.name)
            for key in draw.sample(TEXTS, 2):
                if holder.fields_by_name["value"].message_type is not None:
                    filled(items[key], draw, depth + 1)
                else:
                    items[key] = scalar(holder.fields_by_name["value"], draw)
        elif isinstance(getattr(message, field.name), list) or hasattr(getattr(message, field.name), "extend"):
            for _ in range(draw.randrange(3)):
                if holder is not None:
                    if depth < 6:
                        filled(getattr(message, field.name).add(), draw, depth + 1)
                else:
                    getattr(message, field.name).append(scalar(field, draw))
        elif holder is not None:
            if depth < 6:
                getattr(message, field.name).SetInParent()
                filled(getattr(message, field.name), draw, depth + 1)
        else:
            setattr(message, field.name, scalar(field, draw))
    if draw.random() < 0.05:
        message.MergeFromString(UNKNOWN)
    return message


def scalar(field: Any, draw: random.Random) -> Any:
    if field.enum_type is not None:
        return draw.choice(field.enum_type.values).number
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_STRING:
        return draw.randbytes(5) if field.type == FieldDescriptor.TYPE_BYTES else draw.choice(TEXTS)
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return draw.random() < 0.5
    if kind in (FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT):
        return draw.choice([0.0, 1.5, -2.25])
    if kind == FieldDescriptor.CPPTYPE_UINT64:
        return draw.choice([0, 1, 2**64 - 1])
    return draw.choice([0, 1, 77])


def payload(draw: random.Random) -> Payload:
    which = draw.randrange(6)
    value = draw.choice(JSONS)
    if which == 0:
        return DataConverter.default.payload_converter.to_payloads([value])[0]
    if which == 1:
        return pydantic_data_converter.payload_converter.to_payloads([value])[0]
    if which == 2:
        return Payload(metadata={"encoding": b"json/plain"}, data=json.dumps(value, indent=1).encode())
    if which == 3:
        return Payload(metadata={"encoding": b"binary/plain", "odd": b"\xff"}, data=draw.randbytes(9))
    if which == 4:
        return Payload(metadata={"encoding": b"json/plain"}, data=b'{"a": NaN, "a": 1}')
    return Payload()


@pytest.mark.parametrize("cls", [WorkflowActivation, WorkflowActivationCompletion, HistoryEvent])
def test_messages_of_any_content_come_back_exactly(cls: Any) -> None:
    draw = random.Random(7)
    for _ in range(60):
        message = filled(cls(), draw)
        value = to_value(message)
        canonical.digest(value)  # what the store takes
        assert exact(of_value(value, cls)) == exact(message)


@pytest.mark.parametrize("value", JSONS)
@pytest.mark.parametrize("converter", [DataConverter.default, pydantic_data_converter])
def test_json_is_kept_as_a_value_in_which_its_parts_are_found(converter: DataConverter, value: Any) -> None:
    made = converter.payload_converter.to_payloads([value])[0]
    entry = payload_value(made)
    assert plain(made) == value
    assert of_payload_value(entry) == made  # type: ignore[arg-type]
    assert isinstance(entry, dict)
    if value is not None and value not in (2**70, 1e16):
        assert entry["json"] == value


def test_plain_data_of_an_edit_becomes_what_the_default_converter_makes_of_it() -> None:
    for value in JSONS:
        if value is not None:
            assert json_payload(value) == DataConverter.default.payload_converter.to_payloads([value])[0]


def test_json_that_is_written_in_another_way_keeps_its_bytes() -> None:
    odd = Payload(metadata={"encoding": b"json/plain"}, data=b'{ "a" : 1 }')
    assert of_payload_value(payload_value(odd)) == odd  # type: ignore[arg-type]
    assert plain(odd) == {"a": 1}


def test_a_users_own_data_are_never_taken_for_an_entry() -> None:
    for value in ({"$": "encoded", "data": "x"}, {"$": "payload", "data": "x"}):
        assert not is_encoded(plain(json_payload(value)))
        assert plain(of_payload_value(payload_value(json_payload(value)))) == value  # type: ignore[arg-type]


def test_fields_of_a_later_sdk_are_kept() -> None:
    message = WorkflowActivation(run_id="r")
    message.jobs.add().fire_timer.seq = 1
    message.jobs[0].MergeFromString(UNKNOWN)
    assert exact(of_value(to_value(message), WorkflowActivation)) == exact(message)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ([], "it is no map"),
        ({"soon": 1}, "no soon in it; a newer one"),
        ({"run_id": 5}, "WorkflowActivation.run_id"),
        ({"jobs": [7]}, "WorkflowActivation.jobs of a Temporal workflow makes no sense: it is no map"),
        ({"jobs": [{"signal_workflow": {"input": [{"$": "payload", "data": "text"}]}}]}, "its data are no bytes"),
    ],
)
def test_what_is_no_message_is_told_with_its_place(value: Any, said: str) -> None:
    with pytest.raises(StoreError, match="LS202") as caught:
        of_value(value, WorkflowActivation)
    assert said in caught.value.message
