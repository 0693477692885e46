"""What the official suite does not ask: sync methods, order, late and early writes, clones, lists, reads of nothing."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import WRITES_IDX_MAP, BaseCheckpointSaver
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from saved_graphs import asking, chat, fan, line, thread

from lockstep_langgraph import LockstepCheckpointer

type Saver = LockstepCheckpointer
type Opened = Callable[..., Saver]


def checkpoint(values: dict[str, Any] | None = None, **more: Any) -> Any:
    values = values or {}
    return {
        "v": 4,
        "id": str(uuid6()),
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": values,
        "channel_versions": dict.fromkeys(values, 1),
        "versions_seen": {},
        "updated_channels": None,
        **more,
    }


def put(saver: Any, values: dict[str, Any] | None = None, parent: Any = None, ns: str = "", **metadata: Any) -> Any:
    made = checkpoint(values)
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": ns}}
    if parent is not None:
        config["configurable"]["checkpoint_id"] = parent["configurable"]["checkpoint_id"]
    return saver.put(config, made, {"source": "loop", "step": 0, "parents": {}, **metadata}, made["channel_versions"])


def test_every_method_of_the_contract_is_its_own_in_both_halves() -> None:
    for name in vars(BaseCheckpointSaver):
        if name.startswith("_") or name in ("serde", "get", "aget", "config_specs"):
            continue
        assert name in vars(LockstepCheckpointer), name
    assert "task_path" in inspect.signature(LockstepCheckpointer.put_writes).parameters
    assert "task_path" in inspect.signature(LockstepCheckpointer.aput_writes).parameters


def test_sync_methods_do_what_the_async_ones_do(saver: Saver) -> None:
    first = put(saver, {"a": 1}, run_id="one")
    second = put(saver, {"a": 2}, first, run_id="two")
    saver.put_writes(second, [("a", 3)], "task")
    assert [found.checkpoint["channel_values"] for found in saver.list(thread())] == [{"a": 2}, {"a": 1}]
    saver.copy_thread("t", "copy")
    assert len(list(saver.list(thread("copy")))) == 2
    saver.delete_for_runs(["one"])
    assert [found.metadata["run_id"] for found in saver.list(None)] == ["two", "two"]
    saver.prune(["copy"])
    (kept,) = saver.list(thread("copy"))
    assert kept.pending_writes == [("task", "a", 3)]
    saver.delete_thread("copy")
    assert saver.get_tuple(thread("copy")) is None


def test_pending_writes_come_in_the_order_in_which_a_superstep_applies_them(saver: Saver) -> None:
    where = put(saver)
    told = [
        ("~__pregel_pull, b", "1"),
        ("", "9"),
        ("~__pregel_push, 0000000001, False", "3"),
        ("~__pregel_pull, b", "0"),
    ]
    for path, task in told:
        saver.put_writes(where, [("y", task), ("x", path), ("__interrupt__", 1)], task, path)
    found = saver.get_tuple(where)
    assert found is not None
    expected = [(task, channel) for path, task in sorted(told) for channel in ("__interrupt__", "y", "x")]
    assert [(task, channel) for task, channel, _ in found.pending_writes or ()] == expected


def test_a_write_is_kept_once_and_a_special_one_is_replaced(saver: Saver, opened: Opened) -> None:
    where = put(saver)
    saver.put_writes(where, [("a", 1), ("__error__", "first")], "task")
    saver.put_writes(where, [("a", 2), ("__error__", "second"), ("b", 3)], "task")
    for each in (saver, opened()):
        found = each.get_tuple(where)
        assert found is not None
        assert sorted(found.pending_writes or (), key=str) == [
            ("task", "__error__", "second"),
            ("task", "a", 1),
            ("task", "b", 3),
        ]
    assert WRITES_IDX_MAP["__error__"] < 0


def test_writes_count_whether_they_come_before_their_checkpoint_or_after_its_child(
    saver: Saver, opened: Opened
) -> None:
    made = checkpoint({"a": 1})
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": made["id"]}}
    saver.put_writes(config, [("a", "early")], "one")
    assert saver.get_tuple(config) is None
    above = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    where = saver.put(above, made, {"source": "input", "step": -1, "parents": {}}, {"a": 1})
    put(saver, {"a": 2}, where)
    saver.put_writes(where, [("a", "late")], "two")
    for each in (saver, opened()):
        found = each.get_tuple(where)
        assert found is not None
        assert found.pending_writes == [("one", "a", "early"), ("two", "a", "late")]


def test_a_slow_write_is_not_lost_behind_the_next_checkpoint(saver: Saver, monkeypatch: pytest.MonkeyPatch) -> None:
    """#8039: LangGraph waits for no write before it puts what comes next."""

    import threading

    plain = LockstepCheckpointer.put_writes
    passed = threading.Event()

    def slow(self: Any, *told: Any, **more: Any) -> None:
        passed.wait(5)
        plain(self, *told, **more)

    def last(state: Any) -> Any:
        passed.set()
        return {"seen": ["c"]}

    monkeypatch.setattr(LockstepCheckpointer, "put_writes", slow)
    line(saver, "a", "b", "c", c=last).invoke({"seen": []}, thread())
    written = [found.pending_writes for found in saver.list(thread())]
    assert [[channel for _, channel, _ in each or ()][:1] for each in written] == [
        [],
        ["seen"],
        ["seen"],
        ["seen"],
        ["seen"],
    ]


