"""What the schemas of graphs declare comes back as itself, without a word to the checkpointer."""

import dataclasses
import enum
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, NewType, NotRequired, TypedDict

import msgspec
import pydantic
import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AnyMessage
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph

from lockstep_langgraph import declared
from lockstep_langgraph.inert import Inert
from lockstep_langgraph.values import Codec


class Base(pydantic.BaseModel):
    id: int = 0


class Derived(Base):
    more: str = ""


class Kind(enum.Enum):
    A = "a"


@dataclasses.dataclass
class Deep:
    kind: Kind = Kind.A


@dataclasses.dataclass
class Holder[T]:
    held: T | None = None
    deep: list[Deep] = dataclasses.field(default_factory=list)


class Pair(NamedTuple):
    left: int = 0
    right: "Late | None" = None


class Late(msgspec.Struct):
    x: int = 0


class Plain:
    def __init__(self) -> None:
        self.x = 1


class Sent(TypedDict):
    plain: Plain


class Undeclared(pydantic.BaseModel):
    x: int = 1


Alias = NewType("Alias", Deep)
type Listed = Sequence[Late]


class State(MessagesState):
    base: Base
    held: NotRequired[Annotated[Holder[Kind], "about it"]]
    pairs: Mapping[str, tuple[Pair, ...]]
    alias: Alias
    listed: Listed
    word: Literal["a", "b"]
    other: list[AnyMessage]
    anything: Any


def _graph() -> Any:
    def first(state: State) -> dict[str, Any]:
        return {}

    def second(state: Sent) -> dict[str, Any]:
        return {}

    builder = StateGraph(State)
    builder.add_node("first", first)
    builder.add_node("second", second)
    builder.add_edge(START, "first")
    return builder.compile()


def test_the_types_of_a_state_at_any_depth_are_declared() -> None:
    graph = _graph()
    found = declared.types()

    assert {Base, Holder, Kind, Deep, Pair, Late, Plain} <= set(found.values())
    assert Undeclared not in found.values()
    del graph


@pytest.mark.parametrize(
    "value",
    [Base(id=1), Derived(id=1, more="x"), Holder(Kind.A, [Deep()]), Pair(1, Late(2)), Late(3), Kind.A],
    ids=repr,
)
def test_values_of_these_types_come_back_as_themselves(value: Any) -> None:
    codec = Codec()
    graph = _graph()
    found = codec.load(codec.dump({"x": [value]}))

    assert type(found["x"][0]) is type(value) and found == {"x": [value]}
    assert codec.reports.losses == []
    del graph


def test_what_a_state_calls_anything_is_inert_until_it_is_named() -> None:
    codec = Codec()
    stored = codec.dump(Undeclared())

    assert type(codec.load(stored)) is Inert
    for name in (Undeclared, f"{__name__}:Undeclared", (__name__, "Undeclared")):
        assert codec.with_types([name]).load(stored) == Undeclared()


@dataclasses.dataclass
class Report:
    text: str


@dataclasses.dataclass
class Asked:
    text: str


def test_a_functional_workflow_declares_what_its_tasks_return_and_it_takes() -> None:
    @task
    def write(text: str) -> list[Report]:
        return [Report(text)]

    @entrypoint()
    def flow(asked: Asked) -> str:
        return write(asked.text).result()[0].text

    codec = Codec()
    assert codec.load(codec.dump([Report("x"), Asked("y")])) == [Report("x"), Asked("y")]
    assert codec.reports.losses == []
    del flow


class Model(GenericFakeChatModel):
    def bind_tools(self, *args: Any, **kwargs: Any) -> Any:
        return self


class Forecast(pydantic.BaseModel):
    degrees: int


def test_an_agent_declares_the_class_of_its_answers() -> None:
    agent = create_agent(Model(messages=iter([])), tools=[], response_format=Forecast)
    codec = Codec()

    assert codec.load(codec.dump(Forecast(degrees=3))) == Forecast(degrees=3)
    assert codec.reports.losses == []
    del agent


def test_the_same_codec_is_given_back_where_nothing_is_new() -> None:
    codec = Codec([Base])

    assert codec.with_types([Base]) is codec
    assert codec.with_types([Derived]) is not codec


@pytest.mark.parametrize("wrong", [5, "NoModule", (1, 2), None])
def test_what_is_no_type_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(TypeError, match="types= takes classes"):
        Codec([wrong])


def test_a_graph_that_was_made_before_the_checkpointer_was_imported_declares_too() -> None:
    program = textwrap.dedent(
        """
        import dataclasses
        from langgraph.graph import StateGraph
        from typing import TypedDict

        @dataclasses.dataclass
        class Order:
            id: int

        class State(TypedDict):
            order: Order

        graph = StateGraph(State).add_node("a", lambda state: {}).set_entry_point("a").compile()
        from lockstep_langgraph.values import Codec
        codec = Codec()
        print(codec.load(codec.dump(Order(5))), codec.reports.losses)
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert done.stdout == "Order(id=5) []\n", done.stderr
    assert "Order" not in done.stderr
