"""Programs of every client and of processes, forked: what came before is served, what follows is live and recorded."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import select
import subprocess
import threading
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import httpx2
import pytest
import requests
import urllib3

import lockstep
from lockstep.testing import Provider

type Program = Callable[[str], list[Any]]
type Get = Callable[[str], str]


class Forks:
    """Records a program, forks it, and replays the branch."""

    def __init__(self, provider: Provider, store: Path) -> None:
        self.provider = provider
        self._store = store

    def record(self, program: Program) -> Any:
        with lockstep.record("run", store=self._store) as session:
            result = program(self.provider.url)
        assert session.report.faults == ()
        return result

    def fork(self, program: Program, step: int, live: tuple[str, ...] = ()) -> Any:
        """The branch, as it ended. Its replay is identical and asks nobody."""
        before = self.provider.requests
        try:
            run = lockstep.fork(f"run:{step}", lambda: program(self.provider.url), store=self._store, live=live)
        except lockstep.Refused as refused:
            run = refused.run
        assert run.report.faults == ()
        self.asked = self.provider.requests - before
        replay = lockstep.replay(run.address, lambda: program(self.provider.url), store=self._store)
        assert replay.divergence is None
        assert replay.result == run.result
        assert self.provider.requests - before == self.asked
        return run


@pytest.fixture
def forks(tmp_path: Path) -> Iterator[Forks]:
    with Provider() as provider:
        yield Forks(provider, tmp_path / "store.db")


def number(answer: str) -> int:
    """Every answer of the provider has another one."""
    return int(json.loads(answer)["n"])


def by_http_client(url: str) -> Get:
    connection = http.client.HTTPConnection(url.partition("//")[2])

    def get(path: str) -> str:
        connection.request("GET", path)
        return connection.getresponse().read().decode()

    return get


def by_urllib(url: str) -> Get:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return lambda path: opener.open(url + path).read().decode()


def by_urllib3(url: str) -> Get:
    pool = urllib3.PoolManager()
    return lambda path: pool.request("GET", url + path).data.decode()


def by_requests(url: str) -> Get:
    client = requests.Session()
    client.trust_env = False
    return lambda path: client.get(url + path).text


def by_httpx(library: Any) -> Callable[[str], Get]:
    def made(url: str) -> Get:
        client = library.Client(base_url=url, trust_env=False)
        return lambda path: str(client.get(path).text)

    return made


CLIENTS = [by_http_client, by_urllib, by_urllib3, by_requests, by_httpx(httpx), by_httpx(httpx2)]


@pytest.mark.parametrize("client", CLIENTS, ids=["http.client", "urllib", "urllib3", "requests", "httpx", "httpx2"])
def test_calls_before_the_step_are_served_and_those_after_it_are_made(
    forks: Forks, client: Callable[[str], Get]
) -> None:
    def program(url: str) -> list[Any]:
        get = client(url)
        return [number(get(f"/{path}")) for path in range(4)]

    assert forks.record(program) == [1, 2, 3, 4]
    run = forks.fork(program, 2)
    assert run.result == [1, 2, 5, 6]
    assert (run.state, run.live, forks.asked) == ("complete", 2, 2)


def in_httpx(library: Any) -> Any:
    @asynccontextmanager
    async def opened(url: str) -> AsyncIterator[Any]:
        async with library.AsyncClient(base_url=url, trust_env=False) as client:

            async def get(path: str) -> str:
                return str((await client.get(path)).text)

            yield get

    return opened


@asynccontextmanager
async def in_aiohttp(url: str) -> AsyncIterator[Any]:
    async with aiohttp.ClientSession() as client:

        async def get(path: str) -> str:
            async with client.get(url + path) as response:
                return await response.text()

        yield get


ASYNC = [in_httpx(httpx), in_httpx(httpx2), in_aiohttp]


@pytest.mark.parametrize("client", ASYNC, ids=["httpx", "httpx2", "aiohttp"])
def test_calls_of_tasks_that_were_under_way_at_the_step_are_made_anew(forks: Forks, client: Any) -> None:
    async def main(url: str) -> list[Any]:
        async with client(url) as get:
            found = await asyncio.gather(*(get(f"/{path}?delay={0.05 * path}") for path in range(4)))
            return [number(answer) for answer in [*found, await get("/last")]]

    def program(url: str) -> list[Any]:
        return asyncio.run(main(url))

    recorded = forks.record(program)
    run = forks.fork(program, 1)
    assert run.result[:1] == recorded[:1]
    assert set(run.result[1:]).isdisjoint(recorded)
    assert (run.live, forks.asked) == (4, 4)


def half_by_requests(url: str) -> list[Any]:
    with requests.Session() as client:
        client.trust_env = False
        events = client.get(f"{url}/events?count=4&gap=0.02", stream=True).iter_lines()
        return [next(events), number(client.get(f"{url}/1").text), list(events), number(client.get(f"{url}/2").text)]


def half_by_httpx(url: str) -> list[Any]:
    async def main() -> list[Any]:
        async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
            async with client.stream("GET", "/events?count=4&gap=0.02") as response:
                events = response.aiter_lines()
                first = [await anext(events), number((await client.get("/1")).text)]
                rest = [line async for line in events]
            return [*first, rest, number((await client.get("/2")).text)]

    return asyncio.run(main())


def half_by_aiohttp(url: str) -> list[Any]:
    async def main() -> list[Any]:
        async with in_aiohttp(url) as get, aiohttp.ClientSession() as client:
            async with client.get(f"{url}/events?count=4&gap=0.02") as response:
                first = [await response.content.readline(), number(await get("/1"))]
                rest = await response.read()
            return [*first, rest, number(await get("/2"))]

    return asyncio.run(main())


@pytest.mark.parametrize("program", [half_by_requests, half_by_httpx, half_by_aiohttp])
def test_an_answer_that_the_program_had_begun_to_read_is_served_to_its_end(forks: Forks, program: Program) -> None:
    recorded = forks.record(program)
    run = forks.fork(program, 1)
    assert run.result[:3] == recorded[:3]
    assert run.result[3] not in recorded
    assert (run.live, forks.asked) == (1, 1)


def ordering(amount: int) -> Program:
    async def asking(url: str) -> int:
        async with in_httpx(httpx)(url) as ask:
            return number(await ask("/1?delay=0.05"))

    async def sending(url: str) -> int:
        async with httpx.AsyncClient(trust_env=False) as client:
            return number((await client.post(f"{url}/order", json={"amount": amount})).text)

    async def main(url: str) -> list[Any]:
        return [await asking(url), *await asyncio.gather(asking(url), sending(url))]

    return lambda url: asyncio.run(main(url))


def test_an_order_is_not_sent_a_second_time(forks: Forks) -> None:
    _, _, recorded = forks.record(ordering(1))
    run = forks.fork(ordering(1), 0)
    assert (run.state, run.result[2], run.reused, run.live, forks.asked) == ("complete", recorded, 1, 2, 2)


def test_what_other_tasks_do_after_a_refusal_is_not_of_the_branch(forks: Forks) -> None:
    forks.record(ordering(1))
    sent = len(forks.provider.seen)
    assert forks.fork(ordering(2), 0).state == "refused"
    assert [request.method for request in forks.provider.seen[sent:] if request.method == "POST"] == []


def get(url: str, path: str) -> int:
    return number(httpx.get(url + path, trust_env=False).text)


def finished_later(url: str) -> list[Any]:
    with subprocess.Popen("date +%N; exit 77", shell=True, stdout=subprocess.PIPE) as process:
        first = get(url, "/1")
        return [first, process.communicate()[0], process.returncode, get(url, "/2")]


def half_read(url: str) -> list[Any]:
    command = "echo first; sleep 0.05; date +%N"
    with subprocess.Popen(command, shell=True, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        found = [process.stdout.readline(), get(url, "/1"), process.stdout.read(), process.wait()]
    return [found[1], found[0], *found[2:], get(url, "/2")]


def never_waited_for(url: str) -> list[Any]:
    process = subprocess.Popen("sleep 0.01; exit 77", shell=True)
    found = [get(url, "/1"), get(url, "/2")]
    process.wait()
    return [found[0], process.returncode, get(url, "/3")]


def in_a_loop(url: str) -> list[Any]:
    async def main() -> list[Any]:
        process = await asyncio.create_subprocess_shell(
            "echo first; sleep 0.1; date +%N; exit 77", stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        line = await process.stdout.readline()
        async with in_httpx(httpx)(url) as ask:
            first = number(await ask("/1"))
            rest = await process.stdout.read()
            return [first, line, rest, await process.wait(), number(await ask("/2"))]

    return asyncio.run(main())


def in_a_thread(url: str) -> list[Any]:
    found: list[bytes] = []

    def work() -> None:
        found.append(subprocess.run("sleep 0.1; date +%N", shell=True, capture_output=True, check=True).stdout)

    thread = threading.Thread(target=work)
    thread.start()
    first = get(url, "/1")
    thread.join()
    return [first, *found, get(url, "/2")]


def selected(url: str) -> list[Any]:
    with subprocess.Popen("sleep 0.02; date +%N", shell=True, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        first = get(url, "/1")
        ready, _, _ = select.select([process.stdout], [], [])
        return [first, len(ready), os.read(ready[0].fileno(), 100), process.wait(), get(url, "/2")]


PROCESSES = [finished_later, selected, half_read, never_waited_for, in_a_loop, in_a_thread]


@pytest.mark.parametrize("program", PROCESSES)
def test_a_process_that_had_been_started_is_served_to_its_end(forks: Forks, program: Program) -> None:
    recorded = forks.record(program)
    run = forks.fork(program, 1)
    assert run.state == "complete"
    assert run.result[:-1] == recorded[:-1]
    assert run.result[-1] not in recorded


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")  # a refusal in a thread
@pytest.mark.parametrize("program", PROCESSES)
def test_a_process_is_started_anew_only_where_that_is_allowed(forks: Forks, program: Program) -> None:
    recorded = forks.record(program)
    assert forks.fork(program, 0).state == "refused"
    run = forks.fork(program, 0, live=("sh",))
    assert run.state == "complete"
    assert set(map(repr, run.result[:1])).isdisjoint(map(repr, recorded[:1]))
