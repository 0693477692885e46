"""Humans: what an agent asks a person, and what that person says: a `UserProxyAgent` for words, a `CodeExecutorAgent`
whether code may run. Who answers need not be a person: the program gave a function.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from inspect import iscoroutinefunction
from typing import Any

from lockstep.log.model import Value
from lockstep.session.native.answers import Question
from lockstep_autogen.canonical import inert
from lockstep_autogen.layout import HUMAN
from lockstep_autogen.places import Place
from lockstep_autogen.tools import outside

NAME, APPROVAL = "input", "approval"


def asking(plain: Callable[..., Any], place: Place) -> Callable[..., Any]:
    """In the place of `UserProxyAgent.input_func`, whatever that is: a coroutine function. One that is none runs on a
    thread, as AutoGen would have it."""
    is_async = iscoroutinefunction(plain)

    async def ask(prompt: str, cancellation_token: Any = None) -> Any:
        async def really() -> Any:
            if is_async:
                return await plain(prompt, cancellation_token)
            return await asyncio.get_running_loop().run_in_executor(None, plain, prompt)

        asked = {"prompt": str(prompt)}
        return await outside(place, HUMAN, Question(NAME, {**asked}, {**asked}), really, str, str)

    ask.lockstep_plain = plain  # type: ignore[attr-defined]
    return ask


def approving(plain: Callable[..., Any], place: Place) -> Callable[..., Any]:
    """The same in the place of a `CodeExecutorAgent`'s `approval_func`."""
    is_async = iscoroutinefunction(plain)

    async def approve(request: Any) -> Any:
        async def really() -> Any:
            return await plain(request) if is_async else plain(request)

        asked = {"code": str(request.code)}
        return await outside(place, HUMAN, Question(APPROVAL, {**asked}, {**asked}), really, inert, _approval)

    approve.lockstep_plain = plain  # type: ignore[attr-defined]
    return approve


def _approval(value: Value) -> Any:
    """What was edited may be a plain yes or no."""
    from autogen_agentchat.agents._code_executor_agent import ApprovalResponse

    said = {"approved": value, "reason": ""} if isinstance(value, bool) else value
    return ApprovalResponse.model_validate(said)
