"""One recorded effect as people and programs are shown it: what was asked, what came back, what it is.

Pure reading; nothing stored is executed. Credentials in headers are never shown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from lockstep.debugger import answers, bodies, messages, outcomes
from lockstep.debugger.answers import body, headers
from lockstep.debugger.dialects import framed
from lockstep.log.model import Status, Value
from lockstep.log.timeline import Effect, Timeline
from lockstep.session.asides import is_aside
from lockstep.session.policy import CLASSES, classify
from lockstep.taps.http.answer import Answer, answer

MODEL = "model"
PROCESS = "process"
BROWSER = "browser"
_EXCHANGES = ("model", "http")
_OURS = "lockstep.errors"
_CAUSES = 16


class Call(msgspec.Struct, frozen=True):
    """An effect, read.

    effect_class  inference, read, mutating or unknown: what it may do to the outside
    outcome       what the caller got, in the shape in which it can be edited: a tool's value, a model's
                  message, an HTTP answer as {status, headers, body}
    error         the exception in a line, "" where none was raised
    conversation  of a model call
    """

    kind: str
    name: str
    lane: str
    effect_class: str
    site: str
    status: Status | None
    began: int
    duration: int | None
    request: Any
    outcome: Any
    error: str
    conversation: messages.Conversation | None


def is_exchange(kind: str, request: Value) -> bool:
    """Whether what was asked is an HTTP request, so that its answer is one too. A framework's own call of a model is
    asked and answered with objects."""
    return kind in _EXCHANGES and isinstance(request, dict) and "url" in request


def name(timeline: Timeline, effect: Effect) -> str:
    """What the effect is called: a model by its name, anything else as recorded."""
    if effect.kind != MODEL:
        return effect.name
    request = timeline.request(effect)
    return (messages.read(request).model or effect.name) if is_exchange(effect.kind, request) else effect.name


def effect_class(timeline: Timeline, effect: Effect) -> str:
    """What the effect may do: as it was judged when it was asked, else by what it asks."""
    stored = timeline.effect_class(effect)
    return stored if stored in CLASSES else classify(effect.kind, effect.name, timeline.request(effect))


def read(timeline: Timeline, effect: Effect) -> Call:
    """Reads an effect with its payloads."""
    request = timeline.request(effect)
    outcome = timeline.outcome(effect)
    status = effect.status
    conversation = None
    framework = framed.dialect(request) if effect.kind == MODEL else None
    if framework is not None:
        title, dialect = framework
        parts = list(timeline.parts(effect))
        said = dialect.answer(parts, outcome if status is Status.OK else None)
        conversation = messages.Conversation(title, effect.name, dialect.messages(request), said, streamed=bool(parts))
        shown: Any = outcomes.shown([], outcome, status)
    elif is_exchange(effect.kind, request):
        got = answer(timeline.parts(effect))
        if effect.kind == MODEL:
            conversation = messages.read(request, _plain(got))
        shown = message(conversation) if conversation is not None else None
        shown = shown or answers.shown(answers.state(got, outcome if status is Status.ERROR else None))
    elif effect.kind == PROCESS:
        shown = _delivered(timeline.pieces(effect))
    else:
        shown = outcomes.shown([part for part in timeline.parts(effect) if not is_aside(part)], outcome, status)
    error = exception(outcome) if status is Status.ERROR else ""
    if conversation is not None and conversation.error and not error:
        error = conversation.error
    return Call(
        kind=effect.kind,
        name=(conversation.model if conversation is not None else "") or effect.name,
        lane=effect.lane,
        effect_class=effect_class(timeline, effect),
        site=timeline.site(effect),
        status=status,
        began=effect.begin.at,
        duration=effect.duration,
        request=_request(request),
        outcome=shown,
        error=error,
        conversation=conversation,
    )


def exception(form: Value) -> str:
    """An encoded exception in a line, as a traceback ends: `httpx.ConnectError: …`."""
    if not isinstance(form, dict):
        return ""
    module = str(form.get("module") or "")
    title = str(form.get("name") or "exception")
    if module and module != "builtins":
        title = f"{module}.{title}"
    args = form.get("args")
    words = ", ".join(_argument(one) for one in args) if isinstance(args, list) else ""
    if module == _OURS and words.startswith("LS"):
        return words  # its code says what it is
    return f"{title}: {words}" if words else title


def causes(form: Value) -> list[dict[str, Any]]:
    """An encoded exception and what caused it, to the first cause: frameworks wrap what a call failed with."""
    found: list[dict[str, Any]] = []
    while isinstance(form, dict) and len(found) < _CAUSES:
        found.append(form)
        cause = form.get("cause")
        form = cause.get("exception") if isinstance(cause, dict) else None
    return found


def _argument(value: Value) -> str:
    if isinstance(value, dict):
        inner = value.get("exception")
        if isinstance(inner, dict):
            return exception(inner)
        return str(next(iter(value.values()), ""))
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _plain(got: Answer) -> Value:
    if got.status is None:
        return None
    return {"status": got.status, "headers": [[key, value] for key, value in got.headers], "body": got.body}


def message(conversation: messages.Conversation) -> Any:
    """What a model said, in the shape in which it can be edited; None where it said nothing."""
    said = conversation.answer
    if said is None or not (said.message.text or said.message.tool_calls or said.finish):
        return None
    message: dict[str, Any] = {"role": said.message.role or "assistant", "content": said.message.text}
    if said.message.tool_calls:
        message["tool_calls"] = [
            {"name": call.name, "arguments": _json_or_text(call.arguments), "id": call.id}
            for call in said.message.tool_calls
        ]
    return message


def _json_or_text(text: str) -> Any:
    found = bodies.json(text)
    return text if found is None else found


def _request(request: Value) -> Any:
    if not isinstance(request, dict) or "method" not in request or "url" not in request:
        return request
    shown: dict[str, Any] = dict(request)
    given = request.get("headers")
    pairs = [(bodies.text(pair[0]), bodies.text(pair[1])) for pair in given] if isinstance(given, list) else []  # type: ignore[index]
    raw = request.get("body")
    if isinstance(raw, bytes):
        encoding = next((value for key, value in pairs if key.lower() == "content-encoding"), "")
        shown["body"] = body(bodies.plain(raw, encoding)[0])
    if isinstance(given, list):
        shown["headers"] = headers(pairs)
    return shown


def _delivered(pieces: Iterable[tuple[str, Value]]) -> Any:
    """What a process delivered: {exit, stdout, stderr}, each where it is known, and what it wrote into files."""
    found: dict[str, Any] = {}
    streams: dict[str, list[bytes]] = {}
    for channel, value in pieces:
        if isinstance(value, dict):
            found["exit"] = value.get("status")
        elif isinstance(value, bytes):
            streams.setdefault(channel, []).append(value)
    return {**found, **{channel: body(b"".join(read)) for channel, read in streams.items()}} or None