def test_reads_make_nothing(store: str, saver: Saver) -> None:
    """#8754, #8054: five reads of missing threads left five ghosts."""

    import os

    graph = line(saver, "a")
    assert graph.get_state(thread("ghost")).values == {}
    assert saver.get_tuple(thread("ghost")) is None
    assert list(saver.list(thread("ghost"))) == list(saver.list(None)) == []
    saver.delete_thread("ghost")
    saver.prune(["ghost"])
    saver.copy_thread("ghost", "other")
    assert not os.path.exists(store)
    graph.invoke({"seen": []}, thread("real"))
    graph.get_state(thread("ghost"))
    assert {found.config["configurable"]["thread_id"] for found in saver.list(None)} == {"real"}


def test_thread_ids_are_text_and_may_be_anything(saver: Saver, opened: Opened) -> None:
    """#6239"""

    ids = (7, "a/b:c@d%-", "\u00fc" * 300, "\u00fc" * 301, " ", "\u200b\n", "%2F", "/")
    for id in ids:
        line(saver, "a").invoke({"seen": []}, thread(id))
        found = opened().get_tuple(thread(id))
        assert found is not None
        assert found.config["configurable"]["thread_id"] == str(id)
    listed = {found.config["configurable"]["thread_id"] for found in opened().list(None)}
    assert listed == {str(id) for id in ids}


def test_listing_is_as_the_in_memory_saver_does_it(saver: Saver) -> None:
    memory = InMemorySaver()
    for each in (saver, memory):
        config: Any = None
        ids = {}
        for step in range(6):
            made = checkpoint({"a": step}, id=f"{step}", channel_versions={"a": step})
            at = {"configurable": {"thread_id": "t", "checkpoint_ns": "" if step < 4 else "sub:1"}}
            about: Any = {
                "source": "loop",
                "step": step,
                "a.b": {"x": step % 2, "y": 1},
                "writes": {"old": object.__name__},
            }
            ids[step] = config = each.put(at, made, about, {"a": step})
    asked: list[tuple[Any, dict[str, Any]]] = [
        (thread(), {}),
        (thread(checkpoint_ns=""), {}),
        (thread(checkpoint_ns="sub:1"), {"limit": 1}),
        (thread(checkpoint_id="2"), {}),
        (thread(), {"limit": 0}),
        (thread(), {"filter": {"a.b": {"y": 1, "x": 1}}}),
        (thread(), {"filter": {"step": 3, "source": "loop"}}),
        (thread(), {"filter": {"'; DROP TABLE run; --": 1}}),
        (thread(), {"filter": {"missing": None}, "limit": 2}),
        (thread(), {"before": thread(checkpoint_id="3")}),
        (None, {"before": thread(checkpoint_id="5"), "limit": 3}),
    ]
    for config, options in asked:
        ours = [(each.config, each.checkpoint, each.metadata) for each in saver.list(config, **options)]
        theirs = [(each.config, each.checkpoint, each.metadata) for each in memory.list(config, **options)]
        assert ours == theirs, (config, options)


def test_a_list_gives_metadata_without_making_a_value(saver: Saver, monkeypatch: pytest.MonkeyPatch) -> None:
    from lockstep_langgraph.cells import Listed

    chat(saver).invoke({"messages": ["hello"], "left": 5}, thread())
    made: list[int] = []
    plain = Listed.make
    monkeypatch.setattr(Listed, "make", lambda self, *how: (made.append(1), plain(self, *how))[1])
    listed = list(saver.list(thread()))
    assert [found.metadata["step"] for found in listed] == [5, 4, 3, 2, 1, 0, -1]
    assert made == []
    assert len(listed[0].checkpoint["channel_values"]["messages"]) == 6
    assert made == [1]


