"""http.client, urllib, urllib3 and requests: a program sees the same exchange bare, recorded and replayed."""

from __future__ import annotations

import http.client
import http.cookiejar
import inspect
import io
import json
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests
import urllib3
from requests.adapters import HTTPAdapter
from tests.taps.http.conftest import Odd, Same, raised
from urllib3.util import Retry

from lockstep.session.session import finish, start_recording, start_replay

PATHS = ["/echo?a=1&b=", "/gzip", "/cookies", "/latin1", "/binary", "/empty", "/unmodified", "/until-close"]
PATHS += ["/old", "/trailers", "/big?mb=1", "/sse", "/gzip-sse"]


def session() -> requests.Session:
    made = requests.Session()
    made.trust_env = False
    return made


def seen(response: requests.Response) -> dict[str, Any]:
    return {
        "status": response.status_code,
        "reason": response.reason,
        "version": response.raw.version,
        "headers": list(response.raw.headers.items()),
        "content": response.content,
        "url": response.url,
        "encoding": response.encoding,
        "history": [(step.status_code, list(step.raw.headers.items())) for step in response.history],
        "cookies": sorted(response.cookies.items()),
    }


def plain(response: http.client.HTTPResponse) -> dict[str, Any]:
    return {
        "status": response.status,
        "reason": response.reason,
        "version": response.version,
        "headers": response.getheaders(),
        "content": response.read(),
        "will_close": response.will_close,
        "closed": response.isclosed(),
    }


def test_every_kind_of_answer_through_requests(same: Same[Odd]) -> None:
    def program(odd: Odd) -> Any:
        with session() as client:
            answers = [seen(client.get(odd.url + path)) for path in PATHS]
            return answers, seen(client.head(odd.url + "/echo")), seen(client.options(odd.url + "/echo"))

    same(program, hits=len(PATHS) + 2)


def test_every_kind_of_answer_through_http_client_on_one_connection(same: Same[Odd]) -> None:
    def program(odd: Odd) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", odd.port)
        answers = []
        for path in PATHS:
            connection.request("GET", path)
            answers.append(plain(connection.getresponse()))
        connection.request("HEAD", "/echo")
        answers.append(plain(connection.getresponse()))
        connection.close()
        return answers

    same(program, hits=len(PATHS) + 1, held=True)


def test_every_kind_of_answer_through_urllib(same: Same[Odd]) -> None:
    def program(odd: Odd) -> Any:
        jar = http.cookiejar.CookieJar()
        proxies = urllib.request.ProxyHandler({})
        opener = urllib.request.build_opener(proxies, urllib.request.HTTPCookieProcessor(jar))
        answers = []
        for path in [*PATHS, "/redirect"]:
            try:
                with opener.open(odd.url + path) as response:
                    answers.append((response.geturl(), plain(response)))
            except urllib.error.HTTPError as error:
                answers.append((error.code, dict(error.headers), error.read()))
        return answers, sorted((cookie.name, cookie.value) for cookie in jar)

    same(program, hits=len(PATHS) + 2)


def test_every_kind_of_answer_through_urllib3(same: Same[Odd]) -> None:
    def program(odd: Odd) -> Any:
        answers = []
        with urllib3.PoolManager() as pool:
            for path in PATHS:
                response = pool.request("GET", odd.url + path)
                answers.append((response.status, list(response.headers.items()), response.data, response.version))
        return answers

    same(program, hits=len(PATHS), held=True)


def letters() -> Iterator[bytes]:
    yield b"one "
    yield b"two"


def test_every_kind_of_request_body_is_sent_as_it_was(same: Same[Odd], tmp_path: Path) -> None:
    file = tmp_path / "upload.bin"
    file.write_bytes(bytes(range(256)) * 300)

    def program(odd: Odd) -> Any:
        url = odd.url + "/echo"
        with session() as client, file.open("rb") as opened:
            answers = [
                client.post(url, data=b"\x00\xff raw"),
                client.post(url, data={"form": "field", "twice": ["1", "2"]}),
                client.post(url, json={"a": [1, 2.5, None], "b": "ü"}),
                client.post(url, files={"upload": ("name.txt", b"content", "text/plain")}, data={"beside": "it"}),
                client.post(url, data=letters()),
                client.put(url, data=opened),
                client.post(url, data=b"y" * (3 << 20)),
                client.delete(url, headers={"X-Why": "no more"}),
            ]
            return [seen(answer) for answer in answers]

    same(program, hits=8, held=True)


