"""httpx and httpx2, sync and async: what a program sees of an exchange is the same bare, recorded and replayed."""

from __future__ import annotations

import asyncio
import importlib
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import Any

import pytest
from tests.taps.http.conftest import Odd, Same, chain, raised

from lockstep.session.session import finish, start_recording

type Client = Any
type Act = Callable[[Odd, Client], Any]
type AsyncAct = Callable[[Odd, Client], Awaitable[Any]]


@pytest.fixture(params=["httpx", "httpx2"])
def lib(request: pytest.FixtureRequest) -> ModuleType:
    return importlib.import_module(request.param)


def sync_of(lib: Any, act: Act, **options: Any) -> Callable[[Odd], Any]:
    def program(odd: Odd) -> Any:
        with lib.Client(base_url=odd.url, trust_env=False, **options) as client:
            return act(odd, client)

    return program


def async_of(lib: Any, act: AsyncAct, **options: Any) -> Callable[[Odd], Any]:
    async def body(odd: Odd) -> Any:
        async with lib.AsyncClient(base_url=odd.url, trust_env=False, **options) as client:
            return await act(odd, client)

    return lambda odd: asyncio.run(body(odd))


def seen(response: Any) -> dict[str, Any]:
    return {
        "status": response.status_code,
        "reason": response.reason_phrase,
        "version": response.http_version,
        "headers": response.headers.raw,
        "content": response.content,
        "url": str(response.url),
        "history": [(step.status_code, step.headers.raw) for step in response.history],
        "cookies": sorted(response.cookies.items()),
        "encoding": response.encoding,
    }


PATHS = ["/echo?a=1&b=", "/gzip", "/cookies", "/latin1", "/binary", "/empty", "/unmodified", "/until-close"]
PATHS += ["/old", "/trailers", "/big?mb=1", "/sse"]


def test_every_kind_of_answer_and_header_is_kept(same: Same[Odd], lib: Any) -> None:
    def act(odd: Odd, client: Client) -> Any:
        return [seen(client.get(path)) for path in PATHS], seen(client.head("/echo"))

    same(sync_of(lib, act), hits=len(PATHS) + 1, held=True)


def test_every_kind_of_answer_and_header_is_kept_async(same: Same[Odd], lib: Any) -> None:
    async def act(odd: Odd, client: Client) -> Any:
        return [seen(await client.get(path)) for path in PATHS], seen(await client.head("/echo"))

    same(async_of(lib, act), hits=len(PATHS) + 1)


def letters() -> Iterator[bytes]:
    yield b"one "
    yield b"two"


async def aletters() -> AsyncIterator[bytes]:
    yield b"one "
    await asyncio.sleep(0)
    yield b"two"


BODIES: list[dict[str, Any]] = [
    {"content": b"\x00\xff raw"},
    {"content": "text"},
    {"json": {"a": [1, 2.5, None], "b": "ü"}},
    {"data": {"form": "field", "twice": ["1", "2"]}},
    {"files": {"upload": ("name.txt", b"content", "text/plain")}, "data": {"beside": "it"}},
    {"content": b"y" * (3 << 20)},
]


def test_every_kind_of_request_body_is_sent_as_it_was(same: Same[Odd], lib: Any) -> None:
    def act(odd: Odd, client: Client) -> Any:
        answers = [seen(client.post("/echo", **body)) for body in BODIES]
        return answers, seen(client.post("/echo", content=letters()))

    same(sync_of(lib, act), hits=len(BODIES) + 1, held=True)


def test_every_kind_of_request_body_is_sent_as_it_was_async(same: Same[Odd], lib: Any) -> None:
    async def act(odd: Odd, client: Client) -> Any:
        answers = [seen(await client.post("/echo", **body)) for body in BODIES]
        return answers, seen(await client.post("/echo", content=aletters()))

    same(async_of(lib, act), hits=len(BODIES) + 1, held=True)


