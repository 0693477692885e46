"""Tokens that a provider tells LangChain of by itself, beside what it gives: recorded, and told again where served."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables.config import run_in_executor

from lockstep.log.model import Value
from lockstep.session import snapshot
from lockstep.session.asides import aside, told
from lockstep.session.call import Call, Piece
from lockstep.session.lanes import INSIDE, leave
from lockstep_langgraph import answers
from lockstep_langgraph.calls import Program

_TOKEN, _MORE, _THREAD = "token", "more", "thread"


class _Telling(CallbackManagerForLLMRun):
    """A run manager that also records what a provider tells it. The callbacks are the program's."""

    call: Call
    threaded = False

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, **kwargs: Any) -> None:
        _token(self.call, token, chunk, kwargs, threaded=self.threaded)
        with Program(self.call):
            super().on_llm_new_token(token, chunk=chunk, **kwargs)


class _ATelling(AsyncCallbackManagerForLLMRun):
    call: Call

    def get_sync(self) -> CallbackManagerForLLMRun:
        found = _told_to(_Telling, super().get_sync(), self.call)
        found.threaded = True  # a provider without async methods, on a thread of its own
        return found  # type: ignore[no-any-return]

    async def on_llm_new_token(self, token: Any, *, chunk: Any = None, **kwargs: Any) -> None:
        _token(self.call, token, chunk, kwargs, threaded=False)
        with Program(self.call):
            await super().on_llm_new_token(token, chunk=chunk, **kwargs)


def tells(run_manager: Any, call: Call) -> Any:
    """The manager that a provider is given while its call is recorded."""
    if type(run_manager) is CallbackManagerForLLMRun:
        return _told_to(_Telling, run_manager, call)
    if type(run_manager) is AsyncCallbackManagerForLLMRun:
        return _told_to(_ATelling, run_manager, call)
    return run_manager


def _told_to(cls: Any, run_manager: Any, call: Call) -> Any:
    found = cls.__new__(cls)
    found.__dict__.update(run_manager.__dict__)
    found.call = call
    return found


def _token(call: Any, token: Any, chunk: Any, kwargs: dict[str, Any], *, threaded: bool) -> None:
    try:
        body: dict[str, Value] = {"text": snapshot.to_value(token)}
        if isinstance(chunk, ChatGenerationChunk):
            body["of"] = answers.of_chunk(chunk)
        if threaded:
            body[_THREAD] = True
        if kwargs:
            body[_MORE] = {name: snapshot.to_value(value) for name, value in kwargs.items()}
        call.part(aside(_TOKEN, body))
    except Exception as error:
        call.session.fault("a token of a model's answer", error)


def tell(piece: Piece, run_manager: Any) -> None:
    """Tells again what the recorded provider told, if this piece is that."""
    if run_manager is not None and isinstance(body := told(piece.value, _TOKEN), dict):
        token, chunk, more = _told(body)
        run_manager.on_llm_new_token(token, chunk=chunk, **more)


async def atell(piece: Piece, run_manager: Any) -> None:
    """The same for tasks."""
    if run_manager is not None and isinstance(body := told(piece.value, _TOKEN), dict):
        token, chunk, more = _told(body)
        if _THREAD not in body:
            await run_manager.on_llm_new_token(token, chunk=chunk, **more)
            return
        tell = functools.partial(run_manager.get_sync().on_llm_new_token, token, chunk=chunk, **more)
        await _in_a_thread(tell)


async def _in_a_thread(tell: Callable[[], None]) -> None:
    """Calls the program back on a thread that is none of its own, as the provider did."""
    token = INSIDE.set(True)

    def told() -> None:
        INSIDE.set(None)
        tell()

    try:
        await run_in_executor(None, told)
    finally:
        leave(token)


def _told(body: dict[str, Any]) -> tuple[Any, ChatGenerationChunk | None, dict[str, Any]]:
    chunk = answers.chunk(body["of"]) if "of" in body else None
    more = {name: snapshot.from_value(value) for name, value in body.get(_MORE, {}).items()}
    return snapshot.from_value(body["text"]), chunk, more
