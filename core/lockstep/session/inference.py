"""What the request of a model call says: which model it asks, and whether it has more done than answering."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


class _Named(msgspec.Struct):
    model: Any = ""


_IN_URL = re.compile(r"/(?:models|tunedModels|endpoints|model|deployments)/([^/:?]+)")
_IN_FORM = re.compile(rb'name="model"(?:\r\n[^\r\n]+)*\r\n\r\n([^\r\n]*)')
_name_of = msgspec.json.Decoder(_Named)


def describe(url: str, body: bytes | None) -> str:
    """The model's name as the request gives it, "" where it names none. For display: parses the body."""
    if body:
        try:
            name = _name_of.decode(body).model
        except (msgspec.DecodeError, UnicodeDecodeError):
            form = _IN_FORM.search(body)
            name = form[1].decode("utf-8", "replace") if form else ""
        if isinstance(name, str) and name:
            return name
    path = url.partition("?")[0].partition("://")[2] or url
    # Bedrock's ids are percent-encoded, and an ARN has colons and slashes of its own
    found = _IN_URL.search(path)
    if found is None:
        return ""
    from urllib.parse import unquote  # only where something is shown

    return unquote(found[1])


class _Tools(msgspec.Struct):
    tools: Any = ()
    background: Any = False
    mcp_servers: Any = None
    container: Any = None


# Tools that run at the caller's side; every other one acts at the provider.
_CLIENT_TOOLS = frozenset({"function", "custom", "local_shell", "apply_patch", "computer_use_preview"})
_CLIENT_TOOL_FAMILIES = ("bash_", "text_editor_", "computer_", "memory_")
_CLIENT_TOOL_KEYS = frozenset({"functionDeclarations", "function_declarations"})
_tools_of = msgspec.json.Decoder(_Tools)


def harmless(body: bytes | None) -> bool:
    """Whether an inference call changes nothing at the provider: no hosted tools (web search, code
    execution, MCP), no background job. False where the body cannot be read."""
    if not body:
        return False
    try:
        asked = _tools_of.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    if asked.background or asked.mcp_servers or asked.container:
        return False
    tools = asked.tools or ()
    return isinstance(tools, Sequence) and all(map(_runs_here, tools))


def _runs_here(tool: Any) -> bool:
    if not isinstance(tool, dict):
        return False
    kind = tool.get("type")
    if kind is None:  # Anthropic's and Ollama's plain tools have a name; Gemini's are told apart by their key
        return "name" in tool or "function" in tool or _CLIENT_TOOL_KEYS.issuperset(tool)
    return isinstance(kind, str) and (kind in _CLIENT_TOOLS or kind.startswith(_CLIENT_TOOL_FAMILIES))


def model(request: Mapping[str, Any]) -> str:
    """The same of a request as it is stored."""
    url, body = request.get("url"), request.get("body")
    return describe(url, body if isinstance(body, bytes) else None) if isinstance(url, str) else ""


def only(body: bytes) -> bool:
    """Whether a model is asked for an answer and nothing else. A form, as for a transcription, or an empty body has
    no room for tools."""
    return not body or body.startswith(b"--") or harmless(body)
