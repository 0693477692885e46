"""Models: each `call` or `acall` of a `BaseLLM` is an effect, be it of CrewAI's own providers, of LiteLLM's, or a
program's own. What calls another one inside of it (a fallback, an overridden method) is part of it.

Recorded is what the model is asked, and what its caller gets:

    {"text": text}                          an answer
    {"tool_calls": [{"id", "type", "function": {"name", "arguments"}}, …], "class": "module:name"}
                                            calls of tools, as the provider's SDK has them; without "class" they are
                                            plain data
    {"object": {…}, "class": "module:name"} an object of the class that was asked for
    {"value": …}                            what a model of the program's own returns otherwise

with "usage", the tokens as the provider counted them, "finish_reason" and "response_id", and "carried", what the model
keeps of the answer for its next request, as it thinks or as the provider goes on with a conversation. What was heard
of the call while it ran are its pieces (`events`), so that listeners, streams and counters of tokens notice no
difference when it is served.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache, wraps
from typing import Any

from crewai.llms.base_llm import BaseLLM, llm_call_context
from crewai.utilities import reasoning_handler
from crewai.utilities.internal_instructor import InternalInstructor
from pydantic import BaseModel

from lockstep.log.model import Status, Value
from lockstep.session import shapes, snapshot
from lockstep.session.call import failed
from lockstep.session.native import answers
from lockstep.session.native.answers import Question
from lockstep.session.policy import Declared
from lockstep_crewai import asking, classes, current, events, given
from lockstep_crewai.asking import Leaf
from lockstep_crewai.canonical import inert
from lockstep_crewai.events import Heard
from lockstep_crewai.layout import MODEL
from lockstep_crewai.places import Place
from lockstep_crewai.voice import Voice

# What a model is set to that has a say in its answer. Address, key and clients are left out: another server may answer.
_SET = (
    "temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "max_output_tokens", "stream", "seed", "n",
    "frequency_penalty", "presence_penalty", "reasoning_effort", "thinking", "thinking_config", "logit_bias",
    "logprobs", "top_logprobs", "response_format", "tool_choice", "parallel_tool_calls", "builtin_tools",
    "additional_params",
)  # fmt: skip
_ORDER = ("messages", "tools", "callbacks", "available_functions", "from_task", "from_agent", "response_model")
_RUNS_TOOLS = Declared("unknown", "it runs the functions that the model chooses")
# Attributes of CrewAI's own models in which they keep something of an answer.
_CARRIED = ("_previous_thinking_blocks", "_last_response_id", "_last_reasoning_items")
_COUNTS = Declared("read", "it only counts tokens")


def install() -> None:
    """Has all models ask who answers them. Once."""
    classes.each(BaseLLM, _see)
    classes.wrap(InternalInstructor, "to_pydantic", _instructing)


def _see(cls: type) -> None:
    classes.wrap(cls, "call", _calling)
    classes.wrap(cls, "acall", _acalling)
    if cls is not BaseLLM:  # which counts by itself
        classes.wrap(cls, "get_input_tokens_count", _counting)


def _calling(plain: Any) -> Any:
    @wraps(plain)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        place = _outermost()
        if place is None:
            return plain(self, *args, **options)
        asked, own = _arguments(plain, self, args, options), events.is_own(self, "call")
        made = place.asked(MODEL, lambda: question(self, asked))
        if made is None:
            return plain(self, *args, **options)
        if made.held:
            made.ready()
        if not made.live:
            with _call_context():
                return _served(self, asked, made, Voice(self, asked, own=own))
        heard, before = Heard(made, own=own), _carried(self)
        try:
            with asking.running(made, MODEL, heard):
                result = plain(self, *args, **options)
        except BaseException as error:
            heard.failed()
            failed(made, error)
            raise
        made.end(Status.OK, _kept(place, result, heard, self, before))
        return result

    return call


def _acalling(plain: Any) -> Any:
    @wraps(plain)
    async def acall(self: Any, *args: Any, **options: Any) -> Any:
        place = _outermost()
        if place is None:
            return await plain(self, *args, **options)
        asked, own = _arguments(plain, self, args, options), events.is_own(self, "acall")
        made = place.asked(MODEL, lambda: question(self, asked))
        if made is None:
            return await plain(self, *args, **options)
        if made.held:
            await made.aready()
        if not made.live:
            with _call_context():
                return await _aserved(self, asked, made, Voice(self, asked, own=own))
        heard, before = Heard(made, own=own), _carried(self)
        try:
            with asking.running(made, MODEL, heard):
                result = await plain(self, *args, **options)
        except BaseException as error:
            heard.failed()
            failed(made, error)
            raise
        made.end(Status.OK, _kept(place, result, heard, self, before))
        return result

    return acall


@contextmanager
def _call_context() -> Iterator[None]:
    """CrewAI's context of a call that is served, with an id of its own: of a call that runs it is a part."""
    context = llm_call_context()
    with events.as_inside():
        context.__enter__()
    try:
        yield
    finally:
        context.__exit__(None, None, None)


