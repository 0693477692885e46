"""Chat models: each time that a provider is asked is an effect.

LangChain's own part of a call stays what it is, with and without us, recorded and served: callbacks, tokens, ids,
usage, caches and limits. Only what it gets from the provider's class (`_generate`, `_stream`, …) is recorded, or
served. For that, its methods run on a stand-in for the model, which differs from it by who answers these; the model
itself is what they then ask. A copy is all that takes, and nothing about the model or its class changes.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.outputs.chat_generation import merge_chat_generation_chunks
from langchain_core.runnables.config import ensure_config
from langchain_core.utils.uuid import uuid7

from lockstep.errors import Code, LockstepError
from lockstep.log.model import Status, Value
from lockstep.session import snapshot
from lockstep.session.call import Piece
from lockstep_langgraph import answers, asking, cached, calls, tokens
from lockstep_langgraph.calls import Running

KIND = "model"

# What a subclass has of its own: each goes to the provider.
_HOOKS = ("_generate", "_agenerate", "_stream", "_astream", "_stream_chat_model_events", "_astream_chat_model_events")
_CHUNK, _EVENT = "chunk", "event"
_MOST_CLASSES = 512  # of models that something is remembered of


def generating(plain: Any) -> Any:
    """Wraps `_generate_with_cache`."""

    @functools.wraps(plain)
    def _generate_with_cache(self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> Any:
        if not calls.on(KIND):
            return plain(self, messages, stop=stop, run_manager=run_manager, **kwargs)
        stand_in = _stand_in(self, _id(run_manager), (messages, stop, kwargs))
        return plain(stand_in, messages, stop=stop, run_manager=run_manager, **kwargs)

    return _generate_with_cache


def agenerating(plain: Any) -> Any:
    """Wraps `_agenerate_with_cache`."""

    @functools.wraps(plain)
    async def _agenerate_with_cache(
        self: Any, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Any:
        if not calls.on(KIND):
            return await plain(self, messages, stop=stop, run_manager=run_manager, **kwargs)
        stand_in = _stand_in(self, _id(run_manager), (messages, stop, kwargs))
        return await plain(stand_in, messages, stop=stop, run_manager=run_manager, **kwargs)

    return _agenerate_with_cache


def streaming(plain: Any) -> Any:
    """Wraps `stream`, which a node that streams by itself calls."""

    @functools.wraps(plain)
    def stream(self: Any, input: Any, config: Any = None, **kwargs: Any) -> Iterator[Any]:
        yield from plain(*_of_run(self, input, config), **kwargs)

    return stream


def astreaming(plain: Any) -> Any:
    """Wraps `astream`."""

    @functools.wraps(plain)
    async def astream(self: Any, input: Any, config: Any = None, **kwargs: Any) -> AsyncIterator[Any]:
        inner = plain(*_of_run(self, input, config), **kwargs)
        try:
            async for chunk in inner:
                yield chunk
        finally:
            await inner.aclose()

    return astream


def streaming_events(plain: Any) -> Any:
    """Wraps `_chat_model_stream_v3` and `_achat_model_stream_v3`: they give an object that streams."""

    @functools.wraps(plain)
    def stream_v3(self: Any, input: Any, config: Any = None, **kwargs: Any) -> Any:
        return plain(*_of_run(self, input, config), **kwargs)

    return stream_v3


def _id(run_manager: Any) -> str:
    return f"lc_run--{run_manager.run_id}" if run_manager is not None else ""


def _of_run(model: Any, input: Any, config: Any) -> tuple[Any, Any, Any]:
    """Who is to run. The run gets its id here, as LangChain would draw it, since its message is called by that."""
    if not calls.on(KIND):
        return model, input, config
    config = ensure_config(config)
    if config.get("run_id") is None:
        config["run_id"] = uuid7()
    _ = model._serialized  # kept by the model: a stand-in's would be made anew each time
    return _stand_in(model, f"lc_run--{config['run_id']}"), input, config


def _stand_in(model: Any, message_id: str, question: tuple[Any, Any, dict[str, Any]] | None = None) -> Any:
    cls: Any = type(model)
    provider = _Provider(model, message_id, question)
    found = cls.__new__(cls)
    hooks = {name: getattr(provider, name) for name in _HOOKS if getattr(cls, name, None) is not None}
    # Only what goes to the provider is limited, and waits there.
    fields = {**model.__dict__, **hooks, "rate_limiter": None}
    if question is not None and (cache := cached.of(model, provider)) is not None:
        fields["cache"] = cache
    object.__setattr__(found, "__dict__", fields)
    for name in ("__pydantic_extra__", "__pydantic_fields_set__", "__pydantic_private__"):
        object.__setattr__(found, name, getattr(model, name, None))
    return found


class _Provider:
    """The provider of a model, for one call of LangChain's: recorded, or served.

    message_id   what LangChain calls a message that the provider gives without an id
    question     what it will be asked, where a cache may answer before
    opened       the call, if a cache has been asked already; `served`: from the record
    """

    def __init__(self, model: Any, message_id: str, question: tuple[Any, Any, dict[str, Any]] | None) -> None:
        self.opened: Any = None
        self.served = False
        self._question = question
        self._model = model
        self._class: Any = type(model)
        self._message_id = message_id

    def open(self) -> Any:
        """Asks before the provider is: a cache's look-up."""
        assert self._question is not None
        self.opened = self._open(*self._question)
        return self.opened

    def _open(self, asked: Any, stop: Any, kwargs: dict[str, Any]) -> Any:
        if self.opened is not None:
            return self.opened
        call = calls.opened(KIND)
        if call is None:
            return None
        try:
            request = asking.request(self._model, asked, stop, kwargs)
            name, key = asking.name(self._model, stop, kwargs), answers.key(request)
        except Exception as error:
            if not call.live:
                raise
            calls.fault("a model call", error)
            return None
        call.ask(name, request, key)
        return call

    # The provider's methods. Of a call that is not served, the real ones.

    def _generate(self, asked: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        call = self._open(asked, stop, kwargs)
        if call is None:
            self._limit()
            return self._real("_generate", run_manager)(asked, stop=stop, **kwargs)  # type: ignore[no-any-return]
        if call.held:
            call.ready()
        if not call.live:
            self.served = True
            return self._whole(call, list(calls.taken(call)), run_manager)
        try:
            with Running(call):
                self._limit()
                told = tokens.tells(run_manager, call)
                result: ChatResult = self._real("_generate", told)(asked, stop=stop, **kwargs)
        except BaseException as error:
            calls.failed(call, error)
            raise
        self.end(call, result)
        return result

    async def _agenerate(self, asked: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        call = self._open(asked, stop, kwargs)
        if call is None:
            await self._alimit()
            return await self._real("_agenerate", run_manager)(asked, stop=stop, **kwargs)  # type: ignore[no-any-return]
        if call.held:
            await call.aready()
        if not call.live:
            self.served = True
            pieces = [piece async for piece in calls.ataken(call)]
            for piece in pieces:
                await tokens.atell(piece, run_manager)
            return self._whole(call, pieces, None)
        try:
            with Running(call):
                await self._alimit()
                told = tokens.tells(run_manager, call)
                result: ChatResult = await self._real("_agenerate", told)(asked, stop=stop, **kwargs)
        except BaseException as error:
            calls.failed(call, error)
            raise
        self.end(call, result)
        return result

    def _stream(
        self, asked: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[ChatGenerationChunk]:  # fmt: skip
        return self._streamed("_stream", _CHUNK, asked, stop, run_manager, kwargs)

    def _stream_chat_model_events(
        self, asked: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> Iterator[Any]:  # fmt: skip
        return self._streamed("_stream_chat_model_events", _EVENT, asked, stop, run_manager, kwargs)

    def _astream(
        self, asked: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:  # fmt: skip
        return self._astreamed("_astream", _CHUNK, asked, stop, run_manager, kwargs)

    def _astream_chat_model_events(
        self, asked: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[Any]:  # fmt: skip
        return self._astreamed("_astream_chat_model_events", _EVENT, asked, stop, run_manager, kwargs)

    def _streamed(
        self, name: str, what: str, asked: Any, stop: Any, run_manager: Any, kwargs: dict[str, Any]
    ) -> Iterator[Any]:  # fmt: skip
        call = self._open(asked, stop, kwargs)
        if call is None:
            self._limit()
            yield from self._real(name, run_manager)(asked, stop=stop, **kwargs)
            return
        if call.held:
            call.ready()
        if not call.live:
            given, self.served = False, True
            try:
                for piece in calls.taken(call):
                    tokens.tell(piece, run_manager)
                    for item in self._items(call, piece, what, given):
                        given = True
                        yield item
            finally:
                call.end(Status.CLOSED)
            return
        with Running(call):
            self._limit()
            inner = self._real(name, tokens.tells(run_manager, call))(asked, stop=stop, **kwargs)
        got: list[Any] = []
        try:
            while True:
                try:
                    with Running(call):
                        item = next(inner)
                except StopIteration:
                    break
                except BaseException as error:
                    calls.failed(call, error)
                    raise
                self._part(call, what, item)
                got.append(item)
                yield item
            self.end(call, _merged(got) if what == _CHUNK else _assembled(got))
        finally:
            call.end(Status.CLOSED)
            with Running(call):
                inner.close()

    async def _astreamed(
        self, name: str, what: str, asked: Any, stop: Any, run_manager: Any, kwargs: dict[str, Any]
    ) -> AsyncIterator[Any]:  # fmt: skip
        call = self._open(asked, stop, kwargs)
        if call is None:
            await self._alimit()
            async for item in self._real(name, run_manager)(asked, stop=stop, **kwargs):
                yield item
            return
        if call.held:
            await call.aready()
        if not call.live:
            given, self.served = False, True
            try:
                async for piece in calls.ataken(call):
                    await tokens.atell(piece, run_manager)
                    for item in self._items(call, piece, what, given):
                        given = True
                        yield item
            finally:
                call.end(Status.CLOSED)
            return
        with Running(call):
            await self._alimit()
            inner = self._real(name, tokens.tells(run_manager, call))(asked, stop=stop, **kwargs)
        got: list[Any] = []
        try:
            while True:
                try:
                    with Running(call):
                        item = await anext(inner)
                except StopAsyncIteration:
                    break
                except BaseException as error:
                    calls.failed(call, error)
                    raise
                self._part(call, what, item)
                got.append(item)
                yield item
            self.end(call, _merged(got) if what == _CHUNK else _assembled(got))
        finally:
            call.end(Status.CLOSED)
            with Running(call):
                await inner.aclose()

    def _real(self, name: str, run_manager: Any) -> Callable[..., Any]:
        """The provider's own method, with the manager if it wants one."""
        method = getattr(self._model, name)
        return functools.partial(method, run_manager=run_manager) if _managed(self._class, name) else method

    def _limit(self) -> None:
        if self._model.rate_limiter:
            self._model.rate_limiter.acquire(blocking=True)

    async def _alimit(self) -> None:
        if self._model.rate_limiter:
            await self._model.rate_limiter.aacquire(blocking=True)

    # Recording.

    def _part(self, call: Any, what: str, item: Any) -> None:
        try:
            if what == _CHUNK:
                if item.message.id is None and self._message_id:
                    item.message.id = self._message_id
                call.part({_CHUNK: answers.of_chunk(item)})
            else:
                call.part({_EVENT: snapshot.to_value(item)})
        except Exception as error:
            call.session.fault("a piece of a model's answer", error)
            call.part({"$": "unstorable", "why": str(error)})

    def end(self, call: Any, result: ChatResult | None) -> None:
        value: Value = None
        if result is not None:
            try:
                for number, generation in enumerate(result.generations):
                    if generation.message.id is None and self._message_id:
                        generation.message.id = f"{self._message_id}-{number}"
                value = answers.of_result(result)
            except Exception as error:
                call.session.fault("a model's answer", error)
                value = {"$": "unstorable", "why": str(error)}
        call.end(Status.OK, value)

    # Serving.

    def whole(self, call: Any, end: Piece) -> ChatResult:
        """What a whole answer is."""
        return _made(call, answers.result, end.value)  # type: ignore[no-any-return]

    def _whole(self, call: Any, pieces: list[Piece], run_manager: Any) -> ChatResult:
        for piece in pieces:
            tokens.tell(piece, run_manager)
        end = pieces[-1].value
        if end is not None:
            return _made(call, answers.result, end)  # type: ignore[no-any-return]
        # It was streamed, and whoever recorded it could not make one message of it.
        chunks = (_made(call, answers.chunk, body[_CHUNK]) for piece in pieces if _CHUNK in (body := _body(piece)))
        return generate_from_stream(iter(chunks))

    def _items(self, call: Any, piece: Piece, what: str, given: bool) -> Iterator[Any]:
        """What a piece is to who streams. The end is one only if nothing was streamed before: an answer that came
        whole, or that somebody edited."""
        body = _body(piece)
        if piece.status is None:
            if body.get("$") == "unstorable":
                _unservable(call, body)
            if what in body:
                make: Callable[[Value], Any] = answers.chunk if what == _CHUNK else snapshot.from_value
                yield _made(call, make, body[what])
        elif not given and piece.value is not None:
            whole = _made(call, answers.whole_chunk, piece.value)
            if what == _CHUNK:
                yield whole
            else:
                from langchain_core.language_models._compat_bridge import chunks_to_events

                yield from chunks_to_events(iter([whole]), message_id=whole.message.id)


def _body(piece: Piece) -> dict[str, Any]:
    return piece.value if isinstance(piece.value, dict) else {}


def _made(call: Any, make: Callable[[Value], Any], value: Value) -> Any:
    if isinstance(value, dict) and value.get("$") == "unstorable":
        _unservable(call, value)
    try:
        return make(value)
    except LockstepError as error:
        call.session.diverge(Code.UNSERVABLE, error.message, call=call)


def _unservable(call: Any, value: dict[str, Any]) -> None:
    call.session.diverge(Code.UNSERVABLE, f"this answer could not be recorded: {value.get('why')!s}", call=call)


def _merged(chunks: list[ChatGenerationChunk]) -> ChatResult | None:
    """One message of all that was streamed, to be shown and edited."""
    try:
        whole = merge_chat_generation_chunks(chunks)
        return generate_from_stream(iter([whole])) if whole is not None else None
    except (TypeError, ValueError):
        return None  # pieces that cannot be added up: LangChain says so to its caller, if it has to


def _assembled(events: list[Any]) -> ChatResult | None:
    """The same of events."""
    from langchain_core.language_models.chat_model_stream import ChatModelStream

    try:
        stream = ChatModelStream()
        for event in events:
            stream.dispatch(event)
        said = stream.output_message
    except (KeyError, TypeError, ValueError):
        return None
    return ChatResult(generations=[ChatGeneration(message=said)]) if said is not None else None


@functools.lru_cache(_MOST_CLASSES)
def _managed(cls: Any, name: str) -> bool:
    return "run_manager" in inspect.signature(getattr(cls, name)).parameters
