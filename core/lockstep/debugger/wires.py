"""An edited HTTP answer as the pieces in which each client is served (`lockstep.taps.http`).

What was there before the answer's first byte (a connection's hooks, a request body that is compared) stays. Status
line, counts, chunks and content-encoding are made anew. Of a secret, its placeholder stands in the body; what counts
bytes counts those of the secret.
"""

from __future__ import annotations

import builtins
import gzip
import http
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from lockstep.debugger import bodies
from lockstep.debugger.answers import Pairs, State
from lockstep.errors import Code, EditError
from lockstep.log import frames, placeholders
from lockstep.log.model import Status, Value
from lockstep.log.placeholders import Placeholder
from lockstep.session.call import Piece
from lockstep.taps.http.wire import end_of_head

HTTPCORE, HTTP_CLIENT, AIOHTTP = "httpcore", "http.client", "aiohttp"
_AGENTS = (
    (AIOHTTP, re.compile(r"aiohttp/", re.IGNORECASE)),
    (HTTP_CLIENT, re.compile(r"python-requests|urllib|boto|python-http-client", re.IGNORECASE)),
    (HTTPCORE, re.compile(r"httpx|httpcore|^(?:Async)?(?:OpenAI|AzureOpenAI|Anthropic)/Python", re.IGNORECASE)),
)
_CODERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "x-gzip": lambda data: gzip.compress(data, mtime=0),
    "deflate": zlib.compress,
}
_EMPTY = (204, 304)
_FIRST_LINE = re.compile(rb"HTTP/(\d)(?:\.(\d))? (?!100\b)\d{3}[^\r\n]*")


def client(
    request: Value, parts: Sequence[Value], error: Value, status: Status | None, others: Iterable[tuple[Value, Value]]
) -> str:
    """Which client made an exchange: by the pieces of its outcome, its error, what it said of itself, or by the run's
    `others` (request, first piece) that say the same, or all."""
    found = next((name for name in map(_client_of, parts) if name), "") or _by_words(request, error, status)
    if found:
        return found
    seen = [(_agent(asked), _client_of(part)) for asked, part in others]
    like = {name for agent, name in seen if name and agent == _agent(request)} or {name for _, name in seen if name}
    if len(like) == 1:
        return like.pop()
    raise EditError(
        Code.UNEDITABLE,
        "nothing came back here while recording, and it cannot be told which client asked, so not in which form it is "
        "to be answered",
    )


def _client_of(part: Value) -> str:
    """Which client's piece this is, "" where it is not told by it."""
    if not isinstance(part, dict):
        return ""
    if "connected" in part or "trace" in part or "sent" in part:
        return AIOHTTP
    if "raw" in part or "connection" in part:
        return HTTP_CLIENT
    return HTTPCORE if "http_version" in part else ""


def _agent(request: Value) -> str:
    return bodies.header(request.get("headers") if isinstance(request, dict) else None, "user-agent")


def _by_words(request: Value, error: Value, status: Status | None) -> str:
    module = str(error.get("module") or "").partition(".")[0] if isinstance(error, dict) else ""
    if module in ("httpcore", "httpcore2"):
        return HTTPCORE
    if module == "aiohttp":
        return AIOHTTP
    agent = _agent(request)
    found = next((name for name, sign in _AGENTS if sign.search(agent)), "")
    if not found and (module or status is Status.OK):
        return HTTP_CLIENT  # the others have errors of their own, also where a server says nothing
    return found


