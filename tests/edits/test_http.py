"""What a server answered, edited: each client parses, decodes and raises as if it had come that way."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import urllib.request
from collections.abc import Callable
from typing import Any

import aiohttp
import httpx
import httpx2
import pytest
import requests
import urllib3

from lockstep.errors import EditError
from lockstep.testing import Answer, Provider

type Seen = tuple[int, dict[str, str], bytes]
type Fetch = Callable[[str], Seen]


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def by_httpx(url: str) -> Seen:
    with httpx.Client(verify=False) as client:
        answer = client.get(url)
    return answer.status_code, _lower(answer.headers), answer.content


def by_httpx2_tasks(url: str) -> Seen:
    async def fetch() -> Seen:
        async with httpx2.AsyncClient(verify=False) as client:
            answer = await client.get(url)
            return answer.status_code, _lower(answer.headers), answer.content

    return asyncio.run(fetch())


def by_http_client(url: str) -> Seen:
    host, _, path = url.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host)
    connection.request("GET", f"/{path}")
    answer = connection.getresponse()
    seen = answer.status, _lower(answer.headers), answer.read()
    connection.close()
    return seen


def by_urllib(url: str) -> Seen:
    try:
        with urllib.request.urlopen(url) as answer:
            return answer.status, _lower(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, _lower(error.headers), error.read()


def by_requests(url: str) -> Seen:
    answer = requests.get(url)
    return answer.status_code, _lower(answer.headers), answer.content


def by_urllib3(url: str) -> Seen:
    answer = urllib3.PoolManager().request("GET", url, headers={"accept-encoding": "gzip, deflate"}, retries=False)
    return answer.status, _lower(answer.headers), answer.data


def by_aiohttp(url: str) -> Seen:
    async def fetch() -> Seen:
        async with aiohttp.ClientSession() as session, session.get(url) as answer:
            return answer.status, _lower(answer.headers), await answer.read()

    return asyncio.run(fetch())


CLIENTS = (by_httpx, by_httpx2_tasks, by_http_client, by_urllib, by_requests, by_urllib3, by_aiohttp)
DECODING = (by_httpx, by_httpx2_tasks, by_requests, by_urllib3)
each_client = pytest.mark.parametrize("fetch", CLIENTS)


@each_client
def test_a_place_in_a_json_body_is_edited(editing: Any, web: Provider, fetch: Fetch) -> None:
    status, headers, _ = editing.record(lambda: fetch(f"{web.url}/orders"))
    seen = editing.served(lambda: fetch(f"{web.url}/orders"), ("body.path", "/elsewhere, with a longer name"))
    assert (seen[0], json.loads(seen[2])) == (
        status, {"n": 1, "method": "GET", "path": "/elsewhere, with a longer name"},
    )  # fmt: skip
    assert {**seen[1], "content-length": ""} == {**headers, "content-length": ""}
    assert int(seen[1]["content-length"]) == len(seen[2])
    assert web.requests == 1


@each_client
def test_an_answer_edited_to_itself_is_the_recorded_one(editing: Any, web: Provider, fetch: Fetch) -> None:
    paths = ("/orders", "/cookies", "/events?count=2", "/binary", "/latin1", "/empty", "/gzip")

    def fetch_all() -> list[Seen]:
        return [fetch(web.url + path) for path in paths]

    recorded = editing.record(fetch_all)
    wholes = {str(step): editing.shown(str(step)) for step in range(1, len(paths) + 1)}
    assert editing.served_all(fetch_all, {at: (("", whole),) for at, whole in wholes.items()}) == recorded

    def other(whole: Any) -> Any:
        return {**whole, "status": 201, "headers": [*whole["headers"], ["x-other", "1"]], "body": "other"}

    # And where all of it is made again, since it was another one meanwhile:
    again = {at: (("", other(whole)), ("", whole)) for at, whole in wholes.items()}
    assert editing.served_all(fetch_all, again) == recorded


@each_client
def test_status_and_headers_are_edited(editing: Any, web: Provider, fetch: Fetch) -> None:
    _, headers, body = editing.record(lambda: fetch(f"{web.url}/orders"))
    changes = ("status", 503), ("headers.retry-after", "7"), ("headers.Content-Type", "text/plain")
    seen = editing.served(lambda: fetch(f"{web.url}/orders"), *changes)
    assert seen == (503, {**headers, "retry-after": "7", "content-type": "text/plain"}, body)


@each_client
def test_all_of_an_answer_is_edited(editing: Any, web: Provider, fetch: Fetch) -> None:
    def fetch_all() -> list[Seen]:
        return [fetch(f"{web.url}/orders") for _ in range(4)]

    editing.record(fetch_all)
    whole = {"status": 404, "headers": {"content-type": "text/plain", "set-cookie": ["a=1"]}, "body": "no such ordér"}
    text, nothing, raw, odd = editing.served_all(
        fetch_all,
        {
            "1": (("", whole),),
            "2": (("", {"status": 204, "headers": []}),),
            "3": (("body", {"base64": "AAH/"}),),
            "4": (("body", "{not JSON"),),
        },
    )
    assert (text[0], text[1]["content-type"], text[2]) == (404, "text/plain", "no such ordér".encode())
    assert (nothing[0], nothing[2]) == (204, b"")
    assert raw[2] == b"\x00\x01\xff"
    assert odd[2] == b"{not JSON"


@each_client
def test_a_streamed_answer_is_edited_as_text(editing: Any, web: Provider, fetch: Fetch) -> None:
    recorded = editing.record(lambda: fetch(f"{web.url}/events?count=3"))
    assert recorded[2] == b"data: tick 0 of 1\n\ndata: tick 1 of 1\n\ndata: tick 2 of 1\n\n"
    seen = editing.served(lambda: fetch(f"{web.url}/events?count=3"), ("body", "data: edited\n\n"))
    assert seen == (recorded[0], recorded[1], b"data: edited\n\n")
    assert seen[1]["transfer-encoding"] == "chunked"


@pytest.mark.parametrize("fetch", DECODING)
@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
def test_an_edited_body_decodes(editing: Any, fetch: Fetch, coding: str) -> None:
    import zlib

    import zstandard

    pack = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstandard.ZstdCompressor().compress}[coding]
    answer = Answer(
        body=pack(b'{"n": 1}'), headers=(("content-type", "application/json"), ("content-encoding", coding))
    )
    with Provider(lambda request: answer) as web:
        editing.record(lambda: fetch(f"{web.url}/packed"))
        assert editing.shown()["body"] == {"n": 1}
        seen = editing.served(lambda: fetch(f"{web.url}/packed"), ("body.n", 2))
    assert json.loads(seen[2]) == {"n": 2}
    # What cannot be packed again goes out plain, and says so.
    assert (seen[1].get("content-encoding") == coding) == (coding != "zstd")


@each_client
def test_an_answer_becomes_an_error(editing: Any, web: Provider, fetch: Fetch) -> None:
    editing.record(lambda: fetch(f"{web.url}/orders"))
    raised = {
        by_httpx: ("httpcore.ReadTimeout", httpx.ReadTimeout),
        by_httpx2_tasks: ("httpcore2.ReadTimeout", httpx2.ReadTimeout),
        by_http_client: ("TimeoutError", TimeoutError),
        by_urllib: ("TimeoutError", TimeoutError),
        by_requests: ("TimeoutError", requests.exceptions.ReadTimeout),
        by_urllib3: ("TimeoutError", urllib3.exceptions.ReadTimeoutError),
        by_aiohttp: ("aiohttp.client_exceptions.ServerTimeoutError", aiohttp.ServerTimeoutError),
    }
    name, kind = raised[fetch]
    with pytest.raises(kind):
        editing.served(lambda: fetch(f"{web.url}/orders"), ("", {"$": "raise", "type": name, "message": "too slow"}))


@pytest.mark.parametrize("fetch", [by_httpx, by_httpx2_tasks, by_http_client, by_requests, by_urllib3, by_aiohttp])
def test_an_answer_that_never_came_is_given(editing: Any, fetch: Fetch) -> None:
    with Provider(lambda request: Answer(cut=-1)) as web:
        with pytest.raises((OSError, httpx.TransportError, httpx2.TransportError, Exception)) as failed:
            editing.record(lambda: fetch(f"{web.url}/orders"))
        assert not isinstance(failed.value, AssertionError)
        assert editing.shown() is None or editing.shown()["$"] == "raise"
        answer = {"status": 200, "headers": [["content-type", "application/json"]], "body": {"n": 5}}
        seen = editing.served(lambda: fetch(f"{web.url}/orders"), ("", answer))
    assert (seen[0], json.loads(seen[2])) == (200, {"n": 5})


def test_a_half_answer_is_made_whole_and_a_whole_one_breaks(editing: Any) -> None:
    with Provider(lambda request: Answer(body=(b"data: 1\n\n", b"data: 2\n\n"), cut=1)) as web:
        with pytest.raises(httpx.RemoteProtocolError):
            editing.record(lambda: by_httpx(f"{web.url}/half"))
        whole = editing.shown()
        assert whole["body"] == "data: 1\n\n" and whole["error"]["type"] == "httpcore.RemoteProtocolError"
        del whole["error"]
        assert editing.served(lambda: by_httpx(f"{web.url}/half"), ("", whole))[2] == b"data: 1\n\n"
        with pytest.raises(httpx.RemoteProtocolError, match="gone"):
            editing.served(lambda: by_httpx(f"{web.url}/half"), ("error.message", "gone"))


@pytest.mark.parametrize(
    ("fetch", "error", "raised"),
    [
        (by_httpx, "httpcore.ReadError", httpx.ReadError),
        (by_http_client, "ConnectionResetError", ConnectionResetError),
        (by_requests, "ConnectionResetError", requests.exceptions.ChunkedEncodingError),
        (by_aiohttp, "ConnectionResetError", aiohttp.ClientPayloadError),
        (by_aiohttp, "aiohttp.client_exceptions.ClientPayloadError", aiohttp.ClientPayloadError),
        (by_aiohttp, "aiohttp.client_exceptions.SocketTimeoutError", TimeoutError),
    ],
)
def test_an_answer_breaks_off_where_an_edit_says_so(
    editing: Any, web: Provider, fetch: Fetch, error: str, raised: type[Exception]
) -> None:
    def fetch_all() -> list[str]:
        seen = []
        for path in ("/orders", "/events?count=2"):
            try:
                fetch(web.url + path)
            except raised:
                seen.append(path)
        return seen

    assert editing.record(fetch_all) == []
    broken = (("error", {"$": "raise", "type": error}),)
    assert editing.served_all(fetch_all, {"1": broken, "2": broken}) == ["/orders", "/events?count=2"]


@pytest.mark.parametrize("fetch", [by_http_client, by_requests])
def test_a_connection_that_failed_can_only_fail(editing: Any, fetch: Fetch) -> None:
    with pytest.raises(OSError):
        editing.record(lambda: fetch("http://127.0.0.1:9/orders"))
    with pytest.raises(EditError, match="LS213 the connection could not be made, before there was a request"):
        editing.pieces(("", {"status": 200, "body": 1}))
    with pytest.raises(OSError, match=r"timed out|Timeout"):
        editing.served(
            lambda: fetch("http://127.0.0.1:9/orders"),
            ("", {"$": "raise", "type": "TimeoutError", "message": "timed out"}),
        )


def test_credentials_in_headers_stay_what_they_were(editing: Any, web: Provider) -> None:
    recorded = editing.record(lambda: by_requests(f"{web.url}/cookies"))
    whole = editing.shown()
    assert ["set-cookie", "(not shown)"] in [[name.lower(), value] for name, value in whole["headers"]]
    seen = editing.served(lambda: by_requests(f"{web.url}/cookies"), ("", {**whole, "body": {"cookie": "none"}}))
    assert seen[1]["set-cookie"] == recorded[1]["set-cookie"]


@pytest.mark.parametrize(
    ("path", "value", "says"),
    [
        ("", {"code": 500}, "LS213 an HTTP answer is"),
        ("", "lost", "LS213 an HTTP answer is"),
        ("status", 100, "LS213 the status of an answer is a number from 200 to 599"),
        ("status", "200", "LS213 the status of an answer is a number from 200 to 599"),
        ("headers.x", "a\r\nb: c", "LS213 not a header"),
        ("headers", [["a"]], "LS213 a header is [name, value]"),
        ("headers", [["authorization", "(not shown)"]], "LS213 the header authorization has no recorded value to keep"),
        ("body.total", 1, "LS212 there is no body.total: body has n, method, path"),
        ("body", {"base64": "%"}, "LS213 the body is not base64"),
        ("content", "x", "LS212 there is no content"),
    ],
)
def test_an_edit_that_cannot_be_made_says_why(editing: Any, web: Provider, path: str, value: Any, says: str) -> None:
    editing.record(lambda: by_httpx(f"{web.url}/orders"))
    with pytest.raises(EditError) as refused:
        editing.pieces((path, value))
    assert says in str(refused.value)