def _outermost() -> Place | None:
    """Where a model is called, None where nobody asks, or another model's call is what calls it."""
    place = current.place()
    if place is None:
        return None
    return None if asking.inside.get()[0] == MODEL else place


def _served(llm: Any, asked: Mapping[str, Any], call: Any, voice: Voice) -> Any:
    voice.begin()
    value: Value = None
    try:
        for piece in answers.took(call):
            value = piece.value
            if piece.status is None:
                voice.part(value)
    except Exception:
        voice.let_through()
        raise
    return _result(llm, asked, call, voice, value)


async def _aserved(llm: Any, asked: Mapping[str, Any], call: Any, voice: Voice) -> Any:
    voice.begin()
    value: Value = None
    try:
        async for piece in answers.taken(call):
            value = piece.value
            if piece.status is None:
                voice.part(value)
    except Exception:
        voice.let_through()
        raise
    return _result(llm, asked, call, voice, value)


def _result(llm: Any, asked: Mapping[str, Any], call: Any, voice: Voice, value: Value) -> Any:
    outcome: Value = {"text": value} if isinstance(value, str) else value
    result = answers.made(call, lambda it: result_of(llm, asked, it), outcome, framework="CrewAI")
    voice.let_through()
    if isinstance(outcome, dict) and isinstance(outcome.get("carried"), dict):
        kept: Any = outcome["carried"]
        for name in _CARRIED:
            if name in kept:
                setattr(llm, name, answers.made(call, snapshot.from_value, kept[name], framework="CrewAI"))
    return voice.over(result, outcome if isinstance(outcome, dict) else {})


# What is asked.


def question(llm: Any, asked: Mapping[str, Any]) -> Question:
    """What a model is asked, as data. `asked`: the arguments of its call, by their names."""
    request: dict[str, Value] = {"messages": messages_of(asked.get("messages"))}
    tools = asked.get("tools")
    if tools:
        request["tools"] = [inert(tool) for tool in tools]
    form = asked.get("response_model")
    if form is not None:
        request["response_model"] = inert(form)
    for name, value in asked.items():
        if name not in _ORDER and value is not None:
            request[name] = inert(value)
    settings = settings_of(llm)
    if settings:
        request["settings"] = settings
    key = dict(request)
    agent = getattr(asked.get("from_agent"), "role", None)
    if agent:
        request["agent"] = str(agent)
    return Question(name_of(llm), request, key, _effect(asked.get("available_functions")))


def messages_of(messages: Any) -> Value:
    """Messages as data, in which the ids of tool calls, which a provider draws, are numbered in the order of their
    appearance."""
    if messages is None or isinstance(messages, str):
        return messages
    names: dict[str, Value] = {}

    def named(id: Any) -> Value:
        return names.setdefault(str(id), f"call-{len(names) + 1}")

    found: list[Value] = []
    for message in messages:
        files = message.get("files")
        data: Any = inert({name: value for name, value in message.items() if name not in _NO_PART})
        if isinstance(files, Mapping):
            data["files"] = {str(name): given.content(each) for name, each in files.items()}
        for each in data.get("tool_calls") or ():
            if isinstance(each, dict) and each.get("id"):
                each["id"] = named(each["id"])
        if data.get("tool_call_id"):
            data["tool_call_id"] = named(data["tool_call_id"])
        found.append(data)
    return found


