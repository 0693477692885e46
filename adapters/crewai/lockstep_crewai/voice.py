"""What a call that is served says again, as it was heard to say while it ran (`lockstep_crewai.events`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crewai.events.event_bus import crewai_event_bus
from crewai.events.types import mcp_events, tool_usage_events
from crewai.events.types.llm_events import LLMCallType
from crewai.utilities.token_counter_callback import TokenCalcHandler

from lockstep.log.model import Value
from lockstep_crewai.events import AHEAD, COMPLETED, STARTED, as_inside, call_type

_TOLD = frozenset({"finish_reason", "response_id", "call_type"})
_BREAKPOINT = "cache_breakpoint"


def repeat(source: Any, value: Value, **of: Any) -> None:
    """Says again what was overheard. `of`: whose it is now."""
    if not isinstance(value, dict) or not isinstance(value.get("of"), dict):
        return
    said: Any = value
    for module in (mcp_events, tool_usage_events):
        made = getattr(module, said["event"], None)
        if made is not None:
            with as_inside():
                event = made(**said["of"], **of)
            crewai_event_bus.emit(source, event)
            return


class Voice:
    """Says for a model that is served what it was heard to say. In a call context of CrewAI's (`llm_call_context`)."""

    def __init__(self, llm: Any, asked: Mapping[str, Any], *, own: bool) -> None:
        """`asked`: the arguments of the call, by their names."""
        self._llm = llm
        self._asked = asked
        self._own = own
        self._of = {"from_task": asked.get("from_task"), "from_agent": asked.get("from_agent")}
        self._id: str | None = None
        self._arguments: dict[int, str] = {}
        self._started = self._completed = False
        self._stopped: Exception | None = None  # what a hook raised, which did not let the request go out
        self._said: str | None = None

    def begin(self) -> None:
        """It begins, where it usually says so."""
        if self._own:
            with as_inside():
                self._start()

    def part(self, value: Value) -> None:
        """One piece that was heard."""
        with as_inside():
            self._part(value)

    def _part(self, value: Value) -> None:
        if isinstance(value, str):
            self._llm._emit_stream_chunk_event(value, **self._of, response_id=self._id)
        elif isinstance(value, dict):
            said: Any = value
            self._id = said.get("response_id", self._id)
            if "of" in said:
                repeat(self._llm, value, **self._of)
            elif "chunk" in said:
                self._chunk(said)
            elif "thinking" in said:
                self._llm._emit_thinking_chunk_event(said["thinking"], **self._of, response_id=self._id)
            elif "failed" in said:
                self._llm._emit_call_failed_event(said["failed"], **self._of)
            elif "usage" in said and "event" not in said:
                self._count(said["usage"])
            elif said.get("event") == STARTED:
                self._start()
            elif said.get("event") == COMPLETED:
                self._complete(said.get("response"), said)
                self._completed = bool(said.get(AHEAD))
            elif said.get("hooks") == "before":
                self._before()
            elif said.get("hooks") == "after":
                self._said = str(said.get("said"))

    def let_through(self) -> None:
        """Raises what a hook of the program's raised, if one did not let the request go out."""
        if self._stopped is not None:
            raise self._stopped

    def over(self, result: Any, outcome: Mapping[str, Any]) -> Any:
        """It is over: what the program gets, which its hooks may have something to say to."""
        with as_inside():
            return self._over(result, outcome)

    def _over(self, result: Any, outcome: Mapping[str, Any]) -> Any:
        usage = outcome.get("usage")
        if usage:
            self._count(usage)
        if self._own and not self._completed and COMPLETED not in outcome.get("silent", ()):
            said = self._said if self._said is not None else result
            told = {"usage": outcome.get("uncounted", usage), **{k: v for k, v in outcome.items() if k in _TOLD}}
            told.setdefault("call_type", call_type(result).value)
            dumping = getattr(said, "model_dump_json", None)
            self._complete(dumping() if dumping is not None else said, told)
        if self._said is not None and isinstance(result, str):
            return self._llm._invoke_after_llm_call_hooks(self._messages(), self._said, self._of["from_agent"])
        return result

    def _start(self) -> None:
        if self._started:
            return
        self._started = True
        asked = self._asked
        self._llm._emit_call_started_event(
            messages=asked.get("messages"), tools=asked.get("tools"), callbacks=asked.get("callbacks"),
            available_functions=asked.get("available_functions"), **self._of,
        )  # fmt: skip

    def _complete(self, response: Any, told: Mapping[str, Any]) -> None:
        self._llm._emit_call_completed_event(
            response=response, call_type=LLMCallType(told.get("call_type", "llm_call")), messages=self._messages(),
            usage=told.get("usage"), finish_reason=told.get("finish_reason"), response_id=told.get("response_id"),
            **self._of,
        )  # fmt: skip

    def _chunk(self, said: Mapping[str, Any]) -> None:
        kind, tool_call = said.get("call_type"), None
        if "tool_call" in said:
            about = said["tool_call"]
            index = int(about.get("index") or 0)
            so_far = str(about.get("arguments", self._arguments.get(index, "") + said["chunk"]))
            self._arguments[index] = so_far
            function = {"name": about.get("name"), "arguments": so_far}
            tool_call = {"id": about.get("id"), "function": function, "type": "function", "index": index}
            kind = LLMCallType.TOOL_CALL.value
        self._llm._emit_stream_chunk_event(
            said["chunk"], **self._of, tool_call=tool_call, call_type=LLMCallType(kind) if kind is not None else None,
            response_id=self._id,
        )  # fmt: skip

    def _count(self, usage: Any) -> None:
        self._llm._track_token_usage_internal(usage)
        if getattr(self._llm, "is_litellm", False):  # only LiteLLM's has its callers count beside it
            for callback in self._asked.get("callbacks") or ():
                if isinstance(callback, TokenCalcHandler):
                    callback.log_success_event({}, {"usage": usage}, 0, 0)

    def _before(self) -> None:
        try:
            self._llm._invoke_before_llm_call_hooks(self._messages(), self._of["from_agent"])
        except Exception as error:
            self._stopped = error

    def _messages(self) -> list[Any]:
        found = self._asked.get("messages")
        if isinstance(found, str):
            return [{"role": "user", "content": found}]
        return [{name: value for name, value in each.items() if name != _BREAKPOINT} for each in found or ()]
