"""Requests that are held until it is known whether they may run: what they send, and that they send nothing before."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import io
import socket
import threading
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import httpx2
import pytest
import requests
import urllib3
from tests.taps.holding import Refused, holding
from tests.taps.http.conftest import Odd, Same
from urllib3.util.wait import wait_for_read

import lockstep
from lockstep.log.model import Status
from lockstep.session import lanes
from lockstep.session.call import Piece


class Wire:
    """A relay to the server of odd answers that keeps every byte that a client sent, by connection."""

    def __init__(self, odd: Odd) -> None:
        self._target = odd.port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.sent: list[bytearray] = []
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def taken(self) -> list[bytes]:
        """What came since the last look."""
        found, self.sent = [bytes(each) for each in self.sent], []
        return found

    def close(self) -> None:
        for each in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._target))
            self._sockets += [client, server]
            self.sent.append(kept := bytearray())
            for source, target, into in ((client, server, kept), (server, client, None)):
                thread = threading.Thread(target=self._pass, args=(source, target, into), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _pass(self, source: socket.socket, target: socket.socket, kept: bytearray | None) -> None:
        try:
            while data := source.recv(65536):
                if kept is not None:
                    kept += data
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            return
        finally:
            if kept is None:
                source.close()
                target.close()


@pytest.fixture
def wire(server: Odd) -> Iterator[Wire]:
    made: Wire = lanes.ours(Wire)(server)
    yield made
    made.close()


def letters() -> Iterator[bytes]:
    yield b"one "
    yield b""
    yield b"two"


async def aletters() -> AsyncIterator[bytes]:
    yield b"one "
    await asyncio.sleep(0)
    yield b"two"


def through_http_client(wire: Wire) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", wire.port)
    for method, body, headers in (
        ("GET", None, {}),
        ("POST", b"bytes", {"X-Case": "Kept"}),
        ("POST", letters(), {}),
        ("PUT", io.BytesIO(b"a file"), {"Expect": "100-continue"}),
    ):
        connection.request(method, "/echo?a=1", body=body, headers=headers)
        connection.getresponse().read()
    connection.putrequest("POST", "/until-close", skip_accept_encoding=True)
    connection.putheader("Content-Length", "4")
    connection.endheaders()
    connection.send(b"in ")
    connection.send(b"2")
    connection.getresponse().read()
    connection.close()


def through_a_tunnel(wire: Wire) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", wire.port)
    connection.set_tunnel("127.0.0.1", wire._target, {"X-Proxy": "this way"})
    connection.request("POST", "/echo", body=b"inside")
    connection.getresponse().read()
    connection.close()


def through_urllib(wire: Wire) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    opener.open(urllib.request.Request(f"{wire.url}/echo", b"body", {"X-Mine": "yes"})).read()


def through_urllib3(wire: Wire) -> None:
    with urllib3.PoolManager() as pool:
        pool.request("GET", f"{wire.url}/echo")
        pool.request("POST", f"{wire.url}/echo", body=letters(), chunked=True)
        pool.request("POST", f"{wire.url}/echo", json={"a": 1})
        pool.request(
            "POST",
            f"{wire.url}/flaky?by=urllib3",
            retries=urllib3.Retry(2, status_forcelist=[503], allowed_methods=None),
        )


def through_requests(wire: Wire) -> None:
    with requests.Session() as client:
        client.trust_env = False
        client.get(f"{wire.url}/redirect")
        client.post(f"{wire.url}/echo", data=letters())
        client.post(f"{wire.url}/echo", data=io.BytesIO(b"a file"))
        client.get("http://elsewhere.test/proxied", proxies={"http": wire.url})


def through_httpx(library: Any) -> Callable[[Wire], None]:
    def run(wire: Wire) -> None:
        with library.Client(base_url=wire.url, trust_env=False) as client:
            client.get("/redirect", follow_redirects=True)
            client.post("/echo", content=letters())
            client.post("/echo", json={"a": [1]})
            client.post("/echo", content=io.BytesIO(b"a file"))

    return run


def through_async_httpx(library: Any) -> Callable[[Wire], None]:
    async def run(wire: Wire) -> None:
        async with library.AsyncClient(base_url=wire.url, trust_env=False) as client:
            await client.get("/echo")
            await client.post("/echo", content=aletters())
            await client.post("/echo", data={"form": "field"})

    return lambda wire: asyncio.run(run(wire))


def through_aiohttp(wire: Wire) -> None:
    async def run() -> None:
        async with aiohttp.ClientSession() as client:
            for options in (
                {},
                {"data": b"bytes"},
                {"json": {"a": 1}},
                {"data": aletters()},
                {"data": io.BytesIO(b"f")},
            ):
                async with client.post(f"{wire.url}/echo", **options) as response:
                    await response.read()

    asyncio.run(run())


CLIENTS: list[Callable[[Wire], None]] = [
    through_http_client,
    through_a_tunnel,
    through_urllib,
    through_urllib3,
    through_requests,
    through_httpx(httpx),
    through_httpx(httpx2),
    through_async_httpx(httpx),
    through_async_httpx(httpx2),
    through_aiohttp,
]
NAMES = [
    "http.client",
    "tunnel",
    "urllib",
    "urllib3",
    "requests",
    "httpx",
    "httpx2",
    "async httpx",
    "async httpx2",
    "aiohttp",
]


@pytest.mark.parametrize("client", CLIENTS, ids=NAMES)
def test_every_byte_that_is_sent_is_the_one_sent_without_us(wire: Wire, client: Callable[[Wire], None]) -> None:
    client(wire)
    bare = wire.taken()
    with holding("held") as session:
        client(wire)
    assert session.report.faults == ()
    assert wire.taken() == bare


@pytest.mark.parametrize("client", CLIENTS, ids=NAMES)
def test_of_one_that_is_refused_nothing_is_sent(wire: Wire, client: Callable[[Wire], None]) -> None:
    asked: list[str] = []

    def refuse(call: Any) -> Refused:
        asked.append(call.name)
        return Refused(call.name)

    with pytest.raises(Refused) as raised, holding("held", refuse):
        client(wire)
    assert asked == [str(raised.value)], "asked once, and raised as it is"
    assert wire.taken() == []


def only(path: str) -> Callable[[Any], Refused | None]:
    return lambda call: Refused("no") if path in call.name else None


def test_connections_are_used_on_after_a_refusal(wire: Wire) -> None:
    with holding("held", only("/binary")), urllib3.PoolManager() as pool, httpx.Client(trust_env=False) as client:
        for get in (lambda url: pool.request("GET", url).status, lambda url: client.get(url).status_code):
            assert get(f"{wire.url}/echo") == 200
            with pytest.raises(Refused):
                get(f"{wire.url}/binary")
            assert get(f"{wire.url}/echo") == 200
    assert b"/binary" not in b"".join(wire.taken())


def test_a_kept_alive_connection_of_http_client_is_the_same_one_after_a_refusal(wire: Wire) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", wire.port)
    with holding("held", only("/binary")):
        connection.request("GET", "/echo")
        connection.getresponse().read()
        first = connection.sock
        with pytest.raises(Refused):
            connection.request("GET", "/binary")
        assert connection.sock is first
        connection.close()
        connection.request("GET", "/echo?again")
        assert connection.getresponse().status == 200
        connection.close()
    assert [each.count(b"GET") for each in wire.taken()] == [1, 1]


async def ask_httpx(url: str) -> Any:
    async with httpx.AsyncClient(trust_env=False) as client:
        return (await client.get(url)).status_code


async def ask_aiohttp(url: str) -> Any:
    async with aiohttp.ClientSession() as client, client.get(url) as response:
        return response.status


@pytest.mark.parametrize("ask", [ask_httpx, ask_aiohttp], ids=["httpx", "aiohttp"])
def test_a_task_waits_without_keeping_others_and_may_be_cancelled(
    wire: Wire, ask: Callable[[str], Awaitable[Any]]
) -> None:
    waiting: list[tuple[Any, Any]] = []

    async def run() -> list[Any]:
        first, second = (asyncio.create_task(ask(f"{wire.url}/{name}")) for name in ("binary", "echo"))
        while len(waiting) < 2:
            await asyncio.sleep(0)
        assert wire.taken() == []
        first.cancel()
        waiting[1][1].set_result(None)
        return await asyncio.gather(first, second, return_exceptions=True)

    with holding("held", waiting=lambda *both: waiting.append(both)) as session:
        given_up, answered = asyncio.run(run())
    assert isinstance(given_up, asyncio.CancelledError)
    assert answered == 200
    assert session.report.faults == ()
    assert [each.split(b" ", 2)[1] for each in wire.taken()] == [b"/echo"]


HEAD: dict[str, Any] = {"status": 200, "headers": [["X-From", "the record"], ["Content-Length", "5"]]}
RAW = b"HTTP/1.1 200 OK\r\nX-From: the record\r\nContent-Length: 5\r\n\r\n"


def answer_raw(call: Any) -> Any:
    if "/binary" in call.name:
        return [{**HEAD, "reason": "OK", "version": 11, "length": 5, "raw": [RAW, b"given"]}, Piece(None, Status.OK)]
    return None


def test_one_that_is_answered_is_not_sent_and_the_next_one_is(wire: Wire) -> None:
    with holding("held", answer_raw), requests.Session() as client:
        client.trust_env = False
        before = client.get(f"{wire.url}/echo?n=1").json()["target"]
        given = client.get(f"{wire.url}/binary")
        after = client.get(f"{wire.url}/echo?n=2").json()["target"]
    assert (before, given.content, given.headers["X-From"], after) == ("/echo?n=1", b"given", "the record", "/echo?n=2")
    assert b"/binary" not in b"".join(wire.taken())


def test_a_stream_that_is_answered_may_be_left_half_read(wire: Wire) -> None:
    async def run() -> list[Any]:
        async with httpx.AsyncClient(trust_env=False) as client:
            async with client.stream("GET", f"{wire.url}/binary") as response:
                first = await anext(response.aiter_raw())
            return [first, (await client.get(f"{wire.url}/echo")).status_code]

    def answer(call: Any) -> Any:
        return [dict(HEAD), b"giv", b"en"] if "/binary" in call.name else None

    with holding("held", answer) as session:
        assert asyncio.run(run()) == [b"giv", 200]
    assert session.report.faults == ()


class AsksFirst(http.client.HTTPConnection):
    """Waits for `100 Continue` before it sends a body, in the way of botocore."""

    def put(self, path: str, body: bytes) -> http.client.HTTPResponse:
        self.putrequest("PUT", path)
        self.putheader("Expect", "100-continue")
        self.putheader("Content-Length", str(len(body)))
        self.endheaders()
        if wait_for_read(self.sock, 1):
            with self.sock.makefile("rb", 0) as reader:  # type: ignore[call-overload]
                line = reader.readline()
                if line.split(None, 2)[1] != b"100":
                    raise AssertionError(line)
                while reader.readline().strip():
                    pass
        self.send(body)
        return self.getresponse()


def test_an_upload_that_asks_first_is_asked_for_and_sent_as_ever(wire: Wire) -> None:
    def run() -> Any:
        connection = AsksFirst("127.0.0.1", wire.port)
        response = connection.put("/echo", b"x" * 100_000)
        answer = response.status, response.read()
        connection.close()
        return answer

    bare, sent = run(), wire.taken()
    with holding("held"):
        assert run() == bare
    assert wire.taken() == sent


def test_the_body_of_an_upload_that_is_not_wanted_is_not_sent(wire: Wire) -> None:
    with holding("held"):
        connection = AsksFirst("127.0.0.1", wire.port)
        response = connection.put("/early", b"x" * 100_000)
        assert (response.status, response.read()) == (413, b"no")
        connection.close()
    [sent] = wire.taken()
    assert b"xx" not in sent


def test_past_a_forks_cut_nothing_reaches_outside_by_a_way_that_no_tap_covers(server: Odd, tmp_path: Path) -> None:
    def program() -> Any:
        first = httpx.get(f"{server.url}/echo?n=1", trust_env=False).json()["target"]
        with socket.create_connection(("127.0.0.1", server.port)) as raw:
            raw.sendall(b"GET /old HTTP/1.1\r\n\r\n")
            return first, raw.recv(12)

    store = tmp_path / "store.db"
    with lockstep.record("run", store=store):
        recorded = program()
    _, connections = server.counts()
    with pytest.raises(lockstep.Refused, match=f"socket 127.0.0.1:{server.port} would run for real"):
        lockstep.fork("run:1", program, store=store)
    assert server.counts()[1] == connections
    assert lockstep.fork("run:1", program, store=store, live=["socket *"]).result == recorded
    assert server.counts()[1] == connections + 1


def test_what_could_not_be_sent_fails_there_again_in_a_replay(same: Same[Odd]) -> None:
    places: list[str] = []

    def program(_: Odd) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", 1)
        try:
            connection.request("POST", "/", body=b"x")
        except OSError as error:
            places.append("request")
            return repr(error)
        connection.getresponse()
        return None

    held, report = same.hold(program)
    again, proof = same.replay(program)
    assert proof.identical, proof.difference
    assert again == held == "ConnectionRefusedError(111, 'Connection refused')"
    assert places == ["request", "request"]
    assert report.counts == {"http": 1}