def test_redirects_cookies_auth_and_hooks_stay_the_clients_own(same: Same[Odd], lib: Any) -> None:
    def act(odd: Odd, client: Client) -> Any:
        hooked: list[Any] = []
        client.event_hooks = {
            "request": [lambda request: hooked.append(("asks", request.method, str(request.url)))],
            "response": [lambda response: hooked.append(("got", response.status_code))],
        }
        followed = client.get("/redirect", follow_redirects=True)
        digest = client.get("/private", auth=("user", "word"))
        return seen(followed), seen(digest), hooked, sorted(client.cookies.items())

    same(sync_of(lib, act), hits=3)


def by_lines(odd: Odd, client: Client) -> Any:
    with client.stream("GET", "/sse") as response:
        return list(response.iter_lines()), response.headers.raw


def raw_gzip(odd: Odd, client: Client) -> Any:
    with client.stream("GET", "/gzip-sse") as response:
        packed = b"".join(response.iter_raw())
    with client.stream("GET", "/gzip-sse") as response:
        return packed, list(response.iter_lines())


def half_read(odd: Odd, client: Client) -> Any:
    with client.stream("GET", "/sse?n=50&gap=0") as response:
        lines = response.iter_lines()
        return [next(lines) for _ in range(3)]


def never_read(odd: Odd, client: Client) -> Any:
    with client.stream("GET", "/sse") as response:
        return response.status_code, response.is_closed


def endless(odd: Odd, client: Client) -> Any:
    with client.stream("GET", "/forever") as response:
        for number, line in enumerate(response.iter_lines()):
            if number == 6:
                return line
    return None


def broken(odd: Odd, client: Client) -> Any:
    lines: list[str] = []
    with client.stream("GET", "/broken") as response:
        error = raised(lambda: lines.extend(iter(response.iter_lines())))
    return lines, error


def dropped(odd: Odd, client: Client) -> Any:
    # Nobody closes these: the collector does, in its own time.
    kept = [client.send(client.build_request("GET", "/sse"), stream=True) for _ in range(3)]
    next(kept[1].iter_raw())
    return [response.status_code for response in kept]


@pytest.mark.parametrize("act", [by_lines, raw_gzip, half_read, never_read, endless, broken, dropped])
def test_a_stream_replays_as_what_it_was(same: Same[Odd], lib: Any, act: Act) -> None:
    same(sync_of(lib, act))


async def aby_lines(odd: Odd, client: Client) -> Any:
    async with client.stream("GET", "/sse") as response:
        return [line async for line in response.aiter_lines()]


async def ahalf_read(odd: Odd, client: Client) -> Any:
    async with client.stream("GET", "/sse?n=50&gap=0") as response:
        lines = response.aiter_lines()
        return [await anext(lines) for _ in range(3)]


async def anever_read(odd: Odd, client: Client) -> Any:
    async with client.stream("GET", "/sse") as response:
        return response.status_code


async def aendless(odd: Odd, client: Client) -> Any:
    async with client.stream("GET", "/forever") as response:
        seen = []
        async for line in response.aiter_lines():
            seen.append(line)
            if len(seen) == 6:
                break
    return seen


async def abroken(odd: Odd, client: Client) -> Any:
    lines: list[str] = []
    try:
        async with client.stream("GET", "/broken") as response:
            async for line in response.aiter_lines():
                lines.append(line)
    except Exception as error:
        return lines, chain(error)
    raise AssertionError("nothing was raised")


async def acancelled_while_streaming(odd: Odd, client: Client) -> Any:
    lines: list[str] = []

    async def read() -> None:
        async with client.stream("GET", "/stalls?s=30") as response:
            async for line in response.aiter_text():
                lines.append(line)
                reached.set()

    reached = asyncio.Event()
    task = asyncio.create_task(read())
    await reached.wait()
    task.cancel()
    ended = await asyncio.gather(task, return_exceptions=True)
    return lines, [type(end).__name__ for end in ended]


async def acancelled_before_headers(odd: Odd, client: Client) -> Any:
    try:
        await asyncio.wait_for(client.get("/slow?s=30"), 0.2)
    except TimeoutError as error:
        return chain(error), seen(await client.get("/echo"))
    raise AssertionError("nothing was raised")


async def aread_by_another_task(odd: Odd, client: Client) -> Any:
    response = await client.send(client.build_request("GET", "/sse"), stream=True)
    return await asyncio.create_task(response.aread())