_NO_PART = frozenset({"cache_breakpoint", "raw_tool_call_parts"})  # a mark for a cache; the same calls once more


def settings_of(llm: Any) -> dict[str, Value]:
    """What a model is set to, without what is not set."""
    found: dict[str, Value] = {}
    for name in _SET:
        value = getattr(llm, name, None)
        if name == "stream":
            value = bool(_effective(llm, "_effective_stream", value)) or None
        if value is not None and value not in ({}, []):
            found[name] = inert(value)
    stop = getattr(llm, "stop_sequences", None)
    if stop:
        found["stop"] = inert(stop)
    return found


def _effective(llm: Any, method: str, value: Any) -> Any:
    asking = getattr(llm, method, None)
    return asking() if asking is not None else value


def name_of(llm: Any) -> str:
    """A model's name; of one that has none, its class."""
    name = getattr(llm, "model", None)
    return name if isinstance(name, str) and name else type(llm).__name__


def _effect(functions: Any) -> Declared | None:
    """A model that is given functions runs those that it chooses. CrewAI's own, which only take an answer apart, do
    nothing."""
    if not functions:
        return None
    return None if all(map(_takes_apart, functions.values())) else _RUNS_TOOLS


def _takes_apart(function: Any) -> bool:
    return inspect.isfunction(function) and function.__module__ == reasoning_handler.__name__


