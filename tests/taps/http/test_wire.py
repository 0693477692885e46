"""HTTP/1.1 as bytes, in any cut: where a head and a body end, and what a stored answer says."""

from __future__ import annotations

import pytest

from lockstep.log.model import Value
from lockstep.taps.http.answer import Answer, answer
from lockstep.taps.http.wire import Body, Dechunker, Outgoing, end_of_head, headers_of

CHUNKED = b"4\r\nWiki\r\n5;name=value\r\npedia\r\nE\r\n in\r\n\r\nchunks.\r\n0\r\nX-Sum: 1\r\n\r\n"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_chunks_come_off_in_any_cut(size: int) -> None:
    chunks = Dechunker()
    content = []
    for at in range(0, len(CHUNKED), size):
        assert not chunks.complete
        content += chunks.feed(CHUNKED[at : at + size])
    assert b"".join(content) == b"Wikipedia in\r\n\r\nchunks."
    assert chunks.complete
    assert chunks.feed(b"the next answer") == []


def test_what_is_not_chunked_after_all_ends_there() -> None:
    chunks = Dechunker()
    assert chunks.feed(b"<html>\r\nnot chunks") == [] and chunks.complete


def test_an_interim_answer_belongs_to_the_head() -> None:
    head = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nA: b\r\n\r\n"
    assert end_of_head(head + b"body") == len(head)
    assert end_of_head(head[:-1]) == -1
    assert end_of_head(b"HTTP/1.0 200 OK\nA: b\n\nbody") == len(b"HTTP/1.0 200 OK\nA: b\n\n")


def test_headers_keep_their_order_case_and_repetition() -> None:
    head = b"HTTP/1.1 200 OK\r\nSet-Cookie: a\r\nset-cookie: b\r\nFolded: one\r\n two\r\nEmpty:\r\n\r\n"
    assert headers_of(head) == [("Set-Cookie", "a"), ("set-cookie", "b"), ("Folded", "one two"), ("Empty", "")]


@pytest.mark.parametrize(
    ("head", "pieces", "body"),
    [
        (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", [], b""),
        (b"POST / HTTP/1.1\r\nContent-Length: 4\r\n\r\n", [b"a", b"bcd"], b"abcd"),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", [b"2\r\nab\r\n", b"0\r\n\r\n"], b"ab"),
    ],
)
def test_a_request_is_complete_with_its_last_byte(head: bytes, pieces: list[bytes], body: bytes) -> None:
    request = Outgoing()
    for piece in [head[:5], head[5:], *pieces]:
        assert not request.complete
        request.feed(piece)
    assert request.complete and request.body() == body
    assert request.size == len(head) + sum(map(len, pieces))


def test_a_body_of_unknown_length_ends_when_the_answer_is_asked_for() -> None:
    request = Outgoing()
    request.feed(b"POST / HTTP/1.1\r\nHost: a\r\n\r\nsome")
    assert not request.complete and request.open_ended and request.body() == b"some"


def test_a_body_until_the_connections_end_has_no_last_byte() -> None:
    body = Body(None)
    assert not body.feed(b"x" * 100) and not body.complete
    assert Body(0).complete and Body(3).feed(b"abc") and not Body(3).feed(b"ab")


HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
PAIRS: list[Value] = [["Transfer-Encoding", "chunked"]]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([{"status": 200, "headers": [["A", "b"]]}, b"one", b"two", {"closed": True}], (200, (("A", "b"),), b"onetwo")),
        (
            [{"status": 200, "headers": PAIRS, "raw": [HEAD[:9], HEAD[9:] + b"2\r\nab"]}, b"\r\n0\r\n\r\n"],
            (200, (("Transfer-Encoding", "chunked"),), b"ab"),
        ),
        ([{"raw": [b"nonsense"]}], (None, (), b"")),
        ([], (None, (), b"")),
    ],
)
def test_stored_answers_read_alike_whatever_client_they_came_from(
    parts: list[Value], expected: tuple[int | None, tuple[tuple[str, str], ...], bytes]
) -> None:
    assert answer(parts) == Answer(*expected)


def test_headers_of_an_answer_are_found_in_any_case() -> None:
    assert Answer(200, (("Content-Type", "a"), ("content-type", "b")), b"").header("content-type") == "a"
    assert Answer(200, (), b"").header("content-type") == ""
