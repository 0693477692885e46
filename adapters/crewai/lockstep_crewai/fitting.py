"""Whether the installed CrewAI has what the seams are put into. Some of these places are private: they may move, and
what is put into a place that is not there does nothing, so that what goes through it would be recorded by nobody.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import version
from itertools import chain
from typing import Any, NoReturn

from lockstep.errors import AdapterError, Code
from lockstep_crewai.adapter import adapter

_EXECUTES = ("agent", "context", "tools")

# By owner, as "module:name" or "module", of which there may be several, divided by "|": what the first one that is
# there has to have, and with which parameters.
PLACES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "crewai.crew:Crew": {
        "kickoff": ("inputs", "input_files"), "kickoff_async": ("inputs",), "akickoff": ("inputs",), "copy": (),
        "kickoff_for_each": ("inputs",), "kickoff_for_each_async": ("inputs",), "akickoff_for_each": ("inputs",),
        "replay": ("task_id", "inputs"), "calculate_usage_metrics": (),
    },
    "crewai.agent.core:Agent": {"kickoff": ("messages",), "kickoff_async": ("messages",), "akickoff": ("messages",)},
    "crewai.lite_agent:LiteAgent": {"kickoff": ("messages",), "kickoff_async": ("messages",)},
    "crewai.flow.runtime:Flow": {
        "kickoff": ("inputs",), "kickoff_async": ("inputs",), "akickoff": ("inputs",), "resume": ("feedback",),
        "resume_async": ("feedback",), "_execute_method": ("method_name", "method"),
        "ask": ("message",), "_resolve_input_provider": (), "_resolve_feedback_provider": (),
        "_request_human_feedback": (),
    },
    "crewai.task:Task": {
        "execute_sync": _EXECUTES, "execute_async": _EXECUTES, "aexecute_sync": _EXECUTES,
        "_execute_task_async": ("future",), "_save_file": (),
    },
    "crewai.llms.base_llm:BaseLLM": {
        "call": ("messages", "tools", "available_functions", "response_model"), "acall": ("messages",),
        "_track_token_usage_internal": (), "_invoke_before_llm_call_hooks": (), "_invoke_after_llm_call_hooks": (),
    },
    "crewai.tools.base_tool:BaseTool": {"run": (), "arun": ()},
    "crewai.tools.structured_tool:CrewStructuredTool": {"invoke": (), "ainvoke": ()},
    "crewai.agents.agent_executor:AgentExecutor|crewai.experimental.agent_executor:AgentExecutor": {
        "_should_parallelize_native_tool_calls": (), "_execute_single_native_tool_call": (),
        "_handle_human_feedback": (), "_ahandle_human_feedback": (), "invoke": ("inputs",),
        "invoke_async": ("inputs",),
    },
    "crewai.agents.step_executor:StepExecutor": {"execute": ("todo",)},
    "crewai.mcp.tool_resolver:MCPToolResolver": {
        "_resolve_native": (), "_get_mcp_tool_schemas": (), "_fetch_amp_mcp_configs": (),
        "_json_schema_to_pydantic": (),
    },
    "crewai.mcp.client:MCPClient": {"connect": (), "disconnect": (), "list_tools": ()},
    "crewai.core.providers.human_input": {"_async_readline": ()},
    "crewai.core.providers.human_input:SyncHumanInputProvider": {"_prompt_input": (), "_prompt_input_async": ()},
    "crewai.utilities.internal_instructor:InternalInstructor": {"to_pydantic": ()},
    "crewai.utilities.rpm_controller:RPMController": {"_wait_for_next_minute": ()},
    "crewai.utilities.task_output_storage_handler:TaskOutputStorageHandler": {
        "load": (), "update": (), "add": (), "reset": (),
    },
    "crewai.flow.persistence.base:FlowPersistence": {
        "load_state": ("flow_uuid",), "save_state": ("flow_uuid", "method_name", "state_data"),
        "save_pending_feedback": ("context",), "clear_pending_feedback": ("flow_uuid",),
    },
    "crewai.state.provider.core:BaseProvider": {"checkpoint": ("data", "location")},
    "crewai.state.checkpoint_listener": {"_should_checkpoint": ("source", "event")},
    "crewai.events.event_bus:CrewAIEventsBus": {"emit": ("source", "event")},
    "crewai.hooks.dispatch": {
        "scoped_hooks": ("hooks",), "get_scoped_hooks": ("point",),
        "_emit_telemetry": ("point", "outcome", "hook_count"),
    },
    "crewai.hooks.contexts:StepContext": {"kind": (), "step_name": (), "payload": ()},
}  # fmt: skip


# Likewise, of what there is since a version: one that is older does nothing of the kind.
LATER: Mapping[str, Mapping[str, Mapping[str, tuple[str, ...]]]] = {
    "1.15.29": {
        "crewai.llms.base_llm:BaseLLM": {"get_input_tokens_count": ()},
        "crewai.utilities.tool_result_artifacts": {"token_urlsafe": ()},
    }
}


@cache
def probe() -> None:
    """Raises AdapterError LS410 where a place is missing, or takes something else."""
    installed = _number(version(adapter.distribution))
    later = [places.items() for since, places in LATER.items() if _number(since) <= installed]
    for owner, places in (*PLACES.items(), *chain(*later)):
        found = _owner(owner)
        for name, parameters in places.items():
            place = inspect.getattr_static(found, name, None)
            if place is None and name not in getattr(found, "__dataclass_fields__", {}):
                unfit(f"{found.__name__} has no {name!r}")
            missing = [each for each in parameters if each not in _parameters(place)]
            if missing:
                unfit(f"{found.__name__}.{name} takes no {missing[0]!r}")


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


def _owner(named: str) -> Any:
    first, _, others = named.partition("|")
    module, _, name = first.partition(":")
    try:
        found = import_module(module)
    except ImportError as error:
        return _owner(others) if others else unfit(f"there is no {module} ({error})")
    owner = getattr(found, name, None) if name else found
    return unfit(f"{module} has no {name!r}") if owner is None else owner


def _parameters(found: Any) -> Mapping[str, Any]:
    try:
        return inspect.signature(found).parameters
    except (TypeError, ValueError):
        return {}


def unfit(what: str) -> NoReturn:
    """Raises AdapterError LS410. `what` this CrewAI lacks."""
    tested = adapter.tested
    raise AdapterError(
        Code.UNFIT_FRAMEWORK,
        f"{what} in this environment ({adapter.distribution} {version(adapter.distribution)}), so a crew cannot be"
        f" recorded. Lockstep is tested with {tested.oldest} to {tested.newest}: install one of these, or a newer"
        " Lockstep",
    )
