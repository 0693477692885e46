"""What a model said is edited as its message, as `show` prints it: whole, or one place of it."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.tools import tool
from recorded import step_of
from scripted import Asked, Scripted, Streaming, says

import lockstep
from lockstep.errors import Code, EditError

ORDERS: Any = [[("get_order", {"order_id": 1})], "Refunded"]


def shop(asked: Asked, model: type[Scripted]) -> Any:
    @tool
    def get_order(order_id: int) -> str:
        """Looks up an order."""
        return f"order {order_id}: total {asked.tool('get_order')}"

    return create_agent(model(says=says(*ORDERS), asked=asked), [lockstep.mark(get_order, effect="read")])


def invoked(asked: Asked, model: type[Scripted]) -> Any:
    graph = shop(asked, model)
    return lambda: [message.content for message in graph.invoke({"messages": [("user", "broken")]})["messages"]]


def streamed(asked: Asked, model: type[Scripted]) -> Any:
    graph = shop(asked, model)
    question: Any = {"messages": [("user", "broken")]}

    def program() -> list[Any]:
        return ["".join(str(each[0].content) for each in graph.stream(question, stream_mode="messages"))]

    return program


@pytest.mark.parametrize(("make", "model"), [(invoked, Scripted), (streamed, Streaming)])
@pytest.mark.parametrize(
    "edit", [(":content", "EDITED"), ("", {"content": "EDITED"}), ("", {"role": "assistant", "content": "EDITED"})]
)
def test_a_last_word_is_edited(edit: Any, model: type[Scripted], make: Any) -> None:
    asked = Asked()
    program = make(asked, model)
    with lockstep.record("run"):
        before = program()
    asked.clear()
    last = step_of("model", 1)
    fork = lockstep.fork(f"run:{last}", program, edits={f"{last}{edit[0]}": edit[1]})
    assert fork.result[-1].endswith("EDITED")
    assert fork.result[:-1] == before[:-1]
    assert (asked.models, asked.tools) == (0, [])


@pytest.mark.parametrize(("make", "model"), [(invoked, Scripted), (streamed, Streaming)])
def test_an_argument_of_a_tool_call_is_edited(model: type[Scripted], make: Any) -> None:
    asked = Asked()
    program = make(asked, model)
    with lockstep.record("run"):
        program()
    asked.clear()
    first = step_of("model", 0)
    fork = lockstep.fork(f"run:{first}", program, edits={f"{first}:tool_calls[0].args.order_id": 77})
    assert "order 77" in "".join(fork.result)
    assert (asked.models, asked.tools) == (1, ["get_order"])


def test_a_failure_is_given_in_the_place_of_an_answer() -> None:
    asked = Asked()
    program = invoked(asked, Streaming)
    with lockstep.record("run"):
        program()
    last = step_of("model", 1)
    fork = lockstep.fork(f"run:{last}", program, edits={f"{last}": TimeoutError("too slow")})
    assert isinstance(fork.error, TimeoutError)


def test_what_is_no_message_is_refused() -> None:
    asked = Asked()
    program = invoked(asked, Streaming)
    with lockstep.record("run"):
        program()
    last = step_of("model", 1)
    with pytest.raises(EditError, match="a model's message is") as told:
        lockstep.fork(f"run:{last}", program, edits={f"{last}": "just words"})
    assert told.value.code is Code.UNEDITABLE
