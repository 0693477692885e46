"""What is kept, how much of it, and what of it is hidden."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from saved_graphs import asking, chat, line, thread

from lockstep.log.store import open_store
from lockstep_langgraph import LockstepCheckpointer, held
from lockstep_langgraph.threads import Thread

type Saver = LockstepCheckpointer
type Opened = Callable[..., Saver]

KEY = "sk-proj-4f9a8b7c6d5e4f3a2b1c0d9e8f7a6b5c4d3e2f1a"


def size(path: str) -> int:
    """Bytes of a store that is closed."""
    return sum(each.stat().st_size for each in Path(path).parent.iterdir() if each.is_file())


def bytes_of(path: str) -> bytes:
    return b"".join(
        each.read_bytes() for each in Path(path).parent.iterdir() if each.is_file() and "vault" not in each.name
    )


def test_a_secret_of_the_configuration_is_in_no_file_and_comes_back(saver: Saver, opened: Opened, store: str) -> None:
    config = thread(api_key=KEY, user_id="u-1")
    line(saver, "a").invoke({"seen": [], "word": f"Authorization: Bearer {KEY}"}, config)
    saver.close()
    assert KEY.encode() not in bytes_of(store)
    again = opened()
    found = again.get_tuple(thread())
    assert found is not None
    assert (found.metadata["api_key"], found.metadata["user_id"]) == (KEY, "u-1")  # type: ignore[typeddict-item]
    assert found.checkpoint["channel_values"]["word"].endswith(KEY)
    assert len(list(again.list(thread(), filter={"api_key": KEY}))) == 3
    with open_store(store) as opened_store:
        reader = opened_store.run("langgraph/t")
        shown = [str(event.body) for event in reader.events(reader.main)]
    assert not any(KEY in each for each in shown)


def test_what_a_checkpoint_s_config_holds_beside_is_not_kept(saver: Saver) -> None:
    """`put` is given the whole config, with callbacks and LangGraph's own objects."""
    line(saver, "a").invoke({"seen": []}, thread(user_id="u-1", session=object()))
    found = saver.get_tuple(thread())
    assert found is not None
    assert set(found.metadata) == {"source", "step", "parents", "user_id"}


