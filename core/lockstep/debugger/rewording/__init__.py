"""What a model said, said otherwise: its message as `show` prints it, put back into the answer that its API gave.

The rest of the answer stays as it was: ids, usage, reasoning, what the provider's own tools did. A streamed answer
stays streamed, with each text and each call in one piece. Each module knows one API, as `debugger.dialects` reads it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from lockstep.debugger import bodies, calls, messages, paths
from lockstep.debugger.answers import State
from lockstep.debugger.dialects.parts import Message, at
from lockstep.debugger.paths import Place
from lockstep.debugger.rewording import anthropic, chat, converse, gemini, ollama, responses, streams
from lockstep.debugger.rewording import said as saying
from lockstep.debugger.rewording.said import Asked
from lockstep.errors import Code, EditError
from lockstep.log.model import Value

SSE, LINES, ARRAY, FRAMES, INVOKED, WHOLE = "sse", "lines", "array", "frames", "invoked", ""
_MEDIA = {
    SSE: "text/event-stream",
    LINES: "application/x-ndjson",
    FRAMES: "application/vnd.amazon.eventstream",
    INVOKED: "application/vnd.amazon.eventstream",
}
_APIS: dict[str, Any] = {
    "openai chat": chat, "openai responses": responses, "anthropic": anthropic, "gemini": gemini, "ollama": ollama,
    "bedrock": converse,
}  # fmt: skip


def edited(request: Value, now: State, place: Place, value: Value) -> State:
    """The answer with its message edited, or a place of it. Raises EditError LS212, LS213."""
    conversation = _conversation(request, now)
    shown = calls.message(conversation)
    if place and shown is None:
        raise EditError(
            Code.UNEDITABLE, f"the model said nothing here, so there is no {paths.shown(place)}: edit all of it"
        )
    form: Any = paths.put(shown, place, value, added=("tool_calls",)) if place else value
    if form == shown:
        return now
    before = (
        conversation.answer.message if shown is not None and conversation.answer is not None else Message("assistant")
    )
    said = saying.read(form, before)
    api = _APIS.get(conversation.api)
    url = bodies.text(at(request, "url"))
    if api is None:
        raise saying.unlike(conversation.api)
    asked = Asked(url, bodies.json(_plain(request)), conversation.model)
    answered = now.status is not None and now.status < 400
    way = _way(now) if answered else _wanted(conversation.api, asked)
    body = _written(api, way, now.body if answered else b"", said, before, asked)
    if answered:
        return State(now.status, now.headers, body, "", None)
    return State(200, (("content-type", _MEDIA.get(way, "application/json")),), body, "", None)


def _conversation(request: Value, now: State) -> messages.Conversation:
    if now.status is None:
        return messages.read(request)
    pairs: list[Value] = [[name, value] for name, value in now.headers if name.lower() != "content-encoding"]
    return messages.read(request, {"status": now.status, "headers": pairs, "body": now.body})


def _plain(request: Value) -> bytes:
    raw = at(request, "body")
    body = raw if isinstance(raw, bytes) else bodies.text(raw).encode()
    return bodies.plain(body, bodies.header(at(request, "headers"), "content-encoding"))[0]


def _way(now: State) -> str:
    """How the recorded answer came, as `messages` reads it."""
    if now.media == _MEDIA[FRAMES]:
        return FRAMES
    if now.media == _MEDIA[SSE] or now.body.lstrip().startswith((b"data:", b"event:", b":")):
        return SSE
    found = bodies.json(now.body)
    return LINES if found is None else ARRAY if isinstance(found, list) else WHOLE


def _wanted(api: str, asked: Asked) -> str:
    """How an answer would have come."""
    path, _, query = asked.url.partition("?")
    tail = path.rstrip("/").rpartition("/")[2]
    if tail == "converse-stream":
        return FRAMES
    if tail == "invoke-with-response-stream":
        return INVOKED
    if api == "gemini":
        return WHOLE if not tail.endswith(":streamGenerateContent") else SSE if "alt=sse" in query else ARRAY
    streamed = at(asked.body, "stream")
    if api == "ollama":
        return WHOLE if streamed is False else LINES
    return SSE if streamed is True or tail.endswith(":streamRawPredict") else WHOLE


def _written(api: Any, way: str, body: bytes, said: Message, before: Message, asked: Asked) -> bytes:
    """The body of an answer that says something else. `body`: the recorded one, b"" for none."""
    if way == WHOLE:
        return msgspec.json.encode(api.whole(bodies.json(body), said, before, asked))
    if api is converse:
        return streams.frames(converse.stream(list(bodies.frames(body)), said, before, asked))
    if way in (FRAMES, INVOKED):
        return streams.wrapped(api.stream(streams.unwrapped(bodies.frames(body)), said, before, asked))
    if way == LINES:
        lines = api.stream(list(bodies.lines(body)), said, before, asked)
        return b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    if way == ARRAY:
        return msgspec.json.encode(api.stream(bodies.json(body) or [], said, before, asked))
    events = streams.events(body)
    if api in (chat, responses):
        return streams.written(api.stream(events, said, before, asked))
    data = [event.data for event in events]
    made = api.stream(data, said, before, asked)
    return streams.written(streams.Event(event["type"] if api is anthropic else "", event) for event in made)