def pieces(client: str, request: Value, parts: Sequence[Value], before: State, after: State) -> tuple[Piece, ...]:
    """The pieces that hand out `after`. `parts`, `before`: what was recorded. Raises EditError LS213."""
    if isinstance(request, dict) and request.get("method") == "CONNECT":
        return _unconnected(parts, after)
    if after.status is None:
        before_it = [part for part in parts if client == AIOHTTP and _leads(part) and not _refused(part, after.error)]
        return (*(Piece(part) for part in before_it), Piece(after.error, Status.ERROR))
    empty = after.status in _EMPTY or (isinstance(request, dict) and request.get("method") == "HEAD")
    after, body = _coded(before, after, parts, b"" if empty else after.body)
    end = Piece(None, Status.OK) if after.error is None else Piece(after.error, Status.ERROR)
    if client == HTTPCORE:
        head = _pool_head(parts, after.status or 200, _counted(after.headers, len(body), empty=empty, add=False))
        return (Piece(head), *([Piece(body)] if body else []), end)
    wire = _Wire(parts, before, after, body, empty=empty)
    if client == HTTP_CLIENT:
        return (Piece(wire.head()), end)
    kept: list[Value] = [part for part in parts if _leads(part)]
    if not any("connected" in part for part in kept if isinstance(part, dict)):
        kept.append({"connected": None, "raw": []})
    lost: list[Value] = []
    if after.error is not None:
        lost = list(_broken(parts, after.error))
    elif wire.length is None:
        lost = [{"lost": None}]
    encoded = [
        part for part in parts if isinstance(part, dict) and "offered" in part and after.header("content-encoding")
    ]
    return (*[Piece(part) for part in (*kept, wire.data, *encoded, *lost)], end)


def _unconnected(parts: Sequence[Value], after: State) -> tuple[Piece, ...]:
    if after.status is not None:
        raise EditError(
            Code.UNEDITABLE,
            "the connection could not be made, before there was a request to answer. Another error can be raised here: "
            '{"$": "raise", "type": "TimeoutError"}',
        )
    return (*(Piece(part) for part in parts), Piece(after.error, Status.ERROR))


def _leads(part: Any) -> bool:
    """Whether a piece of aiohttp's stands before the answer."""
    return isinstance(part, dict) and not part.keys().isdisjoint(("trace", "connected", "sent"))


def _refused(part: Any, error: Any) -> bool:
    """Whether this is the connection, where the error is that there is none."""
    name = str(error.get("name")) if isinstance(error, dict) else ""
    return "connected" in part and name.startswith(("ClientConnector", "ClientProxyConnection", "ConnectionTimeout"))


def _broken(parts: Sequence[Value], error: Any) -> Iterator[Value]:
    """What makes aiohttp say that an answer broke off: a lost peer, of which it makes its own error."""
    module, name = str(error.get("module")), str(error.get("name"))
    recorded = next((part for part in parts if isinstance(part, dict) and "lost" in part), None)
    if name.endswith("TimeoutError"):
        return
    if name == "ClientPayloadError":
        yield {"lost": None} if recorded is None else recorded
    elif module == "builtins" and issubclass(vars(builtins)[name], OSError):
        yield {"lost": error}
    else:
        raise EditError(
            Code.UNEDITABLE,
            "where an answer breaks off, aiohttp raises ClientPayloadError or a timeout: give one of these, or what "
            "it is caused by, as in ConnectionResetError",
        )


def _coded(before: State, after: State, parts: Sequence[Value], body: bytes) -> tuple[State, bytes]:
    """The body in its content-encoding, or the answer without one that cannot be made."""
    coding = after.header("content-encoding").strip().lower()
    if not coding or coding == "identity":
        return after, body
    recorded = _recorded_body(parts)
    unchanged = after.body == before.body and after.header("content-encoding") == before.header("content-encoding")
    if unchanged and recorded is not None and (before.problem or after.error is None):
        return after, recorded if body else b""
    coder = _CODERS.get(coding)
    if coder is not None and placeholders.MARK not in body:
        return after, coder(body) if body else b""
    headers = tuple(pair for pair in after.headers if pair[0].lower() != "content-encoding")
    return State(after.status, headers, after.body, "", after.error), body


def _recorded_body(parts: Sequence[Value]) -> bytes | None:
    """The recorded body in its content-encoding; None where it is not kept that way, since a secret was in it."""
    from lockstep.session import coded
    from lockstep.taps.http.answer import answer

    return None if any(map(coded.is_coded, parts)) else answer(parts).body


def _pool_head(parts: Sequence[Value], status: int, headers: Pairs) -> Value:
    recorded = next((part for part in parts if isinstance(part, dict) and "http_version" in part), None)
    head: dict[str, Any] = {"http_version": "HTTP/1.1"} if recorded is None else dict(recorded)
    if recorded is None or ("reason_phrase" in head and head.get("status") != status):
        head["reason_phrase"] = _reason(status)
    if not any(name.lower() == "content-encoding" for name, _ in headers):
        head.pop("offered", None)
    head.pop("switched", None)
    return {**head, "status": status, "headers": [[name, value] for name, value in headers]}


