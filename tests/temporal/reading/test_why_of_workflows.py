"""Where a workflow's values came from: what it was given, and the answers of its activities."""

from pathlib import Path

import pytest
import workflow_runs

import lockstep
from lockstep.log.store import open_store


@pytest.mark.parametrize(
    ("address", "path", "origin"),
    [
        ("2.1", "arguments[1]", ("1.1", "outcome.total", "activity")),
        ("2", "arguments[0]", ("0", "outcome.arguments[0]", "input")),
    ],
)
def test_a_value_of_an_activity_is_followed(
    tmp_path: Path, address: str, path: str, origin: tuple[str, str, str]
) -> None:
    store = tmp_path / "store.db"
    with open_store(str(store), create=True) as opened:
        made = workflow_runs.opened(opened)
        turn = made.turn("Order", 452, {"fast": True})
        made.step("start", "", ["start Order"], ["activity look_up(452)", "activity look_up(451)"])
        look, other = made.asks("activity", "look_up", "452"), made.asks("activity", "look_up", "451")
        made.answers(other, {"id": 451, "total": 4001})
        made.answers(look, {"id": 452, "total": 4002})
        made.step("activity", "look_up", ["activity look_up answered"] * 2, ["activity charge(452, 4002)"])
        charge = made.asks("activity", "charge", 452, 4002)
        made.answers(charge, {"id": "ch_1"})
        made.step("activity", "charge", ["activity charge answered"], ["complete"])
        made.end(turn, "charged 4002")
    first = lockstep.why(f"temporal/order-7:{address}", path, store=store).origins[0]
    assert (first.address, first.path, first.kind) == (f"temporal/order-7:{origin[0]}", *origin[1:])
