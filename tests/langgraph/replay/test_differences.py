"""A replay of changed code is told where it first differs, and one that would reach outside is stopped."""

from __future__ import annotations

import operator
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.graph import START, StateGraph
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from replayed import replay, run, saver
from scripted import Asked, Scripted, says

from lockstep.errors import Code, Difference
from lockstep_langgraph import LockstepCheckpointer


class State(TypedDict):
    seen: Annotated[list[str], operator.add]


def graph_of(saver: Any, *nodes: Callable[[State], Any]) -> Any:
    builder = StateGraph(State)
    before = START
    for number, node in enumerate(nodes, 1):
        builder.add_node(f"n{number}", node)
        builder.add_edge(before, f"n{number}")
        before = f"n{number}"
    return builder.compile(checkpointer=saver)


def adds(text: str) -> Callable[[State], Any]:
    return lambda state: {"seen": [text]}


def difference(graph: Any, **options: Any) -> Difference:
    played = replay(graph, **options)
    assert not played.report.identical
    found = played.report.difference
    assert found is not None
    return found


def test_a_node_that_makes_another_state_is_told_by_channel() -> None:
    run(graph_of(saver(), adds("a"), adds("b"), adds("c")), "invoke", {"seen": []})
    found = difference(graph_of(saver(), adds("a"), adds("x"), adds("c")))
    assert found.code is Code.STATE
    assert (found.step, found.same_until) == (3, 2)
    assert (found.lane, found.name) == ("main", "n2")
    assert (found.path, found.expected, found.actual) == ("seen[1]", '"b"', '"x"')


def test_a_model_that_is_asked_something_else_is_told_by_field() -> None:
    asked = Asked()

    def asks(prompt: str) -> Callable[[State], Any]:
        model = Scripted(says=says("Fine"), asked=asked)
        return lambda state: {"seen": [model.invoke([("user", prompt)]).content]}

    run(graph_of(saver(), adds("a"), asks("How are you?")), "invoke", {"seen": []})
    asked.clear()
    found = difference(graph_of(saver(), adds("a"), asks("Who are you?")))
    assert asked.models == 0
    assert found.code is Code.REQUEST
    assert found.lane == "main/n2"
    assert found.path == "messages[0].content"
    assert (found.expected, found.actual) == ('"How are you?"', '"Who are you?"')


def test_a_call_too_many_and_one_too_few_are_told() -> None:
    asked = Asked()
    model = Scripted(says=says("Fine"), asked=asked)

    def asks(state: State) -> Any:
        return {"seen": [str(model.invoke([("user", "How are you?")]).content)]}

    run(graph_of(saver(), asks, adds("b")), "invoke", {"seen": []})
    asked.clear()
    assert difference(graph_of(saver(), asks, asks)).code is Code.EXTRA

    def says_so(state: State) -> Any:
        return {"seen": state["seen"]}

    found = difference(graph_of(saver(), says_so, adds("b")))
    assert found.code in (Code.STATE, Code.MISSING)
    assert asked.models == 0


def test_a_node_more_and_a_node_less_are_told() -> None:
    run(graph_of(saver(), adds("a"), adds("b")), "invoke", {"seen": []})
    less = difference(graph_of(saver(), adds("a")))
    assert (less.code, less.path, less.actual) == (Code.STATE, "branch:to:n2", "(absent)")
    more = difference(graph_of(saver(), adds("a"), adds("b"), adds("c")))
    assert (more.code, more.path, more.expected) == (Code.STATE, "branch:to:n3", "(absent)")


def test_a_node_that_raises_now_and_one_that_raises_no_more_are_told() -> None:
    def fails(state: State) -> Any:
        raise ValueError("no")

    run(graph_of(saver(), adds("a"), adds("b")), "invoke", {"seen": []})
    found = difference(graph_of(saver(), adds("a"), fails))
    assert (found.code, found.expected, found.actual) == (Code.END, "returned", "raised ValueError: no")

    run(graph_of(saver(), adds("a"), fails), "invoke", {"seen": []}, {"configurable": {"thread_id": "failed"}})
    found = difference(graph_of(saver(), adds("a"), adds("b")), thread="failed")
    assert found.code in (Code.END, Code.EXTRA)


def test_an_error_of_another_text_is_told() -> None:
    def fails(text: str) -> Callable[[State], Any]:
        def node(state: State) -> Any:
            raise ValueError(text)

        return node

    run(graph_of(saver(), fails("no")), "invoke", {"seen": []})
    assert replay(graph_of(saver(), fails("no"))).report.identical
    found = difference(graph_of(saver(), fails("never")))
    assert (found.expected, found.actual) == ('"no"', '"never"')


