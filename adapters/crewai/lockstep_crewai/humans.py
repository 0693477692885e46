"""Humans: what a program asks a person, and what that person says: feedback on a task with `human_input`, `Flow.ask`,
`@human_feedback`, and what a hook asks by `request_human_input`.

Where CrewAI asks at the terminal, the line that is typed is the answer, and all around it (panels, events) happens
again in a replay. A provider of the program's own is not asked again.
"""

from __future__ import annotations

import builtins
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any

from crewai.core.providers import human_input
from crewai.core.providers.human_input import SyncHumanInputProvider
from crewai.flow import runtime
from crewai.flow.async_feedback import providers
from crewai.flow.async_feedback.providers import ConsoleProvider
from crewai.flow.async_feedback.types import HumanFeedbackPending
from crewai.flow.input_provider import InputResponse
from crewai.flow.runtime import Flow
from crewai.hooks import llm_hooks, tool_hooks

from lockstep.errors import Code, LockstepError
from lockstep.log.model import Value
from lockstep.session.native.answers import Question
from lockstep_crewai import asking, classes, current
from lockstep_crewai.asking import Leaf
from lockstep_crewai.canonical import inert
from lockstep_crewai.executors import AgentExecutor
from lockstep_crewai.layout import HUMAN
from lockstep_crewai.places import Place

TERMINAL, ASK, FEEDBACK = "input", "ask", "feedback"

# What a person is asked about, where CrewAI's own prompt does not say it.
_about: ContextVar[dict[str, Value] | None] = ContextVar("lockstep_crewai_about", default=None)
# What a person said in the recording, for the provider that `Flow.ask` is about to ask.
_given: ContextVar[Any] = ContextVar("lockstep_crewai_given", default=None)


def install() -> None:
    """Has whoever asks a person ask who answers. Once."""
    for module in (human_input, runtime, providers, tool_hooks, llm_hooks):
        if "input" not in vars(module):
            module.input = _input
    classes.wrap_function(human_input, "_async_readline", _reading)
    for cls in classes.family(SyncHumanInputProvider):
        _see(cls)
    for context in (llm_hooks.LLMCallHookContext, tool_hooks.ToolCallHookContext):
        classes.wrap(context, "request_human_input", _hooked)
    classes.wrap(AgentExecutor, "_handle_human_feedback", _handling)
    classes.wrap(AgentExecutor, "_ahandle_human_feedback", _ahandling)
    # Not in a program's own flows: a method of that name may be any method there.
    classes.wrap(Flow, "ask", _asking)
    classes.wrap(Flow, "_resolve_input_provider", _resolving_input)
    classes.wrap(Flow, "_resolve_feedback_provider", _resolving_feedback)
    classes.wrap(Flow, "_request_human_feedback", _requesting)


def _see(provider: type) -> None:
    """A provider of CrewAI's asks at the terminal. One that is built on it may ask elsewhere."""
    own = provider is not SyncHumanInputProvider
    classes.wrap(provider, "_prompt_input", _prompting_elsewhere if own else _prompting)
    classes.wrap(provider, "_prompt_input_async", _aprompting_elsewhere if own else _aprompting)


def _outermost() -> Place | None:
    """Where a person is asked, None where nobody asks who answers, or this is a part of asking."""
    place = current.place()
    if place is None:
        return None
    return None if asking.inside.get()[0] == HUMAN else place


# At the terminal.


def _input(prompt: object = "", /) -> str:
    """In the place of `input` in the modules of CrewAI that ask at the terminal."""
    place = _outermost()
    if place is None:
        return builtins.input(prompt)
    asked: dict[str, Value] = {"prompt": str(prompt), **(_about.get() or {})}
    answer: str = asking.outside(
        place, HUMAN, lambda: Question(TERMINAL, asked, asked), lambda: builtins.input(prompt), Leaf(str, _text)
    )
    return answer


