"""Messages as frameworks have them in calls and states, whichever it is."""

from __future__ import annotations

from typing import Any

from lockstep.debugger.dialects import autogen, langchain
from lockstep.debugger.dialects.parts import Message
from lockstep.log.model import Value


def is_message(value: Value) -> bool:
    return langchain.is_message(value) or autogen.is_message(value)


def message(value: Value) -> Message:
    return langchain.message(value) if langchain.is_message(value) else autogen.message(value)


def dialect(request: Value) -> tuple[str, Any] | None:
    """The framework through which a model was asked, by name, and the module that reads it; None where it was none."""
    if autogen.is_request(request):
        return "autogen", autogen
    return ("langchain", langchain) if langchain.is_request(request) else None
