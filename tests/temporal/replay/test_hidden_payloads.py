"""Runs with payloads that a codec has encoded, and with secrets in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import replayed_workflows as flows
from scripted_workflow import scripted
from xor_codec import Xor, converter

import lockstep
from lockstep.errors import TargetError
from lockstep_temporal import Setup

TOKEN = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"  # no real one: the shape is what counts


@pytest.fixture
def encoded(store: Path) -> Path:
    with scripted(store, flows.Orders, codec=Xor()) as script:
        script.start(4711)
        script.resolve(1, {"name": "Ada Lovelace"})
        script.fire(1)
        script.resolve(2, 4000)
        script.resolve(3, -400)
    return store


def stored(store: Path) -> bytes:
    return b"".join(each.read_bytes() for each in store.parent.glob(store.name + "*") if each.is_file())


@pytest.mark.parametrize("suspends", [False, True])
def test_the_codec_that_it_was_recorded_with_decodes_it(encoded: Path, suspends: bool) -> None:
    assert b"Lovelace" not in stored(encoded)
    given = converter(suspends=suspends)
    done = lockstep.replay("temporal/order-7", flows.Orders, store=encoded, data_converter=given)
    assert (done.identical, done.result) == (True, flows.Receipt(4711, 3600))
    of_setup = Setup(workflows=[flows.Orders], data_converter=given)
    assert lockstep.replay("temporal/order-7", of_setup, store=encoded).identical
    changed = lockstep.replay("temporal/order-7", flows.OtherArgument, store=encoded, data_converter=given)
    difference = changed.report.difference
    assert difference is not None
    assert (difference.path, difference.expected, difference.actual) == ("arguments[1].number", "1881", "1882")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "were encoded by a codec, and the target has none. Give the data converter"),
        ({"data_converter": converter(key=12)}, "the target's codec cannot decode what temporal/order-7 was recorded"),
        ({"data_converter": Xor()}, "data_converter= is a temporalio.converter.DataConverter, not a Xor"),
        ({"converter": converter()}, "converter= is nothing that a run of Temporal knows. Its own arguments: data_con"),
    ],
)
def test_without_the_right_codec_it_is_said_so(encoded: Path, given: dict[str, Any], told: str) -> None:
    with pytest.raises(TargetError, match="LS402") as raised:
        lockstep.replay("temporal/order-7", flows.Orders, store=encoded, **given)
    assert told in str(raised.value)


def test_secrets_come_from_the_vault_and_without_it_are_stood_in_for(store: Path) -> None:
    with scripted(store, flows.Listens) as script:
        script.start()
        script.signal("say", TOKEN)
        script.signal("say", f"token={TOKEN}")
    assert TOKEN.encode() not in stored(store)
    done = lockstep.replay("temporal/order-7", flows.Listens, store=store)
    assert (done.identical, done.result, done.report.redacted) == (True, [TOKEN, f"token={TOKEN}"], ())
    for vault in store.parent.rglob("*"):
        if vault.is_file() and TOKEN.encode() in vault.read_bytes():
            vault.unlink()
    redacted = lockstep.replay("temporal/order-7", flows.Listens, store=store)
    assert redacted.identical
    assert redacted.report.redacted
    assert TOKEN not in str(redacted.result)


def test_a_difference_quotes_no_secret(store: Path) -> None:
    with scripted(store, flows.Refused) as script:
        script.start(1)
        script.fail(1, f"no access with {TOKEN}")
    done = lockstep.replay("temporal/order-7", flows.SwallowsRefusal, store=store)
    assert done.divergence is not None
    assert "no access with" in done.divergence
    assert TOKEN not in done.divergence
    assert TOKEN not in str(done.report)
