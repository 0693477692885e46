"""What a history hands out is equal to what was stored, and changing it changes nothing that is kept."""

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from lockstep_langgraph import LockstepCheckpointer

STEPS = 40
CONFIG: Any = {"configurable": {"thread_id": "t"}, "recursion_limit": 2 * STEPS}


def _talked(store: Path) -> Any:
    def talk(state: MessagesState) -> dict[str, Any]:
        number = len(state["messages"])
        return {"messages": [AIMessage(f"said {number}", id=str(number), additional_kwargs={"at": [number]})]}

    def more(state: MessagesState) -> str:
        return "talk" if len(state["messages"]) < STEPS else END

    builder = StateGraph(MessagesState)
    builder.add_node("talk", talk)
    builder.add_edge(START, "talk")
    builder.add_conditional_edges("talk", more)
    graph = builder.compile(checkpointer=LockstepCheckpointer(store))
    graph.invoke({"messages": [HumanMessage("hello", id="0")]}, CONFIG)
    return graph


@pytest.fixture
def graph(tmp_path: Path) -> Any:
    return _talked(tmp_path / "store.db")


def _texts(snapshot: Any) -> list[str]:
    return [message.content for message in snapshot.values.get("messages", [])]


def test_each_snapshot_of_a_history_has_the_messages_of_its_step(graph: Any) -> None:
    history = list(graph.get_state_history(CONFIG))
    expected = ["hello", *(f"said {number}" for number in range(1, STEPS))]

    assert [_texts(snapshot) for snapshot in history[:-1]] == [expected[:count] for count in range(STEPS, 0, -1)]
    assert [graph.get_state(snapshot.config).values for snapshot in history] == [each.values for each in history]


def test_the_lists_of_snapshots_and_their_last_messages_are_their_own(graph: Any) -> None:
    history = list(graph.get_state_history(CONFIG))
    for message in history[3].values["messages"][-5:]:
        message.content = "edited"
        message.additional_kwargs["at"].append(0)
    history[5].values["messages"].clear()

    assert not any("edited" in _texts(snapshot) for number, snapshot in enumerate(history) if number != 3)
    assert len(_texts(history[4])) == STEPS - 4


def test_whatever_is_done_to_a_history_the_thread_is_as_it_was(graph: Any) -> None:
    before = [_texts(snapshot) for snapshot in graph.get_state_history(CONFIG)]
    for snapshot in graph.get_state_history(CONFIG):
        for message in snapshot.values.get("messages", []):
            message.content = "edited"
            message.additional_kwargs.clear()

    assert [_texts(snapshot) for snapshot in graph.get_state_history(CONFIG)] == before
    assert graph.get_state(CONFIG).values["messages"][3].additional_kwargs == {"at": [3]}


def test_an_edited_message_of_a_snapshot_can_be_given_to_update_state(graph: Any) -> None:
    snapshot = list(graph.get_state_history(CONFIG))[10]
    message = snapshot.values["messages"][-1]
    message.content = "edited"
    config = graph.update_state(snapshot.config, {"messages": [message]})

    texts = _texts(graph.get_state(config))
    assert texts[-1] == "edited" and len(texts) == STEPS - 10
    assert "edited" not in _texts(graph.get_state(snapshot.config))
