"""aiohttp, recorded and replayed: the program sees what it sees without us, and the server nothing."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.taps.http.conftest import Odd, Same, chain

from lockstep.errors import Code
from lockstep.log.model import Kind
from lockstep.log.store import open_store
from lockstep.taps.http.answer import answer
from lockstep.testing import Provider

type Program = Callable[[Odd], Any]


def looped(main: Callable[[Odd], Awaitable[Any]]) -> Program:
    async def run(server: Odd) -> Any:
        return await main(server)

    return lambda server: asyncio.run(run(server))


def in_session(main: Callable[[aiohttp.ClientSession, str], Awaitable[Any]], **options: Any) -> Program:
    """A program with one session, closed at its end."""

    async def run(server: Odd) -> Any:
        async with aiohttp.ClientSession(**options) as session:
            return await main(session, server.url)

    return looped(run)


def view(response: aiohttp.ClientResponse) -> list[Any]:
    """What a program may look at of an answer, but its body."""
    return [
        response.status,
        response.reason,
        str(response.version),
        [list(pair) for pair in response.raw_headers],
        str(response.url).rpartition("/")[2],
        response.method,
        response.content_type,
        response.charset,
        len(response.history),
        {name: morsel.value for name, morsel in response.cookies.items()},
    ]


async def whole(session: aiohttp.ClientSession, method: str, url: str, **options: Any) -> list[Any]:
    async with session.request(method, url, **options) as response:
        return [*view(response), await response.read()]


async def failing(act: Awaitable[Any]) -> Any:
    try:
        await act
    except Exception as error:
        return chain(error)
    raise AssertionError("nothing was raised")


async def get_and_post(session: aiohttp.ClientSession, url: str) -> Any:
    answers = [
        await whole(session, "GET", f"{url}/echo?a=1&b=%20x"),
        await whole(session, "POST", f"{url}/echo", json={"n": 1, "text": "é"}),
        await whole(session, "POST", f"{url}/echo", data={"form": "yes"}, headers={"X-Mine": "kept"}),
        await whole(session, "HEAD", f"{url}/echo"),
        await whole(session, "DELETE", f"{url}/echo"),
        await whole(session, "POST", f"{url}/echo"),
    ]
    async with session.get(f"{url}/echo") as response:
        return [*answers, await response.json(), response.request_info.headers["Accept"]]


def test_plain_requests(same: Same) -> None:
    report = same(in_session(get_and_post), hits=7, held=True)
    assert report.counts == {"http": 7}


async def answers_of_all_kinds(session: aiohttp.ClientSession, url: str) -> Any:
    paths = ["gzip", "latin1", "binary", "empty", "unmodified", "until-close", "closes-after", "old", "trailers", "sse"]
    seen = [await whole(session, "GET", f"{url}/{path}") for path in paths]
    seen.append(await whole(session, "GET", f"{url}/gzip-sse"))
    async with session.get(f"{url}/latin1") as response:
        seen.append([await response.text()])
    return seen


def test_answers_of_all_kinds(same: Same) -> None:
    same(in_session(answers_of_all_kinds))


async def redirected(session: aiohttp.ClientSession, url: str) -> Any:
    async with session.get(f"{url}/redirect") as response:
        history = [(each.status, each.headers["Location"], str(each.url)[-9:]) for each in response.history]
        return [*view(response), history, await response.json()]


def test_redirects_are_aiohttps_own(same: Same) -> None:
    assert same(in_session(redirected), hits=2).counts == {"http": 2}


async def with_cookies(session: aiohttp.ClientSession, url: str) -> Any:
    async with session.get(f"{url}/cookies") as response:
        repeated = [response.headers.getall("Set-Cookie"), response.headers.getall("X-Twice")]
    return [repeated, await whole(session, "GET", f"{url}/echo"), sorted(c.key for c in session.cookie_jar)]


def test_repeated_headers_and_cookies(same: Same) -> None:
    async def run(server: Odd) -> Any:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            return await with_cookies(session, server.url)

    same(looped(run))


async def uploads(session: aiohttp.ClientSession, url: str) -> Any:
    async def pieces() -> AsyncIterator[bytes]:
        for n in range(3):
            await asyncio.sleep(0)
            yield b"piece %d " % n

    form = aiohttp.FormData()
    form.add_field("text", "value")
    form.add_field("file", b"bytes of it", filename="a.bin", content_type="application/octet-stream")
    files = aiohttp.FormData()
    files.add_field("file", io.BytesIO(b"from a file"), filename="b.bin")
    packed = {"data": b"compress me " * 100, "compress": True}
    opened = Path(__file__).with_name("loopback.pem").open("rb")
    return [
        await whole(session, "POST", f"{url}/echo", data=opened),
        await whole(session, "POST", f"{url}/echo", data=form),
        await whole(session, "POST", f"{url}/echo", data=files),
        await whole(session, "POST", f"{url}/echo", data=pieces()),
        await whole(session, "POST", f"{url}/echo", data=io.BytesIO(b"file " * 10_000)),
        await whole(session, "PUT", f"{url}/echo", data=b"x" * 300_000),
        (await whole(session, "POST", f"{url}/echo", **packed))[:2],
        await whole(session, "POST", f"{url}/echo", data=b"wait for it", expect100=True),
    ]


def test_uploads_of_all_kinds(same: Same) -> None:
    same(in_session(uploads), hits=8, held=True)


async def interrupted_uploads(session: aiohttp.ClientSession, url: str) -> Any:
    async def fails() -> AsyncIterator[bytes]:
        yield b"one"
        drawn.append("one")
        raise ValueError("no more")

    async def endless() -> AsyncIterator[bytes]:
        while True:
            drawn.append("piece")
            yield b"piece"
            await asyncio.sleep(0.01)

    drawn: list[str] = []
    return [
        await failing(whole(session, "POST", f"{url}/echo", data=fails())),
        await whole(session, "POST", f"{url}/early", data=endless()),
        await whole(session, "POST", f"{url}/early", data=b"x" * 100_000),
        len(drawn) > 1,
    ]


def test_uploads_that_do_not_get_to_their_end(same: Same) -> None:
    same(in_session(interrupted_uploads))


async def reading(session: aiohttp.ClientSession, url: str) -> Any:
    async with session.get(f"{url}/sse?n=6") as response:
        lines = [line async for line in response.content]
    async with session.get(f"{url}/sse?n=4") as response:
        chunks = [chunk async for chunk in response.content.iter_chunks()]
    async with session.get(f"{url}/binary") as response:
        sized = [len(piece) async for piece in response.content.iter_chunked(1000)]
    async with session.get(f"{url}/sse") as response:
        exactly = await response.content.readexactly(20)
        at_once = await response.content.readany()
        rest = await response.content.read()
    return [lines, chunks, sized, exactly, at_once + rest]


def test_streams_by_lines_chunks_and_sizes(same: Same) -> None:
    same(in_session(reading), held=True)


async def abandoned(session: aiohttp.ClientSession, url: str) -> Any:
    seen = []
    async with session.get(f"{url}/sse?n=20") as response:
        seen.append([await response.content.readline() for _ in range(3)])
    async with session.get(f"{url}/forever") as response:
        seen.append([await response.content.readline() for _ in range(5)])
    async with session.get(f"{url}/big?mb=4") as response:
        seen.append(view(response))
    response = await session.get(f"{url}/sse?n=30")
    seen.append(view(response))
    response.close()
    dropped = await session.get(f"{url}/sse?n=1")
    seen.append(await dropped.read())
    del dropped
    return [*seen, await whole(session, "GET", f"{url}/echo")]


def test_half_read_never_read_and_endless_answers(same: Same) -> None:
    same(in_session(abandoned))


async def broken(session: aiohttp.ClientSession, url: str) -> Any:
    async def lines() -> Any:
        async with session.get(f"{url}/broken") as response:
            async for line in response.content:
                seen.append(line)

    seen: list[bytes] = []
    failures = [await failing(lines())]
    for path in ("short", "closed", "reset", "nonsense"):
        failures.append(await failing(whole(session, "GET", f"{url}/{path}")))
        failures.append(await failing(whole(session, "POST", f"{url}/{path}", data=b"x")))
    return [seen, failures]


def test_broken_answers_break_at_the_same_place(same: Same) -> None:
    same(in_session(broken))


async def unreachable(session: aiohttp.ClientSession, url: str) -> Any:
    async def pieces() -> AsyncIterator[bytes]:
        drawn.append(1)
        yield b"never sent"

    drawn: list[int] = []
    seen = [
        await failing(whole(session, "GET", "http://127.0.0.1:9/")),
        await failing(whole(session, "POST", "http://127.0.0.1:9/", data=pieces())),
        await failing(whole(session, "GET", "http://no-such-host.invalid/")),
    ]
    try:
        await session.get("http://127.0.0.1:9/")
    except aiohttp.ClientConnectorError as error:
        seen.append([error.host, error.port, error.ssl, type(error.os_error).__name__, error.errno])
    return [*seen, drawn]


def test_connections_that_cannot_be_made(same: Same, monkeypatch: pytest.MonkeyPatch) -> None:
    known = socket.getaddrinfo

    def unknown(host: Any, *args: Any, **options: Any) -> Any:
        if host == "no-such-host.invalid":  # without the wait for a name server
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return known(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    same(in_session(unreachable), held=True)


async def timeouts(session: aiohttp.ClientSession, url: str) -> Any:
    limits = [
        aiohttp.ClientTimeout(sock_read=0.05),
        aiohttp.ClientTimeout(total=0.05),
    ]
    seen = []
    for limit in limits:
        seen.append(await failing(whole(session, "GET", f"{url}/slow?s=5", timeout=limit)))
        seen.append(await failing(whole(session, "GET", f"{url}/stalls?s=5", timeout=limit)))
    try:
        async with asyncio.timeout(0.05):
            await whole(session, "GET", f"{url}/slow?s=5")
    except TimeoutError:
        seen.append("the program's own")
    return seen


def test_timeouts(same: Same) -> None:
    same(in_session(timeouts))


async def raising(session: aiohttp.ClientSession, url: str) -> Any:
    return await failing(whole(session, "GET", f"{url}/private"))


def test_raise_for_status(same: Same) -> None:
    def without_address(server: Odd) -> Any:
        kind, text, number = in_session(raising, raise_for_status=True)(server)[0]
        return kind, text.replace(server.url, ""), number

    same(without_address)


def test_basic_authentication(same: Same) -> None:
    async def run(session: aiohttp.ClientSession, url: str) -> Any:
        return await whole(session, "GET", f"{url}/private", auth=aiohttp.BasicAuth("me", "pw"))

    same(in_session(run))


def test_trace_hooks_fire_as_they_did(same: Same) -> None:
    def program(server: Odd) -> Any:
        seen: list[str] = []
        config = aiohttp.TraceConfig()
        for name in (
            "request_start", "request_end", "request_redirect", "request_exception", "request_headers_sent",
            "request_chunk_sent", "response_chunk_received", "connection_queued_start", "connection_queued_end",
            "connection_create_start", "connection_create_end", "connection_reuseconn", "dns_resolvehost_start",
            "dns_resolvehost_end", "dns_cache_hit", "dns_cache_miss",
        ):  # fmt: skip

            async def hook(*_: Any, name: str = name) -> None:
                seen.append(name)

            getattr(config, f"on_{name}").append(hook)

        async def run(session: aiohttp.ClientSession, url: str) -> Any:
            local = url.replace("127.0.0.1", "localhost")
            await whole(session, "POST", f"{local}/echo", data=b"x")
            await whole(session, "GET", f"{local}/redirect")
            await failing(whole(session, "GET", "http://127.0.0.1:9/"))
            return seen

        return in_session(run, trace_configs=[config])(server)

    same(program, held=True)


def test_a_session_and_pool_from_before(server: Odd, same: Same) -> None:
    """The session is open, with a live connection in its pool, when recording and replay begin."""
    loop = asyncio.new_event_loop()

    async def made() -> aiohttp.ClientSession:
        session = aiohttp.ClientSession()
        await whole(session, "GET", f"{server.url}/echo")
        return session

    async def used(server: Odd) -> Any:
        counted = []

        async def ticking() -> None:
            for n in range(3):
                counted.append(n)
                await asyncio.sleep(0)

        both = await asyncio.gather(whole(session, "GET", f"{server.url}/sse"), ticking())
        return [both[0], await whole(session, "POST", f"{server.url}/echo", json=[1]), counted]

    session = loop.run_until_complete(made())
    same(lambda server: loop.run_until_complete(used(server)), hits=2)
    # and after the session it works on, live
    before = server.counts()[0]
    loop.run_until_complete(used(server))
    assert server.counts()[0] - before == 2
    loop.run_until_complete(session.close())
    loop.close()


def test_proxies(same: Same, server: Odd) -> None:
    trusting = ssl.create_default_context(cafile=server.certificate)

    async def run(server: Odd) -> Any:
        async with aiohttp.ClientSession() as session:
            secure = server.tls.replace("127.0.0.1", "localhost")
            return [
                await whole(session, "GET", "http://elsewhere.test/x", proxy=server.url),
                await whole(
                    session, "GET", "http://elsewhere.test/y", proxy=server.url, proxy_auth=aiohttp.BasicAuth("u", "p")
                ),
                await whole(session, "GET", f"{secure}/echo", proxy=server.url, ssl=trusting),
                await failing(
                    whole(
                        session, "GET", f"{secure}/echo", proxy=server.url, proxy_auth=aiohttp.BasicAuth("no", "no"),
                        ssl=trusting,
                    )
                ),
            ]  # fmt: skip

    same(looped(run), held=True)


def test_tls(same: Same, server: Odd) -> None:
    trusting = ssl.create_default_context(cafile=server.certificate)

    async def run(server: Odd) -> Any:
        secure = server.tls.replace("127.0.0.1", "localhost")
        async with aiohttp.ClientSession() as session:
            good = await whole(session, "GET", f"{secure}/echo", ssl=trusting)
            again = await whole(session, "GET", f"{secure}/sse", ssl=trusting)
            try:
                await session.get(f"{secure}/echo")
            except aiohttp.ClientConnectorCertificateError as error:
                bad = [type(error.certificate_error).__name__, error.host]
            return [good, again, bad]

    same(looped(run))


async def at_the_same_time(session: aiohttp.ClientSession, url: str) -> Any:
    order = []

    async def one(n: int) -> Any:
        async with session.get(f"{url}/sse?n={n + 2}&gap=0.003") as response:
            async for line in response.content:
                if line.strip():
                    order.append((n, line))
        return n

    done = await asyncio.gather(*(one(n) for n in range(6)))
    return [done, order]


def test_concurrent_streams_keep_their_interleaving(same: Same) -> None:
    def sorted_order(server: Odd) -> Any:
        done, order = in_session(at_the_same_time)(server)
        return [done, sorted(order)]

    same(sorted_order, hits=6)
    recorded, _ = same.record(in_session(at_the_same_time))
    for _ in range(5):
        replayed, proof = same.replay(in_session(at_the_same_time))
        assert replayed == recorded
        assert proof.identical


def test_limits_of_the_connector(same: Same) -> None:
    async def run(server: Odd) -> Any:
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=2, limit_per_host=2)) as session:
            found = await asyncio.gather(*(whole(session, "GET", f"{server.url}/echo?n={n}") for n in range(8)))
            held = [await session.get(f"{server.url}/sse?n=3") for _ in range(2)]
            return [found, [await each.read() for each in held]]

    same(looped(run), hits=10, held=True)


async def cancelled(session: aiohttp.ClientSession, url: str) -> Any:
    seen: list[Any] = []

    async def waiting() -> None:
        try:
            await whole(session, "GET", f"{url}/slow?s=5")
        except asyncio.CancelledError:
            seen.append("before the head")
            raise

    async def streaming() -> None:
        try:
            async with session.get(f"{url}/forever") as response:
                async for _ in response.content:
                    got.set()
        except asyncio.CancelledError:
            seen.append("while streaming")
            raise

    got = asyncio.Event()
    first, second = asyncio.create_task(waiting()), asyncio.create_task(streaming())
    await got.wait()
    first.cancel()
    second.cancel()
    seen += [type(each).__name__ for each in await asyncio.gather(first, second, return_exceptions=True)]
    connecting = asyncio.create_task(whole(session, "GET", f"{url}/echo"))
    await asyncio.sleep(0)
    connecting.cancel()
    seen += [type(each).__name__ for each in await asyncio.gather(connecting, return_exceptions=True)]
    return [seen, await whole(session, "GET", f"{url}/echo")]


def test_cancelled_calls(same: Same) -> None:
    same(in_session(cancelled), held=True)


def test_a_loop_closed_over_open_answers(same: Same) -> None:
    """Nothing is closed by the program: the session is dropped with a stream half read."""

    async def run(server: Odd) -> Any:
        session = aiohttp.ClientSession()
        response = await session.get(f"{server.url}/sse?n=50&gap=0.01")
        line = await response.content.readline()
        response.close()
        await session.close()
        return line

    same(looped(run))


def test_closing_a_session_over_its_streams(same: Same) -> None:
    async def run(server: Odd) -> Any:
        session = aiohttp.ClientSession()
        response = await session.get(f"{server.url}/forever")
        await response.content.readline()
        others = [0]

        async def ticking() -> None:
            for _ in range(20):
                others[0] += 1
                await asyncio.sleep(0)

        ticker = asyncio.create_task(ticking())
        await session.close()
        ticks = others[0]
        await ticker
        return [ticks, await failing(response.content.read())]

    same(looped(run))


def test_openai_on_aiohttp_is_one_effect(same: Same, provider: Provider) -> None:
    import openai

    def program(_: Odd) -> Any:
        async def run() -> Any:
            http = openai.DefaultAioHttpClient()
            async with openai.AsyncOpenAI(base_url=provider.url, api_key="k", http_client=http) as client:
                asked: Any = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
                plain = await client.chat.completions.create(**asked)
                stream = await client.chat.completions.create(**asked, stream=True)
                return [plain.model, [chunk.choices[0].finish_reason async for chunk in stream][-1]]

        return asyncio.run(run())

    report = same(program)
    assert report.counts == {"model": 2}
    assert provider.requests == 4, "two bare, two recorded, none replayed"


def upgrade(server: Odd) -> Any:
    async def run() -> Any:
        async with aiohttp.ClientSession() as session:
            headers = {"Upgrade": "echo", "Connection": "Upgrade"}
            async with session.get(f"{server.url}/upgrade", headers=headers) as response:
                return response.status

    return asyncio.run(run())


def test_a_websocket_is_named_and_refused_in_a_replay(same: Same) -> None:
    bare = upgrade(same.server)
    recorded, report = same.record(upgrade)
    assert recorded == bare == 101
    assert [each.source for each in report.uncovered] == ["websocket"]
    before = same.server.counts()
    _, proof = same.replay(upgrade)
    assert not proof.identical
    assert proof.difference is not None
    assert proof.difference.code == Code.UNSERVABLE
    assert same.server.counts() == before


def lines_of(count: int, path: str = "sse?n=9") -> Program:
    async def run(session: aiohttp.ClientSession, url: str) -> Any:
        async with session.get(f"{url}/{path}") as response:
            return [await response.content.readline() for _ in range(count)]

    return in_session(run)


def test_reading_further_than_the_recording_is_a_divergence(same: Same) -> None:
    same.record(lines_of(2))
    before = same.server.counts()
    _, proof = same.replay(lines_of(8))
    assert proof.difference is not None
    assert proof.difference.code == Code.PAST_END
    assert same.server.counts() == before


def test_reading_less_than_the_recording_is_no_identical_replay(same: Same) -> None:
    same.record(lines_of(18))
    _, proof = same.replay(lines_of(2))
    assert not proof.identical


def test_another_file_than_recorded_is_a_divergence(same: Same, tmp_path: Path) -> None:
    file = tmp_path / "upload"

    async def run(session: aiohttp.ClientSession, url: str) -> Any:
        return await whole(session, "POST", f"{url}/echo", data=file.open("rb"))

    file.write_bytes(b"one" * 1000)
    same.record(in_session(run))
    file.write_bytes(b"two" * 1000)
    seen, proof = same.replay(in_session(run))
    assert isinstance(seen, BaseException)
    assert proof.difference is not None
    assert (proof.difference.code, proof.difference.path) == (Code.REQUEST, "body")


@pytest.mark.parametrize("changed", ["body", "path", "header", "method", "streamed body"])
def test_another_request_is_a_divergence(same: Same, changed: str) -> None:
    def program(change: str) -> Program:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"other" if change == "streamed body" else b"same"

        async def run(session: aiohttp.ClientSession, url: str) -> Any:
            method = "PUT" if change == "method" else "POST"
            path = "other" if change == "path" else "echo"
            headers = {"X-Who": "2" if change == "header" else "1"}
            body: Any = b"two" if change == "body" else b"one"
            if changed == "streamed body":
                body = pieces()
            return await whole(session, method, f"{url}/{path}", data=body, headers=headers)

        return in_session(run)

    same.record(program(""))
    before = same.server.counts()
    seen, proof = same.replay(program(changed))
    assert isinstance(seen, BaseException)
    assert proof.difference is not None
    assert proof.difference.code == Code.REQUEST
    assert "test_aiohttp.py" in proof.difference.source
    assert same.server.counts() == before


FRESH = """
import sys
from lockstep.session.session import finish, start_replay
from tests.taps.http import test_aiohttp as programs