def _reading(plain: Any) -> Any:
    @wraps(plain)
    async def read() -> Any:
        place = _outermost()
        if place is None:
            return await plain()
        asked: dict[str, Value] = {"prompt": "", **(_about.get() or {})}
        return await asking.aoutside(place, HUMAN, lambda: Question(TERMINAL, asked, asked), plain, Leaf(str, _text))

    return read


def _text(value: Value) -> str:
    if not isinstance(value, str):
        raise TypeError(f"what a person types is a text, not {value!r}")
    return value


def _prompting(plain: Any) -> Any:
    @wraps(plain)
    def prompt(crew: Any) -> Any:
        token = _about.set(_ABOUT_RESULT)
        try:
            return plain(crew)
        finally:
            _about.reset(token)

    return prompt


def _aprompting(plain: Any) -> Any:
    @wraps(plain)
    async def prompt(crew: Any) -> Any:
        token = _about.set(_ABOUT_RESULT)
        try:
            return await plain(crew)
        finally:
            _about.reset(token)

    return prompt


_ABOUT_RESULT: dict[str, Value] = {"about": "the result of a task"}


def _prompting_elsewhere(plain: Any) -> Any:
    @wraps(plain)
    def prompt(*args: Any) -> Any:
        place = _outermost()
        if place is None:
            return plain(*args)
        return asking.outside(place, HUMAN, _of_result, partial(plain, *args), Leaf(str, _text))

    return prompt


def _aprompting_elsewhere(plain: Any) -> Any:
    @wraps(plain)
    async def prompt(*args: Any) -> Any:
        place = _outermost()
        if place is None:
            return await plain(*args)
        return await asking.aoutside(place, HUMAN, _of_result, partial(plain, *args), Leaf(str, _text))

    return prompt


def _of_result() -> Question:
    return Question(FEEDBACK, {**_ABOUT_RESULT}, {**_ABOUT_RESULT})


def _hooked(plain: Any) -> Any:
    """`request_human_input(prompt, default_message)` of a hook's context."""

    @wraps(plain)
    def request(self: Any, prompt: str, *args: Any, **options: Any) -> Any:
        token = _about.set({"message": str(prompt)})
        try:
            return plain(self, prompt, *args, **options)
        finally:
            _about.reset(token)

    return request


def _requesting(plain: Any) -> Any:
    """`Flow._request_human_feedback(message, output, metadata, emit, method_name)`."""

    @wraps(plain)
    def request(self: Any, *args: Any, **options: Any) -> Any:
        names = ("message", "output", "metadata", "emit", "method_name")
        given = {**dict(zip(names, args, strict=False)), **options}
        told: dict[str, Value] = {"message": str(given.get("message")), "output": inert(given.get("output"))}
        token = _about.set(told)
        try:
            return plain(self, *args, **options)
        finally:
            _about.reset(token)

    return request


# By a provider of the program's own.


def _handling(plain: Any) -> Any:
    @wraps(plain)
    def handle(self: Any, formatted_answer: Any) -> Any:
        _unseen(self)
        return plain(self, formatted_answer)

    return handle


def _ahandling(plain: Any) -> Any:
    @wraps(plain)
    async def handle(self: Any, formatted_answer: Any) -> Any:
        _unseen(self)
        return await plain(self, formatted_answer)

    return handle


def _unseen(executor: Any) -> None:
    """A provider of the program's own that handles feedback itself asks as it likes, in the midst of running the agent
    again. That is recorded as a call whose answer is not known: its replay stops there."""
    place = current.place()
    provider: Any = human_input.get_provider()
    kind = type(provider)
    if isinstance(provider, SyncHumanInputProvider):
        for cls in kind.__mro__:
            if issubclass(cls, SyncHumanInputProvider):
                _see(cls)
    if place is None or all(getattr(kind, name, None) is getattr(SyncHumanInputProvider, name) for name in _HANDLE):
        return
    why = (
        f"{kind.__module__}.{kind.__qualname__} asks a person in its own way: build it on SyncHumanInputProvider, and"
        " override only _prompt_input and _prompt_input_async"
    )

    def keep(result: Any) -> Value:
        raise LockstepError(Code.UNSTORABLE, why)

    asked: dict[str, Value] = {"provider": kind.__qualname__}
    asking.outside(place, HUMAN, lambda: Question(FEEDBACK, asked, asked), lambda: None, Leaf(keep))