def _arguments(plain: Any, llm: Any, args: Sequence[Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call, by their names."""
    names = _names(plain)
    found = dict(zip(names, args, strict=False))
    found.update(options)
    return found


@lru_cache(maxsize=256)
def _names(plain: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a method's parameters that can be given by place."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(inspect.unwrap(plain)).parameters
    return tuple(name for name, each in parameters.items() if each.kind in kinds)[1:]


# What is answered.


def _kept(place: Place, result: Any, heard: Heard, llm: Any, before: Mapping[str, Any]) -> Value:
    try:
        carried: dict[str, Value] = {
            name: snapshot.to_value(value) for name, value in _carried(llm).items() if value is not before[name]
        }
        return {**outcome_of(result), **heard.outcome(result), **({"carried": carried} if carried else {})}
    except Exception as error:
        # The program has its answer; only the recording is the poorer, and says so.
        place.fault("a model's answer", error)
        return answers.unstorable(error)


def _carried(llm: Any) -> dict[str, Any]:
    return {name: getattr(llm, name, None) for name in _CARRIED}


def outcome_of(result: Any) -> dict[str, Value]:
    """What a model's caller got, as data."""
    if type(result) is str:
        return {"text": result}
    if isinstance(result, BaseModel):
        return {"object": inert(result.model_dump(mode="json")), "class": shapes.name_of(type(result))}
    if isinstance(result, list) and result and all(map(_is_tool_call, result)):
        return _tool_calls(result)
    return {"value": snapshot.to_value(result)}


def _is_tool_call(item: Any) -> bool:
    return isinstance(item, (dict, BaseModel))


def _tool_calls(calls: Sequence[Any]) -> dict[str, Value]:
    kinds = {type(call) for call in calls}
    found: dict[str, Value] = {
        "tool_calls": [
            call.model_dump(mode="json", exclude_unset=True) if isinstance(call, BaseModel) else snapshot.to_value(call)
            for call in calls
        ]
    }
    if len(kinds) > 1:
        found["class"] = [_class_of(call) for call in calls]
    elif (named := _class_of(calls[0])) is not None:
        found["class"] = named
    return found


def _class_of(call: Any) -> Value:
    return shapes.name_of(type(call)) if isinstance(call, BaseModel) else None


def result_of(llm: Any, asked: Mapping[str, Any], outcome: Value) -> Any:
    """What a model's caller gets, of what was recorded or what somebody wrote in its place. Raises TypeError or
    ValueError for what is no answer."""
    if not isinstance(outcome, dict):
        raise TypeError('a model\'s answer is a text, or an object with its "text", "tool_calls" or "object"')
    if "text" in outcome:
        if not isinstance(outcome["text"], str):
            raise TypeError(f'the "text" of an answer is a text, not {outcome["text"]!r}')
        return outcome["text"]
    if "tool_calls" in outcome:
        return _calls_of(outcome["tool_calls"], outcome.get("class"))
    if "object" in outcome:
        return _object_of(llm, asked, outcome)
    if "value" in outcome:
        return snapshot.from_value(outcome["value"])
    raise TypeError(f"an answer has a text, tool_calls or an object, not {', '.join(outcome) or 'nothing'}")


def _calls_of(calls: Value, kinds: Value) -> list[Any]:
    if not isinstance(calls, list):
        raise TypeError('the "tool_calls" of an answer are a list')
    every = kinds if isinstance(kinds, list) else [kinds] * len(calls)
    return [
        snapshot.from_value(call) if kind is None else _model(shapes.find(kind), call)
        for call, kind in zip(calls, every, strict=True)
    ]


def _object_of(llm: Any, asked: Mapping[str, Any], outcome: Mapping[str, Value]) -> Any:
    """An object of the class that is asked for here, so that one which the program makes anew each time will do."""
    for wanted in (asked.get("response_model"), asked.get("response_format"), getattr(llm, "response_format", None)):
        if isinstance(wanted, type) and issubclass(wanted, BaseModel):
            return _model(wanted, outcome["object"])
    return _model(shapes.find(outcome.get("class")), outcome["object"])


def _model(cls: Any, value: Value) -> Any:
    return cls.model_validate(value)


# What asks a provider beside `call`.


def _instructing(plain: Any) -> Any:
    """`InternalInstructor.to_pydantic`: it has a client of its own, which asks the provider itself."""

    @wraps(plain)
    def to_pydantic(self: Any) -> Any:
        place = _outermost()
        if place is None:
            return plain(self)
        request: dict[str, Value] = {"messages": [{"role": "user", "content": inert(self.content)}]}
        request["response_model"] = inert(self.model)
        name = self.llm if isinstance(self.llm, str) else name_of(self.llm)
        leaf = Leaf(outcome_of, lambda value: result_of(self.llm, {"response_model": self.model}, value))
        return asking.outside(place, MODEL, lambda: Question(name, request, request), lambda: plain(self), leaf)

    return to_pydantic


def _counting(plain: Any) -> Any:
    """`get_input_tokens_count` of a provider's model, which asks the provider how many tokens a request would be."""

    @wraps(plain)
    def get_input_tokens_count(self: Any, *args: Any, **options: Any) -> Any:
        place = _outermost()
        if place is None or not _asks_provider(self):
            return plain(self, *args, **options)
        asked = _arguments(plain, self, args, options)

        def make() -> Question:
            request: dict[str, Value] = {"messages": messages_of(asked.get("messages"))}
            for name in ("tools", "response_model"):
                if asked.get(name):
                    request[name] = inert(asked[name])
            return Question(f"{name_of(self)}.count_tokens", request, request, _COUNTS)

        return asking.outside(place, MODEL, make, lambda: plain(self, *args, **options), Leaf(int, _number))

    return get_input_tokens_count


def _number(value: Value) -> int:
    if not isinstance(value, int):
        raise TypeError(f"a number of tokens is a number, not {value!r}")
    return value


def _asks_provider(llm: Any) -> bool:
    """Whether a model's tokens are counted by its provider. LiteLLM, Azure's and Snowflake's are counted here."""
    defining = next(cls for cls in type(llm).__mro__ if "get_input_tokens_count" in vars(cls))
    if defining is BaseLLM or defining.__module__ in _COUNT_HERE:
        return False
    compatible = getattr(llm, "_on_compatible_server", None)
    return not (compatible is not None and compatible())


_COUNT_HERE = frozenset({
    "crewai.llm", "crewai.llms.providers.azure.completion", "crewai.llms.providers.snowflake.completion",
})  # fmt: skip
