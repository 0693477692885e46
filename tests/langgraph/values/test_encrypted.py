"""Threads of a checkpointer with a serializer of the program's own, here one that encrypts."""

from pathlib import Path
from typing import Any

import pytest
from cipher import Xor
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import START, MessagesState, StateGraph

from lockstep.errors import StoreError
from lockstep.log.store import open_store
from lockstep_langgraph import LockstepCheckpointer

CONFIG: Any = {"configurable": {"thread_id": "t"}}


def _graph(store: Path, key: int = 0x5A, edit: bool = False) -> Any:
    def answer(state: MessagesState) -> dict[str, Any]:
        if edit:
            state["messages"][0].content = "edited in place"
        return {"messages": [AIMessage(f"the answer to swordfish {len(state['messages'])}")]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    return builder.compile(checkpointer=LockstepCheckpointer(store, serde=EncryptedSerializer(Xor(key))))


def _texts(graph: Any) -> list[str]:
    return [message.content for message in graph.get_state(CONFIG).values["messages"]]


def _turns(store: Path, count: int) -> int:
    """Turns of a thread, each by a checkpointer that has just opened it; the size of the store then."""
    for number in range(count):
        graph = _graph(store)
        graph.invoke({"messages": [HumanMessage(f"swordfish {number} " + "x" * 2000)]}, CONFIG)
        graph.checkpointer.close()
    return store.stat().st_size


def test_state_comes_back_in_another_process_and_stands_nowhere_in_clear(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    _turns(store, 3)

    assert [text.split()[0] for text in _texts(_graph(store))] == ["swordfish", "the"] * 3
    assert "swordfish" not in _told(store)


def test_what_models_are_asked_and_answer_is_not_recorded_beside_it(tmp_path: Path) -> None:
    model = GenericFakeChatModel(messages=iter([AIMessage("swordfish too")]))
    builder = StateGraph(MessagesState)
    builder.add_node("ask", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_edge(START, "ask")
    saver = LockstepCheckpointer(tmp_path / "store.db", serde=EncryptedSerializer(Xor()))
    builder.compile(checkpointer=saver).invoke({"messages": [HumanMessage("swordfish")]}, CONFIG)
    saver.close()

    assert _texts(_graph(tmp_path / "store.db")) == ["swordfish", "swordfish too"]
    assert "swordfish" not in _told(tmp_path / "store.db")


def _told(path: Path) -> str:
    """All that a store says."""
    store = open_store(path)
    events = [
        event for run in store.runs() for stream in run.streams for event in store.run(run.name).events(stream.id)
    ]
    store.close()
    assert len(events) > 5
    return str(events)


def test_messages_that_were_read_again_are_not_stored_again(tmp_path: Path) -> None:
    few, many = _turns(tmp_path / "few.db", 10), _turns(tmp_path / "many.db", 30)

    assert many < 4 * few


def test_a_message_that_a_node_edits_is_stored_as_edited(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    _turns(store, 2)
    graph = _graph(store, edit=True)
    graph.invoke({"messages": [HumanMessage("more")]}, CONFIG)

    assert _texts(_graph(store))[0] == "edited in place"


def test_a_wrong_key_stops_a_turn_and_leaves_the_thread_as_it_was(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    _turns(store, 1)
    with pytest.raises(StoreError, match="LS208"):
        _graph(store, key=1).invoke({"messages": [HumanMessage("more")]}, CONFIG)

    assert len(_texts(_graph(store))) == 2
