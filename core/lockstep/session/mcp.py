"""Calls of the Model Context Protocol: what a tool's annotations say, and what can be told from a request alone.

The protocol's own words (specification of 2025-06-18): `ToolAnnotations` in its schema, the transport "Streamable
HTTP", whose client accepts `application/json` and `text/event-stream` and ends its session by DELETE.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from lockstep.session.policy import EffectClass

# Requests that no server may take as a wish for a change. `tools/call` is whatever the tool does.
_LOOKS = frozenset({
    "initialize", "ping", "tools/list", "resources/list", "resources/read", "resources/templates/list",
    "resources/subscribe", "resources/unsubscribe", "prompts/list", "prompts/get", "completion/complete",
    "logging/setLevel",
})  # fmt: skip
_TOLD = "notifications/"
_CALL = "tools/call"
_SESSION = "mcp-session-id"
_SIGNS = frozenset({_SESSION, "mcp-protocol-version"})


class _Params(msgspec.Struct):
    name: Any = ""
    protocolVersion: Any = ""  # noqa: N815 - as it is written


class _Message(msgspec.Struct):
    jsonrpc: str = ""
    method: str = ""
    params: _Params | None = None
    id: Any = None


_messages = msgspec.json.Decoder(list[_Message] | _Message)


def annotated(annotations: Any) -> EffectClass | None:
    """The class that a tool's annotations give it, None where they say nothing of it. A mapping or an object, names
    as in the protocol or in Python's way.

    `destructiveHint` and `idempotentHint` only mean something for a tool that is not read-only; one that has
    either, and does not say that it only reads, changes something. `openWorldHint` says nothing of that.
    """
    reads = _hint(annotations, "readOnlyHint", "read_only_hint")
    if reads is True:
        return "read"
    others = (
        reads,
        _hint(annotations, "destructiveHint", "destructive_hint"),
        _hint(annotations, "idempotentHint", "idempotent_hint"),
    )
    return "mutating" if any(isinstance(hint, bool) for hint in others) else None


def _hint(annotations: Any, *names: str) -> Any:
    for name in names:
        found = annotations.get(name) if isinstance(annotations, Mapping) else getattr(annotations, name, None)
        if found is not None:
            return found
    return None


def harmless(request: Mapping[str, Any]) -> str:
    """Why an HTTP request is one of the protocol that changes nothing, "" where it may be any other."""
    if request.get("method") == "DELETE":
        return "it ends the program's own MCP session" if _SESSION in _headers(request) else ""
    found = _read(request)
    if found and all(one.method in _LOOKS or one.method.startswith(_TOLD) for one in found):
        return f"MCP's {found[0].method} changes nothing"
    return ""


def tool(request: Mapping[str, Any]) -> str:
    """The name of the tool that an HTTP request calls, "" where it is no such request."""
    found = _read(request)
    name = found[0].params.name if len(found) == 1 and found[0].method == _CALL and found[0].params else ""
    return name if isinstance(name, str) else ""


def _read(request: Mapping[str, Any]) -> list[_Message]:
    """The messages of a request, if it is one of this protocol."""
    body = request.get("body")
    if not isinstance(body, bytes) or b'"jsonrpc"' not in body:
        return []
    try:
        found = _messages.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []
    messages = found if isinstance(found, list) else [found]
    if not all(one.jsonrpc == "2.0" and one.method for one in messages) or not _is_mcp(request, messages):
        return []
    return messages


def _is_mcp(request: Mapping[str, Any], messages: list[_Message]) -> bool:
    # Other protocols speak JSON-RPC too, and may mean something else by the same names.
    headers = _headers(request)
    if not _SIGNS.isdisjoint(headers):
        return True
    accepted = headers.get("accept", "")
    if "text/event-stream" not in accepted or "application/json" not in accepted:
        return False
    first = messages[0]
    opens = first.method == "initialize" and first.params is not None and bool(first.params.protocolVersion)
    return opens or "/" in first.method


def _headers(request: Mapping[str, Any]) -> dict[str, str]:
    pairs = request.get("headers")
    if not isinstance(pairs, list):
        return {}
    return {_text(pair[0]).lower(): _text(pair[1]) for pair in pairs if isinstance(pair, list) and len(pair) == 2}


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
