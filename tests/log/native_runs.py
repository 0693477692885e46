"""Native runs to test with: a thread of a framework as its checkpointer and its calls leave it behind."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lockstep.log import checkpoints
from lockstep.log.model import Event, Kind, Status, Value
from lockstep.log.store import Shared, Store

RUN = "langgraph/t-91"
META: dict[str, Value] = {"adapter": "langgraph", "native": {"thread": "t-91"}, "versions": {"langgraph": "1.2.24"}}


def message(kind: str, content: str, **more: Value) -> dict[str, Value]:
    return {"$": "message", "type": kind, "content": content, **more}


class Thread:
    """Writes a thread, one event an append. Positions are as stored."""

    def __init__(self, shared: Shared, states: dict[int, dict[str, Value]] | None = None) -> None:
        self.shared = shared
        self.states: dict[int, dict[str, Value]] = dict(states or {})
        self.at = 0

    def event(self, kind: Kind, lane: str = "main", **fields: Any) -> int:
        self.at += 1_000_000
        return self.shared.append([Event(kind, -1, self.at, lane, **fields)])[0].pos

    def turn(self, name: str = "invoke", given: Value = None) -> int:
        return self.event(Kind.BEGIN, what="turn", name=name, body={"request": {"input": given}, "seed": bytes(16)})

    def end(self, turn: int, status: Status = Status.OK, value: Value = None) -> int:
        return self.event(Kind.END, what=status, of=turn, body=value)

    def step(
        self, of: int, state: Mapping[str, Value], name: str = "agent", source: str = "loop", lane: str = "main"
    ) -> int:
        """A checkpoint with this whole state, stored as what is another than in its parent's."""
        before = self.states.get(of) if of else None
        record = checkpoints.record(before, state)
        pos = self.event(Kind.STEP, lane, what=source, name=name, of=of, key=b"k" * 16, body=record)
        self.states[pos] = dict(state)
        return pos

    def writes(self, of: int, node: str, *writes: tuple[str, Value], lane: str = "", first: int = 0) -> int:
        """What a task wrote; `first`: the index of its first write, below 0 for a special channel."""
        numbered: list[Value] = [[first + number, name, value] for number, (name, value) in enumerate(writes)]
        body: Value = {"path": f"~__pregel_pull, {node}", "writes": numbered}
        return self.event(Kind.WRITES, lane or f"main/{node}", what=f"task-{node}", name=node, of=of, body=body)

    def call(self, lane: str, kind: str, name: str, request: Value, answer: Value, of: int = 0) -> int:
        pos = self.event(Kind.BEGIN, lane, what=kind, name=name, of=of, key=b"m" * 16, body={"request": request})
        self.event(Kind.END, lane, what=Status.OK, of=pos, key=b"o" * 16, body=answer)
        return pos


def open_thread(store: Store, run: str = RUN) -> Thread:
    return Thread(store.open_shared(run, META))


def refund(store: Store, run: str = RUN) -> Thread:
    """Two turns: an agent that calls a model and a tool, asks a human, and goes on when it is told."""
    thread = open_thread(store, run)
    question = message("human", "where is 452?")
    asks = message("ai", "", tool_calls=[{"name": "get_order", "args": {"number": 452}, "id": "c1"}])
    found = message("tool", "delivered", tool_call_id="c1")
    says = message("ai", "Order 452 was delivered.")
    turn = thread.turn(given={"messages": [["user", "where is 452?"]]})
    zero = thread.step(0, {"__start__": {"messages": ["where is 452?"]}}, "input", "input")
    thread.writes(zero, "__start__", ("messages", [question]))
    one = thread.step(zero, {"messages": [question], "branch:to:agent": None}, "input")
    request: Value = {"messages": [{"type": "human", "content": "where is 452?"}]}
    told: Value = {
        "type": "ai", "content": "", "tool_calls": [{"name": "get_order", "args": {"number": 452}, "id": "c1"}],
        "usage_metadata": {"input_tokens": 20, "output_tokens": 5},
    }  # fmt: skip
    thread.call("main/agent", "model", "gpt-4o", request, told)
    thread.writes(one, "agent", ("messages", [asks]))
    two = thread.step(one, {"messages": [question, asks]})
    thread.call("main/tools", "tool", "get_order", {"arguments": {"number": 452}}, "delivered")
    order: Value = {"id": 452, "status": "delivered"}
    thread.writes(two, "tools", ("messages", [found]), ("order", order))
    three = thread.step(two, {"messages": [question, asks, found], "order": order}, "tools")
    thread.call("main/agent", "model", "gpt-4o", request, {"type": "ai", "content": "Order 452 was delivered."})
    thread.writes(three, "agent", ("messages", [says]))
    four = thread.step(three, {"messages": [question, asks, found, says], "order": order})
    interrupt: Value = {
        "$": "tuple",
        "$items": [{"$": "dataclass", "$class": "langgraph.types:Interrupt", "value": "send it?", "id": "i1"}],
    }
    thread.writes(four, "review", ("__interrupt__", interrupt), first=-3)
    thread.end(turn, value={"messages": 4})
    again = thread.turn(given={"$": "dataclass", "$class": "langgraph.types:Command", "resume": "yes"})
    thread.writes(four, "review", ("__resume__", ["yes"]), first=-4)
    thread.writes(four, "review", ("notes", ["review yes"]))
    thread.step(four, {"messages": [question, asks, found, says], "order": order, "notes": ["review yes"]}, "review")
    thread.end(again)
    return thread