def test_every_way_to_give_http_client_a_body(same: Same[Odd], tmp_path: Path) -> None:
    file = tmp_path / "upload.txt"
    file.write_text("from a file")

    def program(odd: Odd) -> Any:
        answers = []
        connection = http.client.HTTPConnection("127.0.0.1", odd.port)
        for body in (b"bytes", "text", bytearray(b"array"), letters(), io.BytesIO(b"file"), io.StringIO("letters")):
            connection.request("POST", "/echo", body=body, headers={"X-Kind": type(body).__name__})
            answers.append(plain(connection.getresponse()))
        # By hand, with what `send` takes.
        for piece, length in ((file.open("rb"), 11), (file.open(), 11), ([b"a", b"bc"], 3), (memoryview(b"view"), 4)):
            connection.putrequest("POST", "/echo")
            connection.putheader("Content-Length", str(length))
            connection.endheaders()
            connection.send(piece)  # type: ignore[arg-type]
            answers.append(plain(connection.getresponse()))
            if hasattr(piece, "close"):
                piece.close()
        connection.close()
        return answers

    same(program, hits=10, held=True)


def test_redirects_cookies_and_auth_stay_the_clients_own(same: Same[Odd]) -> None:
    def program(odd: Odd) -> Any:
        hooked: list[Any] = []
        with session() as client:
            client.hooks["response"].append(lambda response, **_: hooked.append(response.status_code))
            followed = client.get(odd.url + "/redirect")
            private = client.get(odd.url + "/private", auth=("user", "word"))
            return seen(followed), seen(private), hooked, sorted(client.cookies.items())

    same(program, hits=3)


def test_retries_run_again_with_their_history(same: Same[Odd]) -> None:
    def program(odd: Odd) -> Any:
        with session() as client:
            client.mount("http://", HTTPAdapter(max_retries=Retry(3, status_forcelist=[503], backoff_factor=0)))
            response = client.get(odd.url + "/flaky?requests")
            history = [(step.status, step.redirect_location) for step in response.raw.retries.history]
        with urllib3.PoolManager() as pool:
            closed = raised(lambda: pool.request("GET", odd.url + "/closed", retries=Retry(2, backoff_factor=0)))
        return seen(response), history, closed

    report = same(program, held=True)
    assert report.counts == {"http": 5}, "each attempt is an exchange"


FAILURES = ["/closed", "/broken", "/short", "/reset", "/nonsense"]