_HANDLE = ("handle_feedback", "handle_feedback_async")


def _asking(plain: Any) -> Any:
    @wraps(plain)
    def ask(self: Any, message: str, timeout: float | None = None, metadata: Any = None) -> Any:
        place = _outermost()
        if place is None:
            return plain(self, message, timeout, metadata)
        asked: dict[str, Value] = {"message": str(message)}
        if metadata:
            asked["metadata"] = inert(metadata)
        request = {**asked, "timeout": timeout} if timeout is not None else asked

        def make(value: Value) -> Any:
            """Asks once more, of somebody who says at once what was said."""
            token = _given.set(_Said(_said(value)))
            try:
                return plain(self, message, None, metadata)
            finally:
                _given.reset(token)

        def keep(text: Any) -> Value:
            told = self._input_history[-1].get("response_metadata") if self._input_history else None
            return {"text": text, "metadata": inert(told)} if told else text

        return asking.outside(
            place, HUMAN, lambda: Question(ASK, request, asked), partial(plain, self, message, timeout, metadata),
            Leaf(keep, make),
        )  # fmt: skip

    return ask


def _said(value: Value) -> Any:
    """What a provider gave. An edited answer may be a plain text."""
    if value is None or isinstance(value, str):
        return value
    if not isinstance(value, dict) or not isinstance(value.get("text"), str | None):
        raise TypeError(f'what a person says is a text, or {{"text", "metadata"}}, not {value!r}')
    text: Any = value.get("text")
    metadata: Any = value.get("metadata")
    return InputResponse(text=text, metadata=metadata)


class _Said:
    """An input provider that asks nobody."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def request_input(self, message: str, flow: Any, metadata: Any = None) -> Any:
        return self._raw


def _resolving_input(plain: Any) -> Any:
    @wraps(plain)
    def resolve(self: Any) -> Any:
        given = _given.get()
        return given if given is not None else plain(self)

    return resolve


def _resolving_feedback(plain: Any) -> Any:
    @wraps(plain)
    def resolve(self: Any, *args: Any, **options: Any) -> Any:
        provider = plain(self, *args, **options)
        if provider is None or current.place() is None or type(provider) is ConsoleProvider:
            return provider  # the last asks at the terminal, where it is seen
        return _Feedback(provider)

    return resolve


class _Feedback:
    """Stands for a feedback provider of the program's own while it is asked."""

    def __init__(self, provider: Any) -> None:
        self._provider = provider

    def request_feedback(self, context: Any, flow: Any) -> Any:
        """See `HumanFeedbackProvider`. A provider that lets the flow wait raises `HumanFeedbackPending`."""
        place = _outermost()
        if place is None:
            return self._provider.request_feedback(context, flow)
        asked: dict[str, Value] = {
            "message": str(context.message), "output": inert(context.method_output), "method": str(context.method_name),
        }  # fmt: skip

        def really() -> Any:
            try:
                return self._provider.request_feedback(context, flow)
            except HumanFeedbackPending as pending:
                return pending

        leaf = Leaf(_feedback_kept, partial(_feedback_made, context))
        answer = asking.outside(place, HUMAN, lambda: Question(FEEDBACK, asked, asked), really, leaf)
        if isinstance(answer, HumanFeedbackPending):
            raise answer
        return answer


def _feedback_kept(answer: Any) -> Value:
    if isinstance(answer, HumanFeedbackPending):
        return {"pending": inert(answer.callback_info)}
    return str(answer)


def _feedback_made(context: Any, value: Value) -> Any:
    if isinstance(value, dict) and "pending" in value:
        told: Any = value["pending"]
        return HumanFeedbackPending(context=context, callback_info=told)
    return _text(value)
