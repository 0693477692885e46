"""Runs of workflows to read: as a worker or an imported history leaves them behind, without either."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lockstep.log.model import Event, Kind, Status, Value
from lockstep.log.store import Shared, Store

RUN = "temporal/order-7"
META: dict[str, Value] = {
    "adapter": "temporal", "origin": "worker", "versions": {"temporalio": "1.35.0"},
    "native": {"workflow_id": "order-7", "first_run_id": "r1", "namespace": "default", "workflow_type": "Order"},
}  # fmt: skip
CLOCK = 1_796_031_000_000_000_000  # of the first workflow task
SECOND = 1_000_000_000


class Execution:
    """Writes a run, one event an append, at a time that passes as told."""

    def __init__(self, shared: Shared) -> None:
        self.shared = shared
        self.at = 0
        self.last = 0  # position of the last step

    def event(self, kind: Kind, **fields: Any) -> int:
        return self.shared.append([Event(kind, -1, self.at, "main", **fields)])[0].pos

    def turn(self, name: str, *arguments: Value, run_id: str = "r1", cause: str = "start") -> int:
        request: Value = {"run_id": run_id, "arguments": list(arguments), "cause": cause}
        return self.event(Kind.BEGIN, what="turn", name=name, body={"request": request, "seed": b""})

    def end(self, turn: int, value: Value = None, status: Status = Status.OK) -> None:
        self.event(Kind.END, what=status, of=turn, body=value)

    def asks(self, kind: str, name: str, *arguments: Value, key: bytes = b"", **more: Value) -> int:
        request: Value = {"arguments": list(arguments), **more} if kind != "timer" else {}
        told = key or f"{kind} {name} {arguments}".encode()
        return self.event(Kind.BEGIN, what=kind, name=name, key=told, body={"request": request, "seq": 1})

    def tries(self, of: int, name: str, error: str = "", beats: Sequence[Value] = (), took: float = 0.01) -> None:
        pos = self.event(Kind.BEGIN, what="attempt", name=name, of=of, body={"request": {}})
        for beat in beats:
            self.event(Kind.PART, of=pos, body=beat)
        self.passes(took)
        failed: Value = {"module": "builtins", "name": "OSError", "args": [error]}
        self.event(Kind.END, what=Status.ERROR if error else Status.OK, of=pos, body=failed if error else None)

    def answers(self, of: int, value: Value = None, status: Status = Status.OK, name: str = "") -> None:
        self.event(Kind.END, what=status, of=of, name=name, key=repr(value).encode(), body=value)

    def comes(self, kind: str, name: str, *arguments: Value) -> None:
        self.answers(
            self.event(Kind.BEGIN, what=kind, name=name, key=kind.encode(), body={"request": {}}), [*arguments]
        )

    def step(
        self, what: str, name: str, jobs: Sequence[str], commands: Sequence[str], key: bytes = b"", **more: Value
    ) -> None:
        body: Value = {
            "channels": {}, "whole": True, "run_id": "r1", "history_length": 3, "jobs": [*jobs],
            "commands": [*commands], "clock": CLOCK + self.at, "tasks": [], **more,
        }  # fmt: skip
        told = key or "\n".join(commands).encode()
        self.last = self.event(Kind.STEP, what=what, name=name, of=self.last, key=told, body=body)

    def passes(self, seconds: float) -> None:
        self.at += int(seconds * SECOND)


def opened(store: Store, run: str = RUN) -> Execution:
    return Execution(store.open_shared(run, META))


def order(store: Store, run: str = RUN, *, status: str = "delivered") -> Execution:
    """Two executions, the second by continue-as-new: two activities at once of which one fails twice, a signal, a
    timer, a child."""
    made = opened(store, run)
    turn = made.turn("Order", 452, {"fast": True})
    made.step("start", "", ["start Order"], ["activity charge(452, 4000)", 'activity look_up("452")'])
    charge = made.asks("activity", "charge", 452, 4000)
    look = made.asks("activity", "look_up", "452")
    made.passes(0.04)
    made.tries(charge, "charge#1", "no route", beats=[{"progress": 1}, {"progress": 5}])
    made.passes(1)
    made.tries(charge, "charge#2", "no route")
    made.passes(2)
    made.tries(charge, "charge#3")
    made.answers(look, {"id": 452, "status": status})
    made.answers(charge, {"id": "ch_1"})
    made.step("activity", "look_up, charge", ["activity look_up answered", "activity charge answered"], ["timer 3s"])
    timer = made.asks("timer", "3s")
    made.passes(3)
    made.comes("signal", "approve", "bob", {"note": "fine"})
    made.step("signal", "approve", ["signal approve"], [])
    made.answers(timer)
    made.step("timer", "3s", ["timer 3s fired"], ["child Invoice(452)"])
    child = made.asks("child", "Invoice", 452)
    made.passes(0.5)
    made.answers(child, "inv-1")
    made.step("child", "Invoice", ["child Invoice completed"], ["continue as new"])
    made.end(turn, {"continue_as_new": {"arguments": [453]}})
    turn = made.turn("Order", 453, run_id="r2", cause="continue_as_new")
    made.step("start", "", ["start Order"], ['activity look_up("453")'])
    look = made.asks("activity", "look_up", "453")
    made.passes(0.02)
    made.answers(look, {"module": "builtins", "name": "LookupError", "args": ["no order 453"]}, Status.ERROR)
    made.step("activity", "look_up", ["activity look_up failed"], ["complete workflow"])
    made.end(turn, "nothing to do")
    return made
