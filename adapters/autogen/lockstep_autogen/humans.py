"""Humans: what a `UserProxyAgent` asks a person, and what that person says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any

from lockstep.log.model import Status
from lockstep_autogen import calls
from lockstep_autogen.calls import Running
from lockstep_autogen.layout import HUMAN
from lockstep_autogen.places import Place, Question

NAME = "input"


def asking(plain: Callable[..., Any], place: Place) -> Callable[..., Any]:
    """In the place of `UserProxyAgent.input_func`, whatever that is: a coroutine function. One that is none runs on a
    thread, as AutoGen would have it."""
    is_async = iscoroutinefunction(plain)

    async def really(prompt: str, token: Any) -> Any:
        if is_async:
            return await plain(prompt, token)
        return await asyncio.get_running_loop().run_in_executor(None, plain, prompt)

    async def ask(prompt: str, cancellation_token: Any = None) -> Any:
        call = place.asked(HUMAN, lambda: Question(NAME, {"prompt": str(prompt)}, {"prompt": str(prompt)}))
        if call is None:
            return await really(prompt, cancellation_token)
        if call.held:
            await call.aready()
        if not call.live:
            return calls.made(call, str, await calls.answer(call))
        try:
            with Running(call):
                said = await really(prompt, cancellation_token)
        except BaseException as error:
            calls.failed(call, error)
            raise
        call.end(Status.OK, str(said))
        return said

    ask.lockstep_plain = plain  # type: ignore[attr-defined]
    return ask