run, url, name = sys.argv[1:]
session = start_replay(None, run, deadline=10.0)
seen = programs.in_session(getattr(programs, name))(programs.Address(url))
report = finish(session, 0, None)
print(report.difference)
print(report.digest)
print(repr(seen))
"""


class Address:
    """Where the server was, for a process that must not reach it."""

    def __init__(self, url: str) -> None:
        self.url = url


@pytest.mark.parametrize(
    "program",
    [get_and_post, answers_of_all_kinds, uploads, reading, abandoned, broken, timeouts, at_the_same_time, cancelled],
)
def test_a_fresh_process_replays_it(same: Same, program: Any) -> None:
    """Another process, with another hash seed: what is stored is all that a replay needs."""
    seen, report = same.record(in_session(program))
    before = same.server.counts()
    done = subprocess.run(
        [sys.executable, "-c", FRESH, same.run, same.server.url, program.__name__],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(["", *sys.path]), "PYTHONHASHSEED": "7"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.splitlines()) == (0, ["None", report.digest, repr(seen)]), done.stderr
    assert same.server.counts() == before


def test_the_stored_answer_can_be_read_back(same: Same) -> None:
    async def run(session: aiohttp.ClientSession, url: str) -> Any:
        async with session.post(f"{url}/echo", data=b"wait", expect100=True) as response:
            await response.read()
        async with session.get(f"{url}/sse?n=3") as response:
            await response.read()

    same.record(in_session(run))
    reader = open_store(None).run(same.run)
    answers: dict[int, list[Any]] = {}
    for event in reader.events(reader.streams[0].id):
        if event.kind is Kind.PART:
            answers.setdefault(event.of, []).append(event.body)
    echo, stream = (answer(parts) for parts in answers.values())
    assert (echo.status, echo.header("x-case")) == (200, "Kept As Sent")
    assert b'"method": "POST"' in echo.body
    assert (stream.status, stream.body) == (200, b"".join(b"data: event %d\n\n" % n for n in range(3)))
