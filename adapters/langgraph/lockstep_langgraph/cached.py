"""LangChain's cache of models' answers, as a part of the calls that it answers.

What a cache knows when a run is replayed is not what it knew then: an answer that it gave is recorded as the call's,
and one that it did not know is not looked for again.
"""

from __future__ import annotations

from typing import Any

from langchain_core.caches import BaseCache
from langchain_core.globals import get_llm_cache
from langchain_core.outputs import ChatGeneration, ChatResult

from lockstep.log.model import Status
from lockstep.session.asides import aside, told
from lockstep.session.lanes import ours
from lockstep_langgraph import calls
from lockstep_langgraph.calls import Peeked, Running

_CACHED = "cached"


def of(model: Any, provider: Any) -> BaseCache | None:
    """The cache of one call of this model; None where it has none."""
    if model.cache is False:
        return None
    real = model.cache if isinstance(model.cache, BaseCache) else get_llm_cache()
    return _Cache(real, provider) if real is not None else None


class _Cache(BaseCache):
    """Stands for a cache, for one call: LangChain looks it up before it asks the provider, and tells it what that
    answered."""

    def __init__(self, real: BaseCache, provider: Any) -> None:
        self._real = real
        self._provider = provider

    def lookup(self, prompt: str, llm_string: str) -> Any:
        call = self._provider.open()
        if call is None:
            return self._real.lookup(prompt, llm_string)
        if call.held:
            call.ready()
        if not call.live:
            return self._served(call, call.take())
        with Running(call):
            found = self._real.lookup(prompt, llm_string)
        return self._known(call, found)

    async def alookup(self, prompt: str, llm_string: str) -> Any:
        call = self._provider.open()
        if call is None:
            return await self._real.alookup(prompt, llm_string)
        if call.held:
            await call.aready()
        if not call.live:
            return self._served(call, await call.atake())
        with Running(call):
            found = await self._real.alookup(prompt, llm_string)
        return self._known(call, found)

    def update(self, prompt: str, llm_string: str, return_val: Any) -> None:
        if not self._provider.served:
            ours(self._real.update)(prompt, llm_string, return_val)

    async def aupdate(self, prompt: str, llm_string: str, return_val: Any) -> None:
        if not self._provider.served:
            with calls.unseen():
                await self._real.aupdate(prompt, llm_string, return_val)

    def clear(self, **kwargs: Any) -> None:
        self._real.clear(**kwargs)

    def _known(self, call: Any, found: Any) -> Any:
        if isinstance(found, list) and all(isinstance(each, ChatGeneration) for each in found):
            call.part(aside(_CACHED, True))
            self._provider.end(call, ChatResult(generations=found))
        return found

    def _served(self, call: Any, first: Any) -> Any:
        self._provider.served = True
        if first.status is not None or told(first.value, _CACHED) is None:
            self._provider.opened = Peeked(call, first)
            return None
        end = call.take()  # it was told at once
        return self._provider.whole(call, end).generations if end.status is Status.OK else None