def in_http_client(odd: Odd, path: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", odd.port)
    try:
        return raised(lambda: (connection.request("GET", path), connection.getresponse().read()))
    finally:
        connection.close()


def in_urllib(odd: Odd, path: str) -> Any:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return raised(lambda: opener.open(odd.url + path).read())


def in_requests(odd: Odd, path: str) -> Any:
    with session() as client:
        return raised(lambda: client.get(odd.url + path))


@pytest.mark.parametrize("fail", [in_http_client, in_urllib, in_requests])
def test_failures_are_raised_with_the_same_types_texts_and_causes(
    same: Same[Odd], fail: Callable[[Odd, str], Any]
) -> None:
    def program(odd: Odd) -> Any:
        # An object's address is in the texts of some: of the innermost ones only in their position in memory.
        return [strip(fail(odd, path)) for path in FAILURES]

    same(program, held=True)


def strip(errors: list[tuple[str, str, int | None]]) -> list[tuple[str, str, int | None]]:
    return [(kind, text.split(" at 0x")[0], number) for kind, text, number in errors]


def test_connections_that_cannot_be_made(same: Same[Odd]) -> None:
    def program(odd: Odd) -> Any:
        errors = []
        for url in ("http://127.0.0.1:1/", "https://127.0.0.1:1/", "http://no-such-host.invalid/"):
            with session() as client:
                errors.append(strip(raised(lambda client=client, url=url: client.get(url))))
            errors.append(strip(raised(lambda url=url: urllib.request.urlopen(url))))
        with session() as client:
            errors.append(strip(raised(lambda: client.get(odd.url.replace("http:", "https:")))))
            errors.append(strip(raised(lambda: client.get(odd.tls))))
            answered = seen(client.get(odd.url + "/echo"))
        connection = http.client.HTTPConnection("127.0.0.1", 1)
        errors.append(strip(raised(lambda: connection.request("GET", "/"))))
        return errors, answered

    same(program, held=True)


def test_a_connection_that_the_program_makes_by_itself_and_that_fails(same: Same[Odd]) -> None:
    def program(odd: Odd) -> Any:
        return strip(raised(http.client.HTTPConnection("127.0.0.1", 1).connect))

    same(program)  # not held: then it is made with its first request


def test_timeouts_come_without_waiting(same: Same[Odd]) -> None:
    def program(odd: Odd) -> Any:
        with session() as client:
            late = strip(raised(lambda: client.get(odd.url + "/slow?s=5", timeout=0.2)))
            with client.get(odd.url + "/stalls?s=5", timeout=0.2, stream=True) as response:
                pieces: list[bytes] = []
                stalled = strip(raised(lambda: pieces.extend(response.iter_content(4))))
        connection = http.client.HTTPConnection("127.0.0.1", odd.port, timeout=0.2)
        connection.request("GET", "/stalls?s=5")
        answer = connection.getresponse()
        first = [raised(answer.read), raised(answer.read)]
        connection.close()
        return late, pieces, stalled, first

    same(program)


def by_lines(odd: Odd, client: requests.Session) -> Any:
    with client.get(odd.url + "/sse", stream=True) as response:
        return list(response.iter_lines())


def small_pieces(odd: Odd, client: requests.Session) -> Any:
    with client.get(odd.url + "/sse", stream=True) as response:
        return b"".join(response.raw.stream(16)), response.raw.closed


def half_read(odd: Odd, client: requests.Session) -> Any:
    with client.get(odd.url + "/sse?n=50&gap=0", stream=True) as response:
        return next(response.iter_lines())


def never_read(odd: Odd, client: requests.Session) -> Any:
    return client.get(odd.url + "/big?mb=4", stream=True).status_code


def endless(odd: Odd, client: requests.Session) -> Any:
    with client.get(odd.url + "/forever", stream=True) as response:
        lines = response.iter_lines(chunk_size=None)
        return [next(lines) for _ in range(5)]


def broken(odd: Odd, client: requests.Session) -> Any:
    lines: list[bytes] = []
    with client.get(odd.url + "/broken", stream=True) as response:
        error = raised(lambda: lines.extend(response.iter_lines(chunk_size=1)))
    return lines, strip(error)


def through_the_reader(odd: Odd, client: requests.Session) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", odd.port)
    connection.request("GET", "/binary")
    answer = connection.getresponse()
    buffer = bytearray(100)
    parts = [answer.peek(10)[:10], answer.read1(7), answer.readinto(buffer), bytes(buffer), answer.readline()]
    parts += [answer.read(3), answer.getheader("Content-Type"), len(answer.read())]
    connection.close()
    return parts


@pytest.mark.parametrize("act", [by_lines, small_pieces, half_read, never_read, endless, broken, through_the_reader])
def test_a_stream_replays_as_what_it_was(same: Same[Odd], act: Callable[[Odd, requests.Session], Any]) -> None:
    def program(odd: Odd) -> Any:
        with session() as client:
            return act(odd, client), client.get(odd.url + "/echo").json()["target"]

    same(program)


def test_a_connection_kept_alive_from_before_the_replay_is_not_used(same: Same[Odd]) -> None:
    """And afterwards no stand-in is left in it."""
    url = same.server.url + "/echo"
    with session() as client, urllib3.PoolManager() as pool:
        connection = http.client.HTTPConnection("127.0.0.1", same.server.port)

        def program(odd: Odd) -> Any:
            connection.request("GET", "/echo")
            return seen(client.get(url)), pool.request("GET", url).data, plain(connection.getresponse())

        same(program, hits=3, held=True)
        before = same.counts()
        program(same.server)
        assert same.counts()[0] == before[0] + 3
        connection.close()


def test_a_connection_that_the_server_closed_meanwhile_is_made_anew(same: Same[Odd]) -> None:
    def program(odd: Odd) -> Any:
        with session() as client:
            first = seen(client.get(odd.url + "/closes-after"))
            time.sleep(0.1)  # the end of the connection must have arrived
            return first, seen(client.get(odd.url + "/echo"))

    same(program, hits=2, held=True)


def test_a_large_upload_that_asks_first(same: Same[Odd]) -> None:
    def program(odd: Odd) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", odd.port)
        connection.request("PUT", "/echo", body=b"z" * 100_000, headers={"Expect": "100-continue"})
        answer = plain(connection.getresponse())
        connection.close()
        return answer

    same(program, hits=1, held=True)


def test_a_body_that_the_server_refused_midway_is_drawn_no_further(same: Same[Odd]) -> None:
    drawn: list[int] = []

    def body() -> Iterator[bytes]:
        for number in range(10_000):
            drawn.append(number)
            yield b"z" * 65536

    def through_urllib3(odd: Odd) -> Any:
        with urllib3.PoolManager() as pool:
            response = pool.request("POST", odd.url + "/early", body=body(), retries=False)
            return response.status, response.data

    def through_http_client(odd: Odd) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", odd.port)
        error = raised(lambda: connection.request("POST", "/early", body=body()))
        connection.close()
        return error[0][0] in ("builtins.BrokenPipeError", "builtins.ConnectionResetError"), error

    for program in (through_urllib3, through_http_client):
        drawn.clear()
        recorded, report = same.record(program)
        first, drawn[:] = len(drawn), []
        assert recorded[0] in (413, True) and not report.faults
        replayed, proof = same.replay(program)
        assert replayed == recorded and proof.identical, proof.difference
        assert len(drawn) == first


def test_tls_and_its_warnings(same: Same[Odd]) -> None:
    def program(odd: Odd) -> Any:
        warned: list[str] = []
        with session() as client, warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", ResourceWarning)  # of former tests, when the collector finds it
            trusted = seen(client.get(odd.tls + "/echo", verify=odd.certificate))
            warned.append(f"trusted {[str(w.message) for w in caught]}")
            blind = seen(client.get(odd.tls + "/echo", verify=False))
            warned.append(f"blind {[type(w.message).__name__ for w in caught]}")
        context = ssl.create_default_context(cafile=odd.certificate)
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        )
        with opener.open(odd.tls + "/echo") as response:
            opened = plain(response)
        return trusted, blind, opened, warned

    same(program, hits=3, held=True)


