"""What savers have done to state, by the issues that tell of it: through a graph, a store and other processes' eyes."""

import collections
import dataclasses
import enum
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, TypedDict

import pydantic
import pytest
from alike import same
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from lockstep.errors import Code, StoreError
from lockstep_langgraph import LockstepCheckpointer
from lockstep_langgraph.inert import Inert, InertError

CONFIG: Any = {"configurable": {"thread_id": "t"}}


class Point(pydantic.BaseModel):
    x: int


class Kind(enum.Enum):
    A = "a"


@dataclasses.dataclass
class Total:
    """One of its fields is no argument of the constructor (langgraph #9021)."""

    count: int
    total: int = dataclasses.field(init=False, default=0)


class Undeclared(pydantic.BaseModel):
    x: int


class State(TypedDict):
    value: Any
    total: Total
    point: Point
    kind: Kind


def graph(store: Path, value: Any = None, types: tuple[Any, ...] = (), then: Any = None) -> Any:
    def work(state: State) -> dict[str, Any]:
        return {"value": value() if callable(value) else value}

    builder = StateGraph(State)
    builder.add_node("work", work)
    builder.add_edge(START, "work")
    builder.add_node("then", then or (lambda state: {}))
    builder.add_edge("work", "then")
    return builder.compile(checkpointer=LockstepCheckpointer(store, types=types))


VALUES: dict[str, Any] = {
    "defaultdict, #8184": collections.defaultdict(list, {"a": [1]}),
    "Counter, #8157": collections.Counter("aab"),
    "deque with a bound": collections.deque([1, 2], maxlen=2),
    "tuple": (1, ("a",)),
    "set": {1, 2},
    "int of more than 64 bits, #5054": 1 << 100,
    "a map with other keys than texts": {1: "a", ("b", 2): None},
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_value_is_after_a_stop_what_it_was_before(tmp_path: Path, value: Any) -> None:
    store = tmp_path / "store.db"
    graph(store, value).invoke({"value": None}, CONFIG)

    assert same(graph(store).get_state(CONFIG).values["value"], value)


def test_a_dataclass_whose_field_is_no_argument_stays_one(tmp_path: Path) -> None:
    total = Total(3)
    total.total = 12
    store = tmp_path / "store.db"
    graph(store).invoke({"total": total, "point": Point(x=1), "kind": Kind.A}, CONFIG)
    found = graph(store).get_state(CONFIG).values

    assert same(found["total"], total) and found["total"].total == 12
    assert same(found["point"], Point(x=1)) and found["kind"] is Kind.A


def test_a_type_that_nobody_declared_is_told_by_its_path_when_it_is_stored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = tmp_path / "store.db"
    graph(store, {"deep": [Undeclared(x=1)]}).invoke({"value": None}, CONFIG)

    (told,) = {record.getMessage() for record in caplog.records if record.name == "lockstep"}
    assert told.startswith("value.deep[0] holds a ") and ":Undeclared" in told and "types=[Undeclared]" in told
    found = graph(store).get_state(CONFIG).values["value"]["deep"][0]
    assert type(found) is Inert and found["x"] == 1
    named = graph(store, types=(Undeclared,)).get_state(CONFIG).values["value"]["deep"][0]
    assert same(named, Undeclared(x=1))


def test_it_goes_through_a_process_that_does_not_know_it_unharmed(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    graph(store, Undeclared(x=1), then=lambda state: {"point": Point(x=interrupt("?"))}).invoke({}, CONFIG)
    program = textwrap.dedent(
        f"""
        from typing import Any, TypedDict
        from langgraph.graph import START, StateGraph
        from langgraph.types import Command, interrupt
        from lockstep_langgraph import LockstepCheckpointer

        class State(TypedDict):
            value: Any
            point: Any

        def then(state):
            answer = interrupt("?")
            return {{"value": [state["value"], answer]}}

        builder = StateGraph(State).add_node("work", lambda state: {{}}).add_node("then", then)
        graph = builder.add_edge(START, "work").add_edge("work", "then").compile(
            checkpointer=LockstepCheckpointer({str(store)!r})
        )
        print(graph.invoke(Command(resume=5), {CONFIG!r})["value"][0]["x"])
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "1\n", done.stderr
    assert "Undeclared" in done.stderr

    found = graph(store, types=(Undeclared,)).get_state(CONFIG).values["value"]
    assert same(found, [Undeclared(x=1), 5])


def test_what_cannot_be_stored_fails_once_with_its_channel_s_path(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    with pytest.raises(StoreError) as error:
        graph(store, lambda: {"deep": [1, open]}).invoke({"value": "before"}, CONFIG)

    assert error.value.code is Code.UNSTORABLE
    assert "value.deep[1]" in str(error.value) and len(str(error.value)) < 300
    assert graph(store).get_state(CONFIG).values["value"] == "before"


class PaymentError(Exception):
    pass


@pytest.mark.parametrize(
    ("raised", "kept"), [(ValueError("no", 7), ValueError), (PaymentError("declined"), InertError)]
)
def test_an_error_of_a_node_is_kept_as_an_error(tmp_path: Path, raised: Exception, kept: type[Exception]) -> None:
    store = tmp_path / "store.db"

    def fail() -> Any:
        raise raised

    with pytest.raises(type(raised)):
        graph(store, fail).invoke({"value": None}, CONFIG)
    (task,) = graph(store).get_state(CONFIG).tasks

    assert type(task.error) is kept
    assert type(raised).__name__ in repr(task.error) and str(raised.args[0]) in str(task.error)
    named = graph(store, types=(PaymentError,)).get_state(CONFIG).tasks[0].error
    assert type(named) is type(raised) and named.args == raised.args
