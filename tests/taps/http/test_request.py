"""What of a request must match in a replay, and what must not matter."""

from __future__ import annotations

import gzip
import zlib

import pytest

from lockstep.log.model import Value
from lockstep.taps.http.request import absolute, asked, offered

URL = "https://api.example.com/v1/things?b=2&a=1"
JSON = b'{"a": 1}'


def key(
    method: str = "POST", url: str = URL, headers: list[tuple[str, str]] | None = None, body: bytes = JSON
) -> Value:
    return asked(method, url, headers or [], body).key


def test_the_name_is_short_and_has_no_query() -> None:
    assert asked("POST", URL, [], b"").name == "POST api.example.com/v1/things"
    assert asked("GET", "http://127.0.0.1:8000?x=1", [], b"").name == "GET 127.0.0.1:8000/"
    assert asked("GET", "http://user:word@host/a", [], b"").name == "GET host/a"


@pytest.mark.parametrize(
    "other",
    [
        key(method="PUT"),
        key(url=URL.replace("https", "http")),
        key(url=URL.replace("example.com", "example.org")),
        key(url=URL.replace("/things", "/Things")),
        key(url=URL.replace("b=2&a=1", "a=1&b=2")),
        key(url=URL.replace("a=1", "a=")),
        key(body=b'{"a": 1.0}'),
        key(body=b'{"a": 0, "a": 1}'),
        key(body=b'{"a":1}'),
        key(headers=[("X-User-Id", "1")]),
        key(headers=[("anthropic-version", "2023-06-01")]),
        key(headers=[("Accept-Language", "de")]),
        key(headers=[("Range", "bytes=0-9")]),
    ],
)
def test_what_has_a_meaning_is_compared(other: Value) -> None:
    assert other != key()


@pytest.mark.parametrize(
    "header",
    [
        ("User-Agent", "x/1"),
        ("x-stainless-retry-count", "2"),
        ("X-Amz-Date", "20260101T000000Z"),
        ("amz-sdk-invocation-id", "1"),
        ("Authorization", "Bearer x"),
        ("Cookie", "a=1"),
        ("Accept-Encoding", "br"),
        ("Idempotency-Key", "1"),
        ("traceparent", "00-1"),
        ("X-B3-TraceId", "1"),
        ("Content-Length", "9"),
        ("Transfer-Encoding", "chunked"),
    ],
)
def test_what_changes_from_run_to_run_is_not_compared(header: tuple[str, str]) -> None:
    assert key(headers=[header]) == key()
    request = asked("POST", URL, [header], JSON).request
    assert isinstance(request, dict) and request["headers"] == [list(header)]


def test_names_of_headers_count_in_any_case_and_order_but_repeated_ones_in_theirs() -> None:
    one = key(headers=[("X-A", "1"), ("X-B", "2"), ("x-a", "3")])
    assert one == key(headers=[("x-b", "2"), ("x-a", "1"), ("X-A", "3")])
    assert one != key(headers=[("x-b", "2"), ("x-a", "3"), ("X-A", "1")])


def form(boundary: str, content: str) -> Value:
    body = f'--{boundary}\r\nContent-Disposition: form-data; name="f"\r\n\r\n{content}\r\n--{boundary}--\r\n'
    return key(headers=[("Content-Type", f'multipart/form-data; boundary="{boundary}"')], body=body.encode())


def test_forms_are_equal_whatever_their_boundary() -> None:
    assert form("aaaa", "x") == form("bbbb", "x") != form("aaaa", "y")
    plain = key(headers=[("Content-Type", "multipart/form-data; boundary=aaaa")], body=b"--aaaa--")
    assert plain == key(headers=[("content-type", "multipart/form-data; boundary=b")], body=b"--b--")


def test_compressed_bodies_are_compared_by_what_they_hold() -> None:
    packed = [("Content-Encoding", "gzip")]
    one, two = gzip.compress(JSON, mtime=1), gzip.compress(JSON, mtime=2)
    assert one != two and key(headers=packed, body=one) == key(headers=packed, body=two)
    assert key(headers=packed, body=gzip.compress(b"other")) != key(headers=packed, body=one)
    deflated = [("Content-Encoding", "deflate")]
    assert key(headers=deflated, body=zlib.compress(JSON, 1)) == key(headers=deflated, body=zlib.compress(JSON, 9))
    broken = key(headers=packed, body=one[:-4])
    assert isinstance(broken, dict) and broken["body"] == one[:-4]


def test_credentials_and_signatures_in_a_query_are_not_compared() -> None:
    url = "https://host.example/x?page=2&"
    assert key(url=url + "api_key=one") == key(url=url + "api_key=two") != key(url=url)
    assert key(url=url + "key=AIzaOne") == key(url=url + "key=AIzaTwo")
    assert key(url=url + "key=one") != key(url=url + "key=two"), "a key that may be anything"
    assert key(url=url + "X-Amz-Signature=1&X-Amz-Date=2") == key(url=url + "X-Amz-Signature=3&X-Amz-Date=4")
    assert key(url=url + "sv=1&sig=a&se=b") == key(url=url + "sv=1&sig=c&se=d")
    assert key(url=url + "se=b") != key(url=url + "se=d")


def test_a_body_that_was_not_sent_to_its_end_is_another_request() -> None:
    assert asked("POST", URL, [], JSON, "cut").key != key()


def test_model_calls_are_told_from_others() -> None:
    chat = "https://api.openai.com/v1/chat/completions"
    assert asked("POST", chat, [], b'{"model": "m", "messages": []}').kind == "model"
    assert asked("GET", chat, [], b"").kind == "http"


def test_addresses_leave_out_the_port_of_the_scheme() -> None:
    assert absolute("https", "host", 443, "/a") == "https://host/a"
    assert absolute("http", "host", 443, "/a") == "http://host:443/a"
    assert absolute("http", "::1", 8000, "/") == "http://[::1]:8000/"
    assert absolute("http", "host", None, "/") == "http://host/"


def test_offered_encodings_are_joined() -> None:
    assert offered([("Accept-Encoding", "gzip"), ("x", "y"), ("accept-encoding", "br")]) == "gzip,br"