def test_a_listed_checkpoint_is_a_dict_in_all_that_one_can_ask_of_it(saver: Saver) -> None:
    import copy
    import json
    import pickle

    where = put(saver, {"a": [1], "b": {"c": 2}})

    def listed() -> Any:
        (found,) = saver.list(thread())
        return found.checkpoint["channel_values"]

    values = {"a": [1], "b": {"c": 2}}
    fetched = saver.get_tuple(where)
    assert fetched is not None
    assert fetched.checkpoint["channel_values"] == values
    assert listed() == values == listed()
    assert dict(listed()) == {**listed()} == listed().copy() == copy.deepcopy(listed()) == values
    assert pickle.loads(pickle.dumps(listed())) == values
    assert json.loads(json.dumps(listed())) == values
    assert list(listed().items()) == list(values.items())
    assert (listed() | {"d": 1}, {"d": 1} | listed()) == ({**values, "d": 1}, {"d": 1, **values})
    assert (listed().get("a"), listed().get("z", 7), listed().pop("b")) == ([1], 7, {"c": 2})
    assert repr(listed()) == repr(values)
    assert len(listed()) == 2 and "a" in listed() and listed() != {}


def test_what_is_read_is_the_reader_s_own(saver: Saver) -> None:
    where = put(saver, {"a": [[1]], "b": {"c": {}}})
    for _ in range(2):
        found = saver.get_tuple(where)
        assert found is not None
        values = found.checkpoint["channel_values"]
        assert values == {"a": [[1]], "b": {"c": {}}}
        values["a"][0].append(2)
        values["b"]["c"]["d"] = 1
        found.checkpoint["channel_versions"]["a"] = 9
        found.metadata["parents"]["x"] = "y"


def test_a_clone_shares_everything_with_the_saver_that_it_was_made_of(saver: Saver) -> None:
    clone = saver.with_allowlist([("shop.models", "Order")])
    assert isinstance(clone, LockstepCheckpointer)
    assert clone is not saver
    where = put(clone, {"a": 1})
    assert saver.get_tuple(where) == clone.get_tuple(where)
    put(saver, {"a": 2}, where)
    assert clone.get_tuple(thread()) == saver.get_tuple(thread())


def test_a_channel_that_lost_its_value_has_none_and_an_older_checkpoint_still_has_it(
    saver: Saver, opened: Opened
) -> None:
    first = put(saver, {"a": 1, "b": 2})
    made = checkpoint({"a": 1}, channel_versions={"a": 1, "b": 2})
    second = saver.put(first, made, {"source": "loop", "step": 1, "parents": {}}, {"b": 2})
    for each in (saver, opened()):
        assert [found.checkpoint["channel_values"] for found in each.list(thread())] == [{"a": 1}, {"a": 1, "b": 2}]
    assert second["configurable"]["checkpoint_id"] == made["id"]


def test_lists_come_back_as_they_were_at_each_checkpoint(saver: Saver, opened: Opened) -> None:
    """Grown, cut, changed in the middle, changed in place, emptied, replaced by what is no list."""
    shared = {"x": [1]}
    states: list[Any] = [
        [1, 2, 3],
        [1, 2, 3, shared],
        [3, shared],
        [3, shared, "new"],
        [3, {"other": 1}, "new"],
        [],
        [[], [[]]],
        "no list",
        [1],
    ]
    config: Any = None
    expected = []
    for number, state in enumerate(states):
        made = checkpoint({"a": state}, channel_versions={"a": number + 1})
        config = saver.put(
            config or thread(checkpoint_ns=""),
            made,
            {"source": "loop", "step": number, "parents": {}},
            {"a": number + 1},
        )
        expected.append(repr(state))
        if state and state[-1] is shared:
            shared["x"].append(number)
    for each in (saver, opened()):
        found = [repr(one.checkpoint["channel_values"]["a"]) for one in each.list(thread())]
        assert found == expected[::-1]


def test_a_message_changed_in_place_is_stored_as_it_is_then(saver: Saver, opened: Opened) -> None:
    def rename(state: Any) -> Any:
        state["messages"][0].content = "changed"
        state["messages"][-1].additional_kwargs["note"] = "here"
        return {"messages": []}

    graph = chat(saver)
    graph.invoke({"messages": ["hello"], "left": 3}, thread())
    from langgraph.graph import START, StateGraph
    from saved_graphs import Chat

    renaming = StateGraph(Chat).add_node("rename", rename).add_edge(START, "rename").compile(checkpointer=saver)
    renaming.invoke({"left": 0, "messages": []}, thread())
    for each in (saver, opened()):
        first, *_, last = chat(each).get_state(thread()).values["messages"]
        assert (first.content, last.additional_kwargs) == ("changed", {"note": "here"})