async def aunclosed(odd: Odd, client: Client) -> Any:
    response = await client.send(client.build_request("GET", "/sse"), stream=True)
    return response.status_code


@pytest.mark.parametrize(
    "act",
    [
        aby_lines,
        ahalf_read,
        anever_read,
        aendless,
        abroken,
        acancelled_while_streaming,
        acancelled_before_headers,
        aread_by_another_task,
        aunclosed,
    ],
)
def test_a_stream_of_a_task_replays_as_what_it_was(same: Same[Odd], lib: Any, act: AsyncAct) -> None:
    same(async_of(lib, act))


def test_many_tasks_at_once_come_back_in_the_same_order(same: Same[Odd], lib: Any) -> None:
    async def act(odd: Odd, client: Client) -> Any:
        order: list[Any] = []

        async def one(number: int) -> None:
            async with lib.AsyncClient(trust_env=False) as own:
                first = await client.get(f"/slow?s=0.0{number % 3}")
                order.append((number, first.json()))
                async with own.stream("GET", f"{odd.url}/sse?n=3&gap=0.00{number}") as response:
                    async for line in response.aiter_lines():
                        order.append((number, line))
            order.append((number, "closed"))

        await asyncio.gather(*(one(number) for number in range(6)))
        # The order is the server's and the scheduler's: each run has its own, and a replay has the recording's.
        orders.append(order)
        return sorted(map(str, order))

    orders: list[Any] = []
    same(async_of(lib, act), held=True)
    assert orders[2] == orders[1]


def test_threads_that_share_a_client_each_get_their_own_answers(same: Same[Odd], lib: Any) -> None:
    def act(odd: Odd, client: Client) -> Any:
        def one(number: int) -> Any:
            answer = client.get(f"/slow?s=0.0{number % 4}").json()
            with client.stream("GET", f"/echo?n={number}") as response:
                return number, answer, response.read()

        with ThreadPoolExecutor(4) as threads:
            return list(threads.map(one, range(12)))

    # Each thread with connections enough: short of them, httpcore 1.0 itself loses some to another thread.
    same(sync_of(lib, act), hits=24, held=True)


def test_a_connection_that_the_server_closed_meanwhile_is_made_anew(same: Same[Odd], lib: Any) -> None:
    def act(odd: Odd, client: Client) -> Any:
        first = seen(client.get("/closes-after"))
        time.sleep(0.1)  # the end of the connection must have arrived
        return first, seen(client.get("/echo"))

    same(sync_of(lib, act), hits=2, held=True)


FAILURES = ["/closed", "/broken", "/short", "/reset", "/nonsense"]


def test_failures_are_raised_with_the_same_types_texts_and_causes(same: Same[Odd], lib: Any) -> None:
    def act(odd: Odd, client: Client) -> Any:
        errors = [raised(lambda path=path: client.get(path)) for path in FAILURES]
        errors.append(raised(lambda: client.get("http://127.0.0.1:1/")))
        errors.append(raised(lambda: client.get("http://no-such-host.invalid/")))
        errors.append(raised(lambda: client.get("/slow?s=30", timeout=0.1)))
        errors.append(raised(lambda: client.get("ftp://127.0.0.1/")))
        return errors

    same(sync_of(lib, act), held=True)


def test_failures_are_raised_with_the_same_types_texts_and_causes_async(same: Same[Odd], lib: Any) -> None:
    async def act(odd: Odd, client: Client) -> Any:
        errors = []
        for path in [*FAILURES, "http://127.0.0.1:1/", "/slow?s=30"]:
            try:
                await client.get(path, timeout=0.2 if "slow" in path else 30)
            except Exception as error:
                errors.append(chain(error))
        return errors

    same(async_of(lib, act), held=True)


def test_a_body_that_raises_raises_the_same_again(same: Same[Odd], lib: Any) -> None:
    ran: list[str] = []

    def body() -> Iterator[bytes]:
        ran.append("begun")
        yield b"part"
        raise KeyError("of the program")

    def act(odd: Odd, client: Client) -> Any:
        return raised(lambda: client.post("/echo", content=body())), ran.count("begun"), ran.clear()

    same(sync_of(lib, act), held=True)