def _reason(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return ""


def _counted(headers: Pairs, size: int, *, empty: bool, add: bool) -> Pairs:
    """Headers with the right content-length. `add`: also where there was none."""
    if empty or _chunked(headers):
        return headers
    made = [(name, str(size) if name.lower() == "content-length" else value) for name, value in headers]
    if add and made == list(headers) and not any(name.lower() == "content-length" for name, _ in headers):
        made.append(("content-length", str(size)))
    return tuple(made)


def _chunked(headers: Pairs) -> bool:
    return any(name.lower() == "transfer-encoding" and "chunked" in value.lower() for name, value in headers)


class _Wire:
    """An answer as it comes over the wire.

    length  how the client will read its body: a number of bytes, "chunked", None: until the connection closes
    """

    def __init__(self, parts: Sequence[Value], before: State, after: State, body: bytes, *, empty: bool) -> None:
        status = after.status or 200
        self._recorded = next((part for part in parts if isinstance(part, dict) and "status" in part), {})
        line = _FIRST_LINE.search(_raw(parts))
        body, size = _sized(body)
        # A recorded answer without a length ended with its connection, and this one does too.
        add = not (before.status is not None and _unbounded(before))
        headers = after.headers
        if status == before.status and line is not None:
            first = line[0]
        else:
            version = (line[0] if line is not None else b"HTTP/1.1").partition(b" ")[0]
            first = b"%b %d %b" % (version, status, _reason(status).encode())
        self.length: int | str | None
        if empty:
            self.length = 0
        elif _chunked(headers):
            self.length, body = "chunked", _in_chunks(body, size, whole=after.error is None)
        else:
            # What breaks off has announced more than came.
            announced = size if after.error is None else max(size + 1, _number(after.header("content-length")))
            headers = _counted(headers, announced, empty=False, add=add)
            self.length = announced if any(name.lower() == "content-length" for name, _ in headers) else None
        self._headers = headers
        self._status = status
        self._first = first
        lines = [first, *(f"{name}: {value}".encode("latin-1", "replace") for name, value in headers)]
        self.data = b"\r\n".join(lines) + b"\r\n\r\n" + body

    def head(self) -> Value:
        """The part that an http.client exchange begins with."""
        found = _FIRST_LINE.match(self._first)
        version = int(found[1]) * 10 + int(found[2] or 0) if found is not None else 11
        head: dict[str, Any] = {
            "status": self._status, "reason": self._first.split(b" ", 2)[-1].decode("latin-1"), "version": version,
            "headers": [[name, value] for name, value in self._headers],
        }  # fmt: skip
        if "offered" in self._recorded and any(name.lower() == "content-encoding" for name, _ in self._headers):
            head["offered"] = self._recorded["offered"]
        return {**head, "length": self.length, "raw": [self.data]}


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 16 else 0


def _unbounded(state: State) -> bool:
    return not state.header("content-length") and not _chunked(state.headers) and state.status not in _EMPTY


def _raw(parts: Sequence[Value]) -> bytes:
    """The head as it came over the wire."""
    data = b"".join(_segments(parts))
    return data[: max(0, end_of_head(data))]


def _segments(parts: Iterable[Value]) -> Iterator[bytes]:
    for part in parts:
        if isinstance(part, bytes):
            yield part
        elif isinstance(part, dict) and isinstance(raw := part.get("raw"), list):
            yield from (segment for segment in raw if isinstance(segment, bytes))


def _sized(body: bytes) -> tuple[bytes, int]:
    """A body whose placeholders say as how many bytes they count, and how long it is then: what stands there in the end
    is known to the fork, which counts anew (`log.frames.refit`)."""
    if placeholders.MARK not in body:
        return body, len(body)
    made: list[bytes] = []
    size = 0
    for piece in placeholders.split(body):
        if isinstance(piece, Placeholder):
            made.append(frames.uncounted(piece).text())
            size += 1
        else:
            made.append(placeholders.escaped(piece))
            size += len(piece)
    return b"".join(made), size


def _in_chunks(body: bytes, size: int, *, whole: bool) -> bytes:
    content = b"%x\r\n%b\r\n" % (size, body) if size else b""
    return content + (b"0\r\n\r\n" if whole else b"")
