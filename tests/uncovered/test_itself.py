"""The program's traffic with itself is no source; who comes from outside is."""

import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

IN_PROCESS = ("threads", "tasks", "local_socket", "datagrams", "taken_over")


@pytest.mark.parametrize("way", [*IN_PROCESS, "spawned_server", "forkserver_server"])
def test_own_servers_and_clients_are_no_source(runs: Any, way: str) -> None:
    recorded = runs.record("itself", way, 0)
    assert (recorded["exit"], recorded["faults"], runs.uncovered(recorded)) == (0, [], {})
    replayed = runs.replay("--isolate")
    assert (replayed["divergence"], replayed["identical"]) == (None, True)


def test_a_connection_from_outside_is_named_and_its_replay_stops_where_it_listens(
    runs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "port"
    os.mkfifo(place)
    monkeypatch.setenv("TELL", str(place))

    def visit() -> None:
        with socket.create_connection(("127.0.0.1", int(place.read_text()))) as client:
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            while client.recv(100):
                pass

    visitor = threading.Thread(target=visit)
    visitor.start()
    recorded = runs.record("itself", "serves", 0)
    visitor.join()
    assert (recorded["exit"], recorded["faults"]) == (0, [])
    assert "connections from outside (" in runs.uncovered(recorded)["served"]
    replayed = runs.replay()
    assert replayed["divergence"]["code"] == "LS210"
    assert "itself.py" in replayed["divergence"]["source"]


def test_a_port_that_takes_datagrams_is_named(runs: Any) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert f"127.0.0.1:{port}" in runs.uncovered(runs.record("itself", "answers_datagrams", port))["datagrams received"]
