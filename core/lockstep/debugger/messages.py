"""What was said to a model and what it said, read out of a recorded HTTP exchange for `show` and `log`.

Pure functions from recorded values to frozen structs. Nothing here raises: a recording may hold any
bytes, and what cannot be read is left empty, with a word in `note`.
"""

from __future__ import annotations

from typing import Any

import msgspec

from lockstep.debugger import bodies
from lockstep.debugger.dialects import anthropic, bedrock, gemini, ollama, openai
from lockstep.debugger.dialects.parts import Answer, Message, ToolCall, Usage, at, string, total
from lockstep.log.model import Value
from lockstep.session.inference import describe

__all__ = ["Answer", "Conversation", "Message", "ToolCall", "Usage", "read"]


class Conversation(msgspec.Struct, frozen=True):
    """One model call.

    api       "openai chat", "openai responses", "anthropic", "gemini", "bedrock", "ollama", "" if unknown
    model     as the request names it, else as the answer does
    messages  what was sent, in order
    answer    what came back; None where there was no answer, or an error
    streamed  whether the answer came in pieces
    error     what the provider said went wrong
    note      why something is missing: an encoding without a decoder, a body that is no JSON
    """

    api: str
    model: str
    messages: tuple[Message, ...] = ()
    answer: Answer | None = None
    streamed: bool = False
    error: str = ""
    note: str = ""


def read(request: Value, answer: Value = None) -> Conversation:
    """Reads one exchange.

    request  {"method", "url", "headers": [[name, value], …], "body": bytes}
    answer   {"status", "headers", "body": bytes as sent, still content-encoded}, or None
    """
    url = bodies.text(at(request, "url"))
    raw, problem = _body(request)
    asked = bodies.json(raw)
    api = _api(url, asked)
    name = describe(url, raw)
    notes = [problem] if problem else []
    if raw and asked is None and not problem:
        notes.append("the request is not JSON")
    messages = _messages(api, asked)
    if answer is None or not isinstance(answer, dict):
        return Conversation(api, name, messages, note="; ".join(notes))
    body, problem = _body(answer)
    if problem:
        notes.append(problem)
    status = at(answer, "status")
    if isinstance(status, int) and status >= 400:
        return Conversation(api, name, messages, error=_error(bodies.json(body), body, status), note="; ".join(notes))
    kind = bodies.header(at(answer, "headers"), "content-type").partition(";")[0].strip().lower()
    found, streamed, error = _answer(api, url, kind, body)
    if found is not None:
        found = _counted(found, at(answer, "headers"))
        name = name or found.model
    elif body and not problem and not error:
        notes.append("the answer is not JSON")
    return Conversation(api, name, messages, found, streamed, error, "; ".join(notes))


def _body(message: Value) -> tuple[bytes, str]:
    body = at(message, "body")
    if isinstance(body, str):
        body = body.encode()
    if not isinstance(body, bytes):
        return b"", ""
    return bodies.plain(body, bodies.header(at(message, "headers"), "content-encoding"))


def _api(url: str, asked: Any) -> str:
    path = url.partition("?")[0].rstrip("/")
    tail = path.rpartition("/")[2]
    if tail.startswith("converse"):
        return "bedrock"
    if tail in ("messages", "invoke", "invoke-with-response-stream") or tail.endswith(
        (":rawPredict", ":streamRawPredict")
    ):
        return "anthropic"
    if tail.endswith((":generateContent", ":streamGenerateContent", ":embedContent", ":countTokens")):
        return "gemini"
    if tail == "responses":
        return "openai responses"
    if path.endswith(("/api/chat", "/api/generate", "/api/embed", "/api/embeddings")):
        return "ollama"
    if tail in ("completions", "embeddings") or isinstance(at(asked, "messages"), list):
        return "openai chat"
    return ""


def _messages(api: str, asked: Any) -> tuple[Message, ...]:
    match api:
        case "openai responses":
            return openai.response_messages(asked)
        case "anthropic":
            return anthropic.messages(asked)
        case "gemini":
            return gemini.messages(asked)
        case "bedrock":
            return bedrock.messages(asked)
        case "ollama":
            return ollama.messages(asked)
        case _:
            return openai.chat_messages(asked)


def _answer(api: str, url: str, kind: str, body: bytes) -> tuple[Answer | None, bool, str]:
    """The answer, whether it was streamed, and an error that came within it."""
    if not body:
        return None, False, ""
    if kind == "application/vnd.amazon.eventstream":
        frames = list(bodies.frames(body))
        if api == "bedrock":
            return bedrock.stream(frames), True, ""
        inner = [bodies.json(bodies.from_base64(at(payload, "bytes"))) for _, payload in frames]
        return anthropic.stream(inner), True, ""
    if kind == "text/event-stream" or body.lstrip().startswith((b"data:", b"event:", b":")):
        events = list(bodies.events(body))
        failures = (each for event in events for each in (event, at(event, "response")))
        failed = next((each for each in failures if isinstance(at(each, "error"), dict | str)), None)
        return _streamed(api, events), True, "" if failed is None else _error(failed, b"", 0)
    if api == "ollama" and bodies.json(body) is None:
        return ollama.answer(bodies.lines(body)), True, ""
    value = bodies.json(body)
    if value is None:
        return None, False, ""
    if api == "gemini" and isinstance(value, list):
        return gemini.answer(value), True, ""
    return _whole(api, value), False, ""


def _streamed(api: str, events: list[Any]) -> Answer:
    match api:
        case "openai responses":
            return openai.response_stream(events)
        case "anthropic":
            return anthropic.stream(events)
        case "gemini":
            return gemini.answer(events)
        case _:
            return openai.chat_stream(events)


def _whole(api: str, value: Any) -> Answer:
    match api:
        case "openai responses":
            return openai.response_answer(value)
        case "anthropic":
            return anthropic.answer(value)
        case "gemini":
            return gemini.answer([value])
        case "bedrock":
            return bedrock.answer(value)
        case "ollama":
            return ollama.answer([value])
        case _:
            return openai.chat_answer(value)


def _counted(answer: Answer, headers: Any) -> Answer:
    """Models invoked on Bedrock are counted in headers."""
    if answer.usage != Usage():
        return answer
    counts = [_number(bodies.header(headers, f"x-amzn-bedrock-{what}-token-count")) for what in ("input", "output")]
    if total(*counts) is None:
        return answer
    return msgspec.structs.replace(answer, usage=Usage(*counts))


def _number(digits: str) -> int | None:
    return int(digits) if digits.isdecimal() and len(digits) < 16 else None


def _error(value: Any, body: bytes, status: int) -> str:
    first = at(value, 0) if isinstance(value, list) else value  # Gemini's streams fail in a list
    for place in (("error", "message"), ("error",), ("message",), ("Message",), ("detail",)):
        found = string(first, *place)
        if found:
            return found
    return bodies.text(body[:500]) or (f"status {status}" if status else "unknown")
