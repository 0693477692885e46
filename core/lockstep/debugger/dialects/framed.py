"""Messages as frameworks have them in calls and states, whichever it is."""

from __future__ import annotations

from typing import Any

from lockstep.debugger.dialects import autogen, crewai, langchain
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
    if crewai.is_request(request):
        return "crewai", crewai
    return ("langchain", langchain) if langchain.is_request(request) else None


def is_one_message(request: Value) -> bool:
    """Whether what a model says there is one message to who asked it, in whichever pieces it came."""
    return dialect(request) is not None


def is_answer(request: Value, value: Any) -> bool:
    """Whether a value can stand for such a message, which a model of this request says."""
    if crewai.is_request(request):
        return isinstance(value, str) or (isinstance(value, dict) and bool(value.keys() & crewai.FORMS))
    return isinstance(value, dict) and bool(value.keys() & langchain.FORMS)


def form(request: Value) -> str:
    """In which form such a message is written, in words."""
    return crewai.FORM if crewai.is_request(request) else langchain.FORM
