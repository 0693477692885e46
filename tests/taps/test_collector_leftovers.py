"""What was left half way, in the run or before it, ends when the collector comes: in a replay at another moment, or for
the first time. It neither moves the run nor reaches outside."""

from __future__ import annotations

import gc
import socket
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import requests

import lockstep
from lockstep.testing.server import Raw, Reply, Server


class Site:
    """Notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.server = Server(self._answer)
        self.port = self.server.start()
        self.url = f"http://127.0.0.1:{self.port}"

    def _answer(self, raw: Raw) -> Reply:
        self.asked.append(raw.target)
        return Reply(200, (), [b"one", b"two", b"three"])

    def ask(self, what: str) -> str:
        return httpx.get(f"{self.url}/{what}").text


@pytest.fixture
def site() -> Iterator[Site]:
    started = Site()
    yield started
    started.server.stop()


@pytest.fixture(autouse=True)
def _collected_by_hand(site: Site) -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.unfreeze()
    gc.collect()  # while the site is there for what asks it last
    gc.enable()


class Left:
    """Garbage that only the collector frees."""

    def __init__(self, *held: Any) -> None:
        self.held = held, self


def stream_of_httpx(site: Site) -> None:
    client = httpx.Client()
    opened = client.stream("GET", f"{site.url}/stream")
    chunks = opened.__enter__().iter_raw()
    next(chunks)
    Left(client, opened, chunks)


def stream_of_requests(site: Site) -> None:
    session = requests.Session()
    chunks = session.get(f"{site.url}/stream", stream=True).iter_content(2)
    next(chunks)
    Left(session, chunks)


def socket_that_closes(site: Site) -> None:
    class Connection(Left):
        def __del__(self) -> None:
            self.held[0][0].close()

    Connection(socket.create_connection(("127.0.0.1", site.port)))


def half_run(site: Site, last: Callable[[], object]) -> None:
    def steps() -> Iterator[int]:
        try:
            yield 1
        finally:
            last()

    begun = steps()
    next(begun)
    Left(begun)


def generator_that_prints_and_steps(site: Site) -> None:
    def last() -> None:
        print("over")
        lockstep.step("over", {})

    half_run(site, last)


@lockstep.tool
def told() -> str:
    return "told"


def generator_that_asks(site: Site) -> None:
    half_run(site, lambda: site.ask("last"))


def generator_that_calls_a_tool(site: Site) -> None:
    half_run(site, told)


def finalizer_that_looks_for_a_host(site: Site) -> None:
    class Farewell(Left):
        def __del__(self) -> None:
            socket.getaddrinfo("nowhere.invalid", 443)

    Farewell()


QUIET = [stream_of_httpx, stream_of_requests, generator_that_prints_and_steps]
BEFORE = [*QUIET, socket_that_closes]  # what opens a socket in the run is told of by that alone
CALLING = [generator_that_asks, generator_that_calls_a_tool]
MOMENTS = [("never", "early"), ("late", "early")]


def program(site: Site, collects: str, leaves: Callable[[Site], None] | None = None) -> list[str]:
    if leaves is not None:
        leaves(site)
    found = [site.ask("first")]
    if collects == "early":
        gc.collect()
    found.append(site.ask("second"))
    if collects == "late":
        gc.collect()
    print(found)
    return found


def recorded(site: Site, collects: str, leaves: Callable[[Site], None] | None = None) -> list[str]:
    with lockstep.record("run") as session:
        found = program(site, collects, leaves)
    assert session.faults == []
    return found


@pytest.mark.parametrize("leaves", BEFORE)
@pytest.mark.parametrize(("collects", "again"), MOMENTS)
def test_what_was_left_before_the_run_ends_in_it_unseen(
    site: Site, leaves: Callable[[Site], None], collects: str, again: str
) -> None:
    leaves(site)
    before = recorded(site, collects)
    leaves(site)
    replay = lockstep.replay("run", lambda: program(site, again))
    assert replay.divergence is None, replay.divergence
    assert replay.result == before
    assert replay.identical, replay.coverage


@pytest.mark.parametrize("leaves", QUIET)
@pytest.mark.parametrize(("collects", "again"), MOMENTS)
def test_what_the_run_leaves_itself_ends_at_any_moment(
    site: Site, leaves: Callable[[Site], None], collects: str, again: str
) -> None:
    before = recorded(site, collects, leaves)
    replay = lockstep.replay("run", lambda: program(site, again, leaves))
    assert replay.divergence is None, replay.divergence
    assert replay.result == before
    assert replay.identical, replay.coverage


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("leaves", [*CALLING, finalizer_that_looks_for_a_host])
@pytest.mark.parametrize("where", ["before the run", "in it"])
def test_a_call_of_a_finalizer_is_not_made_in_a_replay_and_is_named(
    site: Site, leaves: Callable[[Site], None], where: str
) -> None:
    within = leaves if where == "in it" else None
    before = recorded(site, "never", within)
    gc.freeze()  # that one's is never collected
    if within is None:
        leaves(site)
    site.asked.clear()
    replay = lockstep.replay("run", lambda: program(site, "early", within))
    assert replay.divergence is None, replay.divergence
    assert replay.result == before
    assert site.asked == []
    assert not replay.identical
    (told,) = [each for each in replay.coverage if each.how == "not covered"]
    assert told.source == "garbage collector"
    assert "test_collector_leftovers.py" in told.detail


@pytest.mark.parametrize("leaves", CALLING)
def test_a_call_of_a_finalizer_is_made_and_named_while_recording(site: Site, leaves: Callable[[Site], None]) -> None:
    leaves(site)
    with lockstep.record("run") as session:
        gc.collect()
    assert session.report is not None
    assert {each.source for each in session.report.coverage if each.how == "not covered"} == {"garbage collector"}
    assert site.asked == (["/last"] if leaves is generator_that_asks else [])
    replay = lockstep.replay("run", lambda: None)
    assert replay.divergence is None
    assert not replay.identical


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_past_a_fork_s_cut_a_finalizer_s_call_is_not_made_either(site: Site) -> None:
    recorded(site, "never", generator_that_asks)
    gc.freeze()
    site.asked.clear()
    fork = lockstep.fork("run:1", lambda: program(site, "late", generator_that_asks))
    assert fork.state == "complete"
    assert site.asked == ["/second"]
    assert [each.source for each in fork.report.coverage if each.how == "not covered"] == ["garbage collector"]