def test_proxies_forwarding_and_tunnelling(same: Same[Odd]) -> None:
    def program(odd: Odd) -> Any:
        proxy = odd.url.replace("//", "//user:word@")
        answers: list[Any] = []
        with session() as client, warnings.catch_warnings():
            warnings.simplefilter("error")
            client.proxies = {"http": proxy, "https": proxy}
            client.verify = odd.certificate
            answers.append(seen(client.get("http://far.example/x?y=1")))
            answers.append(seen(client.get(odd.tls + "/echo")))
            answers.append(seen(client.get(odd.tls + "/gzip")))
        with session() as client:
            client.proxies = {"https": odd.url.replace("//", "//no:no@")}
            answers.append(strip(raised(lambda: client.get(odd.tls + "/echo"))))
            client.proxies = {"https": "http://127.0.0.1:1"}
            answers.append(strip(raised(lambda: client.get(odd.tls + "/echo"))))
        host, _, port = odd.tls.rpartition("//")[2].partition(":")
        context = ssl.create_default_context(cafile=odd.certificate)
        connection = http.client.HTTPSConnection("127.0.0.1", odd.port, context=context)
        connection.set_tunnel(host, int(port))
        connection.request("GET", "/echo")
        answers.append(plain(connection.getresponse()))
        connection.close()
        return answers

    same(program, held=True)


def test_threads_each_get_their_own_answers(same: Same[Odd]) -> None:
    def program(odd: Odd) -> Any:
        with session() as client, urllib3.PoolManager(maxsize=2, block=True) as pool:

            def one(number: int) -> Any:
                answer = client.get(odd.url + f"/slow?s=0.0{number % 4}&n={number}").json()
                echoed = json.loads(pool.request("GET", odd.url + f"/echo?n={number}").data)
                return number, answer, echoed

            with ThreadPoolExecutor(4) as threads:
                return list(threads.map(one, range(12)))

    same(program, hits=24, held=True)


def test_an_answer_read_in_another_thread_than_it_was_asked_in(same: Same[Odd]) -> None:
    def program(odd: Odd) -> Any:
        with session() as client:
            response = client.get(odd.url + "/sse", stream=True)
            lines: list[bytes] = []
            reader = threading.Thread(target=lambda: lines.extend(response.iter_lines()))
            reader.start()
            reader.join()
            return lines

    same(program)