def test_metadata_of_older_versions_is_kept_as_it_is(saver: Saver, opened: Opened) -> None:
    """#8942: `writes` with messages broke a put that made JSON of it."""
    from langchain_core.messages import AIMessage
    from test_contract import checkpoint

    about: Any = {
        "source": "loop",
        "step": 1,
        "parents": {},
        "writes": {"node": {"messages": [AIMessage("hi", id="1")]}},
    }
    where = saver.put({"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, checkpoint(), about, {})
    for each in (saver, opened()):
        found = each.get_tuple(where)
        assert found is not None
        assert found.metadata == about


@pytest.mark.parametrize("sealed", [True, False])
def test_a_serializer_of_the_program_s_own_is_used_for_values(opened: Opened, store: str, sealed: bool) -> None:
    class Marked(JsonPlusSerializer):
        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            kind, data = super().dumps_typed(obj)
            return f"marked-{kind}", data

        def loads_typed(self, data: tuple[str, bytes]) -> Any:
            assert data[0].startswith("marked-")
            return super().loads_typed((data[0].removeprefix("marked-"), data[1]))

    class Cipher:
        def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
            import os

            return "xor", os.urandom(4) + bytes(each ^ 0x5A for each in plaintext)

        def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
            assert ciphername == "xor"
            return bytes(each ^ 0x5A for each in ciphertext[4:])

    serde: Any = EncryptedSerializer(Cipher()) if sealed else Marked()
    saver = opened(serde=serde)
    graph = chat(saver)
    graph.invoke({"messages": ["a word that is private"], "left": 4}, thread())
    saver.close()
    if sealed:
        assert b"a word that is private" not in bytes_of(store)
    again = opened(serde=serde)
    assert [found.metadata["step"] for found in again.list(thread(), filter={"source": "loop"})] == [4, 3, 2, 1, 0]
    assert chat(again).get_state(thread()).values["messages"][0].content == "a word that is private"
    again.prune(["t"])
    assert len(chat(again).invoke({"messages": ["more"], "left": 2}, thread())["messages"]) == 8


def test_a_chat_takes_as_much_room_for_each_step_however_long_it_is(tmp_path: Path) -> None:
    """#7714, #7547: what stores all of the list in each step grows by its square."""

    sizes = []
    for steps in (250, 500):
        path = str(tmp_path / str(steps) / "store.db")
        saver = LockstepCheckpointer(path)
        chat(saver, 200).invoke({"messages": ["hello"], "left": steps}, thread())
        saver.close()
        sizes.append(size(path) / steps)
    assert sizes[1] <= 1.2 * sizes[0]  # what stores the whole list each time has twice as much


def test_threads_that_are_not_used_are_let_go_and_come_back(
    saver: Saver, opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held, "MOST_THREADS", 3)
    alive: weakref.WeakSet[Thread] = weakref.WeakSet()
    plain = Thread.__init__
    monkeypatch.setattr(Thread, "__init__", lambda self, *told: (plain(self, *told), alive.add(self))[0])
    graph = asking(saver)
    for number in range(12):
        graph.invoke({"seen": []}, thread(number))
    gc.collect()
    assert len(alive) <= 4
    for number in range(12):
        assert graph.get_state(thread(number)).next == ("ask",)
    assert len({found.config["configurable"]["thread_id"] for found in saver.list(None)}) == 12
    gc.collect()
    assert len(alive) <= 4


def test_a_thread_that_a_turn_is_on_in_stays(saver: Saver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "MOST_THREADS", 1)
    others = line(saver, "a")

    def work(state: Any) -> Any:
        for number in range(4):
            others.invoke({"seen": []}, thread(f"other-{number}"))
        return {"seen": ["work"]}

    assert line(saver, "work", "rest", work=work).invoke({"seen": []}, thread())["seen"] == ["work", "rest"]
    assert others.get_state(thread("other-3")).values["seen"] == ["a"]


def test_a_checkpointer_is_collected_with_what_it_was_made_for(store: str) -> None:
    saver = LockstepCheckpointer(store)
    line(saver, "a").invoke({"seen": []}, thread())
    core = weakref.ref(saver._core)
    saver.close()
    del saver
    gc.collect()
    assert core() is None


def test_a_copy_of_a_thread_has_all_of_it_and_takes_room_once_more_at_most(tmp_path: Path) -> None:
    """#7859"""
    path = str(tmp_path / "store.db")
    saver = LockstepCheckpointer(path)
    graph = chat(saver, 200)
    graph.invoke({"messages": ["hello"], "left": 200}, thread())
    saver.close()
    before = size(path)
    saver.copy_thread("t", "copy")
    assert graph.get_state(thread("copy")).values == graph.get_state(thread()).values
    one, other = (list(saver.list(thread(id))) for id in ("t", "copy"))
    assert [(each.checkpoint, each.metadata, each.pending_writes) for each in one] == [
        (each.checkpoint, each.metadata, each.pending_writes) for each in other
    ]
    saver.close()
    assert size(path) <= 2 * before


def test_nothing_waits_in_line_behind_a_put(saver: Saver, store: str) -> None:
    """#7094: what was put is stored when `put` returns, so that no backlog keeps old checkpoints alive."""
    import asyncio

    from test_contract import checkpoint

    async def all_of_them() -> None:
        where: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        for number in range(50):
            made = checkpoint({"a": [number]}, channel_versions={"a": number + 1})
            where = await saver.aput(where, made, {"source": "loop", "step": number, "parents": {}}, {"a": number + 1})
            with open_store(store) as read:
                assert read.run("langgraph/t").info.steps == number + 1

    asyncio.run(all_of_them())
