"""A program for each source that no tap covers: none of its replays is called identical, each report names it."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from lockstep.launch import supervise

PROGRAM = Path(__file__).parent / "programs" / "ways.py"

# What reaches the server outside while it is recorded, and is stopped in a replay.
STOPPED = {
    "raw_socket": "socket",
    "asyncio_stream": "socket",
    "datagram": "socket",
    "grpc": "grpc channel",
    "grpc_aio": "grpc channel",
    "uvloop": "uvloop",
    "psycopg": "postgres",
    "pycurl": "curl",
    "curl_cffi": "curl",
    "primp": "primp",
    "ctypes_connect": "ctypes",
    "websocket": "websocket",
    "websocket_aio": "websocket",
    "websocket_client": "websocket",
}
# What reaches nobody, and only varies.
NAMED = {
    "uvloop_quiet": "uvloop",
    "trio": "trio",
    "duckdb": "duckdb",
    "bcrypt": "bcrypt",
    "ctypes_random": "ctypes",
    "own_library": "ctypes",
}


@pytest.mark.parametrize("way", STOPPED)
def test_what_reaches_outside_is_named_and_stopped(runs: Any, outside: Any, way: str) -> None:
    recorded = runs.record("ways", outside.port, way)
    assert (recorded["exit"], recorded["faults"]) == (0, [])
    assert outside.visits == 1
    detail = runs.uncovered(recorded)[STOPPED[way]]
    assert "ways.py:" in detail
    assert "secret" not in str(recorded["coverage"])
    replayed = runs.replay()
    assert not replayed["identical"]
    assert replayed["divergence"]["code"] == "LS210"
    assert runs.uncovered(replayed)[STOPPED[way]] == detail
    assert runs.status == 1
    assert outside.visits == 1


@pytest.mark.parametrize("way", ["shell", "spawned"])
def test_a_process_that_reached_outside_is_served(runs: Any, outside: Any, way: str) -> None:
    recorded = runs.record("ways", outside.port, way)
    assert (recorded["exit"], runs.uncovered(recorded), outside.visits) == (0, {}, 1)
    assert runs.replay()["identical"]
    assert outside.visits == 1


def test_a_program_that_hides_what_stops_it_reaches_nobody_all_the_same(runs: Any, outside: Any) -> None:
    assert runs.record("ways", outside.port, "stubborn")["exit"] == 0
    before = outside.visits
    assert before >= 5
    replayed = runs.replay()
    assert (replayed["divergence"]["code"], runs.status) == ("LS210", 1)
    assert outside.visits == before


def test_a_program_that_becomes_another_is_named_and_stopped(runs: Any, outside: Any) -> None:
    recorded = runs.record("ways", outside.port, "becomes_another")
    assert "becomes " in runs.uncovered(recorded)["process"]
    assert outside.visits == 1
    assert runs.replay()["divergence"]["code"] == "LS210"
    assert outside.visits == 1


def test_without_a_network_none_of_them_reaches_the_server(outside: Any) -> None:
    """The kernel alone, without the guard: what holds also for clients that nobody knows."""
    program = [sys.executable, str(PROGRAM), str(outside.port), *STOPPED, "unknown_extension"]
    assert supervise.run(program, dict(os.environ), stdout=2).status == 0
    assert outside.visits == len(STOPPED) + 1
    isolated = supervise.run(program, dict(os.environ), stdout=2, isolate=True)
    assert (isolated.status, outside.visits) == (0, len(STOPPED) + 1)


@pytest.mark.parametrize("way", NAMED)
def test_what_only_varies_is_named(runs: Any, way: str) -> None:
    recorded = runs.record("ways", 0, way)
    assert (recorded["exit"], recorded["faults"]) == (0, [])
    detail = runs.uncovered(recorded)[NAMED[way]]
    assert "ways.py:" in detail
    replayed = runs.replay()
    assert (replayed["identical"], replayed["divergence"]) == (False, None)
    assert runs.uncovered(replayed)[NAMED[way]] == detail


def test_a_host_name_is_not_looked_up_in_a_replay(runs: Any) -> None:
    recorded = runs.record("ways", 0, "host_name")
    assert "lockstep.invalid" in runs.uncovered(recorded)["host name"]
    assert runs.replay()["divergence"]["code"] == "LS210"


def test_the_connection_of_unknown_code_in_c_is_found_at_the_end(runs: Any, outside: Any) -> None:
    recorded = runs.record("ways", outside.port, "unknown_extension")
    assert f"127.0.0.1:{outside.port} (open at the end" in runs.uncovered(recorded)["socket"]
    assert outside.visits == 1
    isolated = runs.replay("--isolate")
    assert outside.visits == 1
    # It met no server there, and nothing shows it; but it did while it was recorded.
    assert not isolated["identical"]
    assert "in the recording" in runs.uncovered(isolated)["socket"]


def test_a_client_that_is_loaded_and_not_used_is_no_source(runs: Any) -> None:
    recorded = runs.record("ways", 0, "loaded")
    assert runs.uncovered(recorded) == {}
    unused = {entry["source"] for entry in recorded["coverage"] if entry["how"] == "not used"}
    assert unused >= {"grpc channel", "uvloop", "duckdb", "curl", "postgres", "primp", "websocket"}
    assert runs.replay()["identical"]


def test_a_client_with_no_way_to_see_its_use_counts_as_used(runs: Any) -> None:
    recorded = runs.record("ways", 0, "unwatchable")
    assert "nobody sees" in runs.uncovered(recorded)["rnet"]
    assert "has no connect" in runs.uncovered(recorded)["lancedb"]
    assert not runs.replay()["identical"]


def test_watched_clients_are_what_they_were(runs: Any) -> None:
    recorded = runs.record("ways", 0, "unchanged")
    assert recorded["exit"] == 0, runs.said
    assert recorded["faults"] == []