def test_the_program_gets_a_stream_while_it_arrives(same: Same[Odd]) -> None:
    def program(odd: Odd) -> Any:
        with session() as client, client.get(odd.url + "/held", stream=True) as response:
            lines = response.iter_lines(chunk_size=1)
            first = next(lines)
            odd.release()
            return [first, *lines]

    recorded, _ = same.record(program)
    assert recorded == [b"data: first", b"", b"data: released", b""]


def test_a_seam_that_another_tool_takes_off_is_named(same: Same[Odd], monkeypatch: pytest.MonkeyPatch) -> None:
    bare = inspect.unwrap(http.client.HTTPConnection.getresponse)

    def program(odd: Odd) -> Any:
        monkeypatch.setattr(http.client.HTTPConnection, "getresponse", bare)
        return urllib.request.urlopen(odd.url + "/old").read()

    _, report = same.record(program)
    assert [entry.source for entry in report.uncovered] == ["http.client.HTTPConnection.getresponse"]
    monkeypatch.undo()


def test_a_changed_request_is_a_divergence_and_nothing_is_sent(same: Same[Odd]) -> None:
    body = {"question": "a"}

    def program(odd: Odd) -> Any:
        with session() as client:
            return client.post(odd.url + "/echo", json=body).status_code

    same.record(program)
    body["question"] = "b"
    before = same.counts()
    _, proof = same.replay(program)
    assert proof.difference is not None
    assert (proof.difference.code, proof.difference.path) == ("LS101", "body.question")
    assert same.counts() == before


def test_reading_further_than_the_recording_is_a_divergence_and_no_invented_end(same: Same[Odd]) -> None:
    more = [False]

    def program(odd: Odd) -> Any:
        with session() as client, client.get(odd.url + "/forever", stream=True) as response:
            lines = response.iter_lines(chunk_size=1)
            return [next(lines) for _ in range(200 if more[0] else 2)]

    same.record(program)
    more[0] = True
    _, proof = same.replay(program)
    assert proof.difference is not None and proof.difference.code == "LS108"


def test_an_upgraded_connection_is_named_and_not_replayed(same: Same[Odd]) -> None:
    def program(odd: Odd) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", odd.port)
        connection.request("GET", "/upgrade", headers={"Upgrade": "echo", "Connection": "Upgrade"})
        answer = connection.getresponse()
        sock: socket.socket = answer.fp.raw._sock  # type: ignore[attr-defined]
        sock.sendall(b"ping")
        with sock.makefile("rb") as file:
            return answer.status, file.read(4)

    recorded, report = same.record(program)
    assert recorded == (101, b"PING")
    assert [source.source for source in report.uncovered] == ["protocol switch"]
    before = same.counts()
    _, proof = same.replay(program)
    assert proof.difference is not None and proof.difference.code == "LS210"
    assert same.counts() == before


def test_a_class_that_makes_its_own_connections_does_not_connect_in_a_replay(same: Same[Odd]) -> None:
    made: list[str] = []

    class Own(http.client.HTTPConnection):
        """As those for unix sockets do it."""

        def connect(self) -> None:
            made.append("connected")
            self.sock = socket.create_connection((self.host, self.port))

    def program(odd: Odd) -> Any:
        connection = Own("127.0.0.1", odd.port)
        connection.request("GET", "/echo")
        answer = plain(connection.getresponse())
        connection.close()
        return answer

    same(program, hits=1, held=True)
    assert made == ["connected"] * 3


def test_a_fault_of_ours_does_not_reach_the_program(same: Same[Odd], monkeypatch: pytest.MonkeyPatch) -> None:
    from lockstep.taps.http import exchange

    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError("ours")

    monkeypatch.setattr(exchange, "asked", broken)
    recording = start_recording(None, "faulty", {})
    with session() as client:
        assert client.get(same.server.url + "/echo").status_code == 200
    report = finish(recording, 0, None)
    assert report.faults == ("http.client: RuntimeError: ours",)


def test_a_replay_that_ended_in_the_middle_leaves_nothing_behind(same: Same[Odd]) -> None:
    with session() as client:

        def program(odd: Odd) -> Any:
            return client.get(odd.url + "/sse?n=50", stream=True).status_code

        same.record(program)
        replaying = start_replay(None, same.run, deadline=10.0)
        program(same.server)
        finish(replaying, 0, None)
        assert client.get(same.server.url + "/echo").status_code == 200