def test_a_body_that_the_server_refused_midway_is_drawn_no_further(same: Same[Odd], lib: Any) -> None:
    drawn: list[int] = []

    def body() -> Iterator[bytes]:
        for number in range(10_000):
            drawn.append(number)
            yield b"z" * 65536

    def act(odd: Odd, client: Client) -> Any:
        response = client.post("/early", content=body())
        return response.status_code, response.content

    recorded, report = same.record(sync_of(lib, act))
    assert recorded == (413, b"no") and not report.faults
    first, drawn[:] = len(drawn), []
    replayed, proof = same.replay(sync_of(lib, act))
    assert replayed == recorded and proof.identical, proof.difference
    assert len(drawn) == first


def test_tls_and_its_errors(same: Same[Odd], lib: Any) -> None:
    def program(odd: Odd) -> Any:
        trusting = ssl.create_default_context(cafile=odd.certificate)
        with lib.Client(verify=trusting, trust_env=False) as client:
            answer = seen(client.get(odd.tls + "/echo"))
        with lib.Client(verify=ssl.create_default_context(), trust_env=False) as client:
            doubts = raised(lambda: client.get(odd.tls + "/echo"))
            plain = raised(lambda: client.get(odd.url.replace("http:", "https:")))
        return answer, doubts, plain

    same(program)


def test_proxies_forwarding_and_tunnelling(same: Same[Odd], lib: Any) -> None:
    def program(odd: Odd) -> Any:
        trusting = ssl.create_default_context(cafile=odd.certificate)
        proxy = odd.url.replace("//", "//user:word@")
        with lib.Client(proxy=proxy, verify=trusting, trust_env=False) as client:
            forwarded = seen(client.get("http://far.example/x?y=1"))
            tunnelled = seen(client.get(odd.tls + "/echo"))
        with lib.Client(proxy=odd.url.replace("//", "//no:no@"), verify=trusting, trust_env=False) as client:
            refused = raised(lambda: client.get(odd.tls + "/echo"))
        return forwarded, tunnelled, refused

    same(program, held=True)


def test_a_client_made_before_the_session_is_covered(same: Same[Odd], lib: Any) -> None:
    with lib.Client(base_url=same.server.url, trust_env=False) as client:
        client.get("/echo")  # and has a live connection to keep
        same(lambda odd: seen(client.get("/gzip")))
        assert client.get("/echo").status_code == 200


def test_the_modules_own_functions_are_covered(same: Same[Odd], lib: Any) -> None:
    same(lambda odd: [seen(lib.get(odd.url + "/echo")), seen(lib.post(odd.url + "/echo", json=[1]))], hits=2)


def test_direct_use_of_the_pool_is_covered(same: Same[Odd], lib: Any) -> None:
    core = importlib.import_module(lib.__name__.replace("httpx", "httpcore"))

    def program(odd: Odd) -> Any:
        with core.ConnectionPool() as pool:
            plain = pool.request("POST", odd.url + "/echo", content=b"body")
            with pool.stream("GET", odd.url + "/sse") as response:
                pieces = list(response.iter_stream())
                peer = response.extensions["network_stream"].get_extra_info("server_addr")
        return plain.status, plain.headers, plain.content, pieces, peer

    same(program, hits=2)


def test_a_transport_of_the_programs_own_runs_in_a_replay(same: Same[Odd], lib: Any) -> None:
    tried: list[str] = []

    class Stubborn(lib.BaseTransport):  # type: ignore[name-defined, misc]
        """Retries by itself: each attempt is an exchange."""

        def __init__(self) -> None:
            self.inner = lib.HTTPTransport()

        def handle_request(self, request: Any) -> Any:
            while True:
                response = self.inner.handle_request(request)
                tried.append(f"{request.url.path} {response.status_code}")
                if response.status_code != 503:
                    return response
                response.read()

    def program(odd: Odd) -> Any:
        tried.clear()
        mocked = lib.MockTransport(lambda request: lib.Response(201, text=str(request.url)))
        with lib.Client(transport=Stubborn(), mounts={"http://mocked.example": mocked}, trust_env=False) as client:
            answer = client.get(f"{odd.url}/flaky?{lib.__name__}")
            return seen(answer), seen(client.get("http://mocked.example/a")), list(tried)

    report = same(program, hits=2)
    assert report.counts == {"http": 2}, "an answer of a mock is the program's own"