def test_the_same_state_comes_from_both_halves_in_threads_and_loops(saver: Saver) -> None:
    """#7857: a write from inside the loop waited for ever."""

    graph = asking(saver)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: graph.invoke({"seen": []}, thread(f"sync-{n}")), range(8)))

    async def together() -> None:
        await asyncio.gather(*(graph.ainvoke({"seen": []}, thread(f"async-{n}")) for n in range(8)))
        await saver.aput_writes((await saver.aget_tuple(thread("async-0"))).config, [("word", "x")], "inside a loop")  # type: ignore[union-attr]

    asyncio.run(together())
    states = {repr(graph.get_state(thread(f"{half}-{n}")).next) for half in ("sync", "async") for n in range(8)}
    assert states == {"('ask',)"}


def test_parallel_tasks_leave_their_writes_under_one_checkpoint(saver: Saver, opened: Opened) -> None:
    def fails(state: Any) -> Any:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            found = saver.get_tuple(thread())
            if found is not None and len(found.pending_writes or ()) == 4:
                break
            time.sleep(0.002)
        raise ValueError("no luck")

    with pytest.raises(ValueError, match="no luck"):
        fan(saver, "a", "b", "c", b=fails).invoke({"seen": []}, thread())
    again = opened()
    found = again.get_tuple(thread())
    assert found is not None
    assert sorted(channel for _, channel, _ in found.pending_writes or ()) == [
        "__error__",
        "branch:to:join",
        "branch:to:join",
        "seen",
        "seen",
    ]
    ran: list[str] = []

    def counted(name: str) -> Any:
        return lambda state: (ran.append(name), {"seen": [name]})[1]

    graph = fan(again, "a", "b", "c", a=counted("a"), b=counted("b"), c=counted("c"))
    assert graph.invoke(None, thread())["seen"] == ["a", "b", "c", "join"]
    assert ran == ["b"]


def test_versions_of_another_saver_go_on_as_text() -> None:
    saver = LockstepCheckpointer.over(None)  # type: ignore[arg-type]
    assert [saver.get_next_version(None, None), saver.get_next_version(3, None), saver.get_next_version(3.0, None)] == [
        1,
        4,
        4,
    ]
    theirs = InMemorySaver().get_next_version(InMemorySaver().get_next_version(None, None), None)  # type: ignore[arg-type]
    assert saver.get_next_version(theirs, None) > theirs


def test_what_makes_no_sense_is_refused(saver: Saver, store: str) -> None:
    with pytest.raises(ValueError, match="on_conflict"):
        LockstepCheckpointer(store, on_conflict="shrug")  # type: ignore[arg-type]
    for asked in (lambda: saver.get_tuple({"configurable": {}}), lambda: list(saver.list({"configurable": {}}))):
        with pytest.raises(KeyError, match="thread_id"):
            asked()
    assert list(saver.list(None, before={"configurable": {"checkpoint_id": "0"}})) == []


def test_without_a_store_it_is_the_one_of_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LOCKSTEP_STORE", raising=False)
    monkeypatch.chdir(tmp_path)
    saver = LockstepCheckpointer()
    line(saver, "a").invoke({"seen": []}, thread())
    saver.close()
    assert (tmp_path / ".lockstep" / "store.db").exists()
    assert line(LockstepCheckpointer(tmp_path / ".lockstep" / "store.db"), "a").get_state(thread()).values["seen"] == [
        "a"
    ]


def test_a_graph_that_is_compiled_in_langgraph_s_strict_mode_has_a_clone_of_the_same_threads(
    saver: Saver, monkeypatch: pytest.MonkeyPatch
) -> None:
    from langgraph._internal import _serde as serde

    monkeypatch.setattr(serde, "STRICT_MSGPACK_ENABLED", True)
    graph = chat(saver)
    assert (graph.checkpointer is not saver) == hasattr(BaseCheckpointSaver, "with_allowlist")
    assert isinstance(graph.checkpointer, LockstepCheckpointer)
    graph.invoke({"messages": ["hello"], "left": 2}, thread())
    ours, its = saver.get_tuple(thread()), graph.checkpointer.get_tuple(thread())
    assert ours == its
    assert ours is not None
    assert [each.type for each in ours.checkpoint["channel_values"]["messages"]] == ["human", "ai", "ai"]


def test_it_can_be_used_in_a_with_block(store: str) -> None:
    with LockstepCheckpointer(store) as saver:
        line(saver, "a").invoke({"seen": []}, thread())

    async def again() -> Any:
        async with LockstepCheckpointer(store) as saver:
            return (await line(saver, "a").aget_state(thread())).values["seen"]

    assert asyncio.run(again()) == ["a"]