def test_code_that_reads_a_clock_replays_at_node_depth() -> None:
    def reads(state: State) -> Any:
        return {"seen": [str(time.time_ns())]}

    graph = graph_of(saver(), adds("a"), reads)
    run(graph, "invoke", {"seen": []})
    assert difference(graph).code is Code.STATE
    assert replay(graph, depth="node").report.identical


def connects(port: int) -> Callable[[State], Any]:
    def node(state: State) -> Any:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            return {"seen": [connection.recv(5).decode()]}

    return node


@pytest.mark.parametrize("entry", ["invoke", "ainvoke"])
def test_a_node_that_dials_by_itself_is_stopped_and_told_of_node_depth(entry: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        graph = graph_of(saver(), adds("a"), connects(port))

        def serve() -> None:
            with server.accept()[0] as connection:
                connection.sendall(b"hello")

        import threading

        thread = threading.Thread(target=serve)
        thread.start()
        run(graph, entry, {"seen": []})
        thread.join()
        server.settimeout(0.05)
        found = difference(graph)
        assert found.code is Code.NOT_COVERED
        assert (found.kind, found.name) == ("socket", f"127.0.0.1:{port}")
        assert "node depth" in found.reason
        assert replay(graph, depth="node").report.identical
        with pytest.raises(TimeoutError):
            server.accept()


def test_a_node_that_starts_a_process_is_stopped(tmp_path: Any) -> None:
    made = tmp_path / "made"

    def starts(state: State) -> Any:
        subprocess.run([sys.executable, "-c", f"open({str(made)!r}, 'a').write('x')"], check=True)
        return {"seen": ["started"]}

    graph = graph_of(saver(), starts)
    run(graph, "invoke", {"seen": []})
    found = difference(graph)
    assert (found.code, found.kind) == (Code.NOT_COVERED, "process")
    assert made.read_text() == "x"


def test_what_hides_a_difference_does_not_hide_it_from_the_replay() -> None:
    asked = Asked()
    model = Scripted(says=says("Fine"), asked=asked)

    def hides(prompt: str) -> Callable[[State], Any]:
        def node(state: State) -> Any:
            try:
                return {"seen": [str(model.invoke([("user", prompt)]).content)]}
            except BaseException:
                return {"seen": ["nothing"]}

        return node

    run(graph_of(saver(), hides("How are you?")), "invoke", {"seen": []})
    assert difference(graph_of(saver(), hides("Who are you?"))).code is Code.REQUEST


class Cipher:
    """Gives other bytes each time."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        key = os.urandom(1)
        return "xor", key + bytes(byte ^ key[0] for byte in plaintext)

    def decrypt(self, name: str, ciphertext: bytes) -> bytes:
        return bytes(byte ^ ciphertext[0] for byte in ciphertext[1:])


def test_what_is_encrypted_is_compared_by_what_it_is() -> None:
    def sealed() -> LockstepCheckpointer:
        return LockstepCheckpointer(os.environ["LOCKSTEP_STORE"], serde=EncryptedSerializer(Cipher()))

    run(graph_of(sealed(), adds("a"), adds("b")), "invoke", {"seen": ["secret"]})
    for depth in ("call", "node"):
        played = replay(graph_of(sealed(), adds("a"), adds("b")), depth=depth)
        assert played.report.identical, played.report
    found = difference(graph_of(sealed(), adds("a"), adds("x")))
    assert (found.path, found.expected, found.actual) == ("seen[2]", '"b"', '"x"')


def with_store(saver: Any, store: Any) -> Any:
    def remembers(state: State, *, store: BaseStore) -> Any:
        known = store.get(("seen",), "count")
        count = known.value["count"] + 1 if known is not None else 1
        store.put(("seen",), "count", {"count": count})
        return {"seen": [str(count)]}

    builder = StateGraph(State)
    builder.add_node("n1", remembers)
    builder.add_edge(START, "n1")
    return builder.compile(checkpointer=saver, store=store)


def test_what_a_graph_keeps_in_memory_across_threads_is_kept_anew_in_a_replay() -> None:
    store = InMemoryStore()
    graph = with_store(saver(), store)
    given = [run(graph, "invoke", {"seen": []}) for _ in range(2)]
    played = replay(graph)
    assert played.report.identical
    assert played.results == given
    kept = store.get(("seen",), "count")
    assert kept is not None
    assert kept.value == {"count": 2}, "a replay leaves the program's own alone"


class Database(InMemoryStore):
    """One that keeps what it is given somewhere."""


def test_a_store_that_is_kept_elsewhere_is_not_asked_in_a_replay() -> None:
    store = Database()
    graph = with_store(saver(), store)
    run(graph, "invoke", {"seen": []})
    found = difference(graph)
    assert (found.code, found.kind, found.name) == (Code.NOT_COVERED, "store", "Database")
    assert replay(graph, depth="node").report.identical
    kept = store.get(("seen",), "count")
    assert kept is not None
    assert kept.value == {"count": 1}