def test_the_program_gets_a_stream_while_it_arrives(same: Same[Odd], lib: Any) -> None:
    """Recording does not read ahead: the first event is there long before the last one was sent."""

    def act(odd: Odd, client: Client) -> Any:
        with client.stream("GET", "/held") as response:
            lines = response.iter_lines()
            first = next(lines)
            odd.release()
            return [first, *lines]

    recorded, _ = same.record(sync_of(lib, act))
    assert recorded == ["data: first", "", "data: released", ""]


def test_reading_further_than_the_recording_is_a_divergence_and_no_invented_end(same: Same[Odd], lib: Any) -> None:
    more = [False]

    def act(odd: Odd, client: Client) -> Any:
        with client.stream("GET", "/sse?n=50&gap=0") as response:
            lines = response.iter_lines()
            next(lines)
            return list(lines) if more[0] else None

    same.record(sync_of(lib, act))
    more[0] = True
    _, proof = same.replay(sync_of(lib, act))
    assert proof.difference is not None and proof.difference.code == "LS108"


CHANGES: list[tuple[str, dict[str, Any], str]] = [
    ("another body", {"json": {"question": "b"}}, "body.question"),
    ("another custom header", {"headers": {"x-user-id": "2"}}, "headers"),
    ("another query", {"params": {"page": "2"}}, "url"),
]


@pytest.mark.parametrize(("what", "change", "path"), CHANGES)
def test_a_changed_request_is_a_divergence_that_names_the_field(
    same: Same[Odd], lib: Any, what: str, change: dict[str, Any], path: str
) -> None:
    now: dict[str, Any] = {}

    def act(odd: Odd, client: Client) -> Any:
        asked: dict[str, Any] = {"json": {"question": "a"}, "headers": {"x-user-id": "1"}, "params": {"page": "1"}}
        return client.post("/echo", **{**asked, **now}).status_code

    same.record(sync_of(lib, act))
    now.update(change)
    before = same.counts()
    _, proof = same.replay(sync_of(lib, act))
    assert proof.difference is not None and proof.difference.code == "LS101"
    assert proof.difference.path.startswith(path)
    assert same.counts() == before


def test_what_changes_from_run_to_run_and_who_asks_do_not_matter(same: Same[Odd], lib: Any) -> None:
    now = {"authorization": "Bearer one", "user-agent": "agent/1", "x-request-id": "1", "traceparent": "00-a"}

    def act(odd: Odd, client: Client) -> Any:
        files = {"upload": ("name.txt", b"content")}  # with a boundary of its own each time
        return client.post("/echo", files=files, headers=now, params={"api_key": now["x-request-id"]}).status_code

    same.record(sync_of(lib, act))
    now.update({"authorization": "Bearer two", "user-agent": "agent/2", "x-request-id": "2", "traceparent": "00-b"})
    replayed, proof = same.replay(sync_of(lib, act))
    assert replayed == 200 and proof.identical, proof.difference


def test_a_mock_that_takes_our_seam_off_is_noticed_and_the_next_session_puts_it_back(same: Same[Odd], lib: Any) -> None:
    core: Any = importlib.import_module(lib.__name__.replace("httpx", "httpcore"))
    original = core.ConnectionPool.handle_request
    while hasattr(original, "__wrapped__"):
        original = original.__wrapped__

    session = start_recording(None, "mocked", {})
    core.ConnectionPool.handle_request = original  # what a mock does that was started before us and stops now
    finish(session, 0, None)
    assert [source for source, _ in session.notes] == [f"{core.__name__}.ConnectionPool.handle_request"]
    same(lambda odd: lib.get(odd.url + "/echo").status_code, hits=1)


def test_a_session_that_is_over_leaves_clients_as_they_were(same: Same[Odd], lib: Any) -> None:
    with lib.Client(base_url=same.server.url, trust_env=False) as client:
        same(lambda odd: seen(client.get("/echo")))
        before = same.counts()
        assert client.get("/echo").status_code == 200
        assert same.counts()[0] == before[0] + 1
