"""Edits of runs whose payloads a codec has encrypted: given in clear, and never stored so."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import order_workflows as orders
from live_server import Server, run
from temporalio.converter import DataConverter
from turned_codec import Turned

import lockstep
from lockstep_temporal import LockstepPlugin, Setup

CODED = replace(DataConverter.default, payload_codec=Turned())
EVERYTHING = Setup(
    workflows=orders.WORKFLOWS, activities=orders.ACTIVITIES, data_converter=CODED, sandboxed=False
)  # fmt: skip


def test_encrypted_answers_are_edited_as_a_whole_and_by_their_places(temporal_server: Server, tmp_path: Path) -> None:
    store = tmp_path / "runs" / "s.db"
    store.parent.mkdir()
    ran = run(
        temporal_server, orders.Rounds.run, 1, [], workflows=orders.WORKFLOWS, activities=orders.ACTIVITIES,
        plugins=[LockstepPlugin(store)], data_converter=CODED, sandboxed=False,
    )  # fmt: skip
    name = f"temporal/{ran.workflow_id}"
    assert lockstep.fork(f"{name}:0", EVERYTHING, store=store).result == ran.result == [100, 100]
    by_place = lockstep.fork(f"{name}:1", EVERYTHING, store=store, edits={"1.1:total": 987651234})
    assert by_place.result == [987651234, 100]
    edits = {"1.1": orders.Found(1, 555012377, "unheard-of")}
    whole = lockstep.fork(f"{name}:1", EVERYTHING, store=store, edits=edits)
    assert whole.result == [555012377, 100]
    for fork in (by_place, whole):
        assert lockstep.replay(fork.address, EVERYTHING, store=store).identical
    stored = b"".join(path.read_bytes() for path in store.parent.iterdir() if path.is_file())
    for text in (b"987651234", b"555012377", b"unheard-of"):
        assert text not in stored
