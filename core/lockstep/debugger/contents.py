"""What two calls are compared by: their requests and outcomes in a form in which equal things are equal.

A request is what it is matched by in a replay, so that what does not count there does not count here. A streamed
answer is one value, however it was cut up. Bodies are opened where they are JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from lockstep.debugger import answers, bodies, calls, messages
from lockstep.debugger.dialects import framed
from lockstep.debugger.folding import fold
from lockstep.debugger.sides import Call, Side
from lockstep.log.model import Status, Value
from lockstep.session import snapshot
from lockstep.taps.http import request as http
from lockstep.taps.http.answer import Answer, answer
from lockstep.taps.processes import request as processes

EXCHANGES = ("model", "http")
PROCESS = "process"
_BLANK = re.compile(rb"\r\n\r\n|\n\n|\r\r")


def is_exchange(call: Call, body: Value) -> bool:
    """Whether the request is an HTTP one."""
    return call.kind in EXCHANGES and isinstance(body, dict) and "url" in body


def request(call: Call, body: Value, *, exact: bool = False) -> Value:
    """What was asked. `exact`: as stored, with what does not have to match."""
    if not isinstance(body, dict):
        return body
    if is_exchange(call, body):
        return _http(body, exact=exact)
    if call.kind == "tool" and "arguments" in body and not exact:
        return {"arguments": snapshot.to_key(body["arguments"])}
    if call.kind == PROCESS and not exact:
        return dict(processes.key(body))
    return body


def _http(body: dict[str, Any], *, exact: bool) -> Value:
    url, method = bodies.text(body.get("url")), bodies.text(body.get("method"))
    raw = body.get("body")
    given = body.get("headers")
    pairs = [(bodies.text(one[0]), bodies.text(one[1])) for one in given] if isinstance(given, list) else []
    data = raw if isinstance(raw, bytes) else bodies.text(raw).encode()
    found: dict[str, Any] = {"method": method, "url": url}
    key: Any = http.asked(method, url, pairs, data).key
    if not exact:
        query = f"?{key['query']}" if key["query"] is not None else ""
        found["url"] = f"{key['origin']}{key['path']}{query}"
    if key["body"]:
        found["body"] = _opened(key["body"])
    if "partial" in body:
        found["partial"] = body["partial"]
    found["headers"] = _grouped(pairs if exact else key["headers"])
    return found


def outcome(call: Call, side: Side, asked: Value) -> dict[str, Value]:
    """What the program got: `answer`, `parts` of one that came in pieces, `error` where one was raised, and `ended`
    where it ended in another way."""
    found: dict[str, Value] = {}
    end = side.outcome(call)
    if is_exchange(call, asked):
        got = answer(side.parts(call))
        if got.status is not None or got.body:
            found["answer"] = _answer(call, asked, got)
        if end is not None and call.status == Status.OK:
            found["value"] = end
    elif call.kind == PROCESS:
        found["answer"] = _delivered(side.channels(call), end if call.status == Status.OK else None)
    else:
        # What a model said is one message: in which pieces it came is nothing of its own.
        said = call.kind == "model" and end is not None and framed.is_one_message(asked)
        parts = [] if said else _joined(side.parts(call))
        if parts:
            found["parts"] = parts
        if call.status == Status.OK and (end is not None or not parts):
            found["answer"] = end
    if call.status == Status.ERROR:
        found["error"] = end
    elif call.status != Status.OK:
        found["ended"] = "in flight" if call.status is None else call.status
    return found


def _delivered(pieces: Iterable[tuple[str, Value]], status: Value) -> dict[str, Value]:
    """What a process delivered, pipe by pipe, and how it ended."""
    found: dict[str, bytes] = {}
    for channel, piece in pieces:
        found[channel] = found.get(channel, b"") + (piece if isinstance(piece, bytes) else str(piece).encode())
    ended = status if isinstance(status, dict) else {"status": status}
    return {**ended, **{channel: _opened(data) for channel, data in found.items()}}


def _answer(call: Call, asked: Value, got: Answer) -> dict[str, Value]:
    plain, problem = bodies.plain(got.body, got.header("content-encoding"))
    body = _body(plain, got) if not problem else got.body
    found: dict[str, Value] = {"status": got.status}
    if call.kind == "model":
        pairs: list[Value] = [[name, value] for name, value in got.headers]
        conversation = messages.read(asked, {"status": got.status, "headers": pairs, "body": got.body})
        said = calls.message(conversation)
        if said is not None and conversation.answer is not None:
            found |= said
            found["finish"] = conversation.answer.finish
    if body is not None:
        found["body"] = body
    found["headers"] = _grouped(got.headers)
    return found


def _grouped(pairs: Iterable[Any]) -> dict[str, Value]:
    """Headers by name; of one that comes more than once, all values."""
    found: dict[str, Value] = {}
    for name, value in answers.headers(pairs):
        name = name.lower()
        before = found.get(name)
        if name in found:
            found[name] = [*before, value] if isinstance(before, list) else [before, value]
        else:
            found[name] = value
    return found


def _body(raw: bytes, got: Answer) -> Value:
    kind = got.header("content-type").partition(";")[0].strip().lower()
    if kind == "text/event-stream":
        return _value(fold(_events(raw)))
    if kind == "application/vnd.amazon.eventstream":
        return _value(fold(_frame(sort, payload) for sort, payload in bodies.frames(raw)))
    if "ndjson" in kind or "jsonl" in kind or "json-seq" in kind:
        return _value(fold(bodies.lines(raw)))
    return _opened(raw) if raw else None


def _value(folded: Any) -> Value:
    value: Value = folded
    return value


def _events(raw: bytes) -> Iterator[Any]:
    """Server-sent events: their data as JSON or else as text. Comments and retry times are the transport's."""
    for block in _BLANK.split(raw):
        data, name = [], ""
        for line in block.splitlines():
            field, _, value = line.partition(b":")
            if field == b"data":
                data.append(value.removeprefix(b" "))
            elif field == b"event":
                name = bodies.text(value.strip())
        if data:
            text = b"\n".join(data)
            found = bodies.json(text)
            if isinstance(found, dict):
                # Providers repeat the event's name inside; where they don't, it says what the event is.
                yield found if "type" in found or not name else {"event": name, **found}
            else:
                yield bodies.text(text)


def _frame(sort: str, payload: Any) -> Any:
    inner = bodies.json(bodies.from_base64(payload.get("bytes"))) if isinstance(payload, dict) else None
    if isinstance(inner, dict):
        return inner
    return {"type": sort, **payload} if isinstance(payload, dict) else payload


def _opened(raw: Any) -> Value:
    """A body as JSON where it is JSON, else as text where it is text."""
    if not isinstance(raw, bytes):
        value: Value = raw
        return value
    found = bodies.json(raw)
    if isinstance(found, dict | list):
        return found
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _joined(parts: Iterable[Value]) -> list[Value]:
    """The parts of an outcome, with pieces of one text or one byte stream put together."""
    found: list[Value] = []
    for part in parts:
        last = found[-1] if found else None
        if (isinstance(part, bytes) and isinstance(last, bytes)) or (isinstance(part, str) and isinstance(last, str)):
            found[-1] = last + part  # type: ignore[operator]
        else:
            found.append(part)
    return found
