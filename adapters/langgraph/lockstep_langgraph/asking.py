"""What a chat model is asked, as data: its name, the messages, and what else makes it answer as it does."""

from __future__ import annotations

import functools
from typing import Any

from lockstep.log.model import Value
from lockstep_langgraph import answers, calls

# Of the fake models, what they will answer is a parameter.
_ANSWERS = "langchain_core.language_models.fake"
_MOST_CLASSES = 512  # of models that something is remembered of


def request(model: Any, asked: Any, stop: Any, kwargs: dict[str, Any]) -> dict[str, Value]:
    """The request: messages, tools, parameters, where it has some."""
    found: dict[str, Value] = {"messages": answers.asked(asked)}
    tools = kwargs.get("tools")
    if tools:
        found["tools"] = calls.inert(tools)
    parameters = _parameters(model, stop, {name: value for name, value in kwargs.items() if name != "tools"})
    if parameters:
        found["parameters"] = parameters
    return found


def _parameters(model: Any, stop: Any, kwargs: dict[str, Any]) -> Value:
    own: dict[str, Any] = {}
    cls: Any = type(model)
    if not _gives_answers(cls):
        own = {name: value for name, value in dict(model._identifying_params).items() if name not in ("_type", "stop")}
    if stop is not None:
        own["stop"] = stop
    found: dict[str, Value] = {
        name: calls.inert(value) for name, value in {**own, **kwargs}.items() if value is not None
    }
    return found


@functools.lru_cache(_MOST_CLASSES)
def _gives_answers(cls: Any) -> bool:
    home = next((base for base in cls.__mro__ if "_identifying_params" in vars(base)), None)
    return home is not None and home.__module__.startswith(_ANSWERS)


def name(model: Any, stop: Any, kwargs: dict[str, Any]) -> str:
    """What the model is called, as LangSmith is told."""
    named = model._get_ls_params(stop=stop, **kwargs).get("ls_model_name")
    return str(named or model._llm_type)
