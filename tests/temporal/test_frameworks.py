"""What AI frameworks' activities are called: by their types, and by what they are given."""

from __future__ import annotations

import pytest

from lockstep.log.model import Value
from lockstep_temporal import commands, drift, naming
from lockstep_temporal.commands import Command


def activity(name: str, *arguments: Value) -> Command:
    return Command(commands.ACTIVITY, name, 1, {"arguments": [*arguments]}, True, None)


@pytest.mark.parametrize(
    ("command", "kind", "name", "effect"),
    [
        (activity("invoke_model_activity", {"model_name": "gpt-4o", "input": []}), "model", "gpt-4o", "inference"),
        (activity("invoke_model_activity", {"model_name": None}), "model", "default", "inference"),
        (activity("invoke_model_activity_streaming", {"model_name": "gpt-4o"}), "model", "gpt-4o", "inference"),
        (activity("shop-stateless-call-tool-v2", {"tool_name": "get_order"}), "tool", "get_order", ""),
        (activity("shop-stateless-call-tool", "get_order", {}), "tool", "get_order", ""),
        (activity("shop-stateless-list-tools"), "activity", "shop-stateless-list-tools", "read"),
        (activity("agent__desk__model_request", {"model_id": "openai:gpt-4o"}), "model", "openai:gpt-4o", "inference"),
        (activity("agent__desk__model_request_stream", {"model_id": None}), "model", "desk", "inference"),
        (activity("agent__desk__toolset__<agent>__call_tool", {"name": "get_order"}), "tool", "get_order", ""),
        (activity("agent__desk__mcp_server__shop__call_tool", {"name": "get_order"}), "tool", "get_order", ""),
        (activity("agent__d__mcp_server__s__get_tools"), "activity", "agent__d__mcp_server__s__get_tools", "read"),
        (activity("temporalio.mcp.shop.call-tool", {"name": "get_order"}), "tool", "get_order", ""),
        (activity("temporalio.mcp.shop.list-tools", {}), "activity", "temporalio.mcp.shop.list-tools", "read"),
        (activity("shop-list-orders"), "activity", "shop-list-orders", ""),
        (activity("deepagents.invoke_tool", {"tool_name": "write_todos"}), "tool", "write_todos", ""),
        (activity("deepagents.invoke_model", {"model_name": "openai:gpt-4o"}), "model", "openai:gpt-4o", "inference"),
        (activity("invoke_model", {"model_name": "claude", "messages": []}), "model", "claude", "inference"),
        (activity("invoke_model", {"model_name": "ours"}), "activity", "invoke_model", ""),
        (activity("gemini_api_client_async_request", {"path": "models/gemini-2.5-flash:generateContent"}),
         "model", "gemini-2.5-flash", "inference"),
        (activity("gemini_api_client_async_request", {"path": "files"}), "activity",
         "gemini_api_client_async_request", ""),
        (activity("desk.look", {"args": []}), "activity", "desk.look", ""),
        (activity("invoke_model_activity_2", {"model_name": "gpt-4o"}), "activity", "invoke_model_activity_2", ""),
    ],
)  # fmt: skip
def test_a_frameworks_activity_is_the_model_or_tool_that_it_calls(
    command: Command, kind: str, name: str, effect: str
) -> None:
    found = naming.effect_of(command)
    assert (found.kind, found.name) == (kind, name)
    assert (found.declared.effect if found.declared is not None else "") == effect


def test_a_local_activity_is_named_alike() -> None:
    command = Command(
        commands.LOCAL_ACTIVITY, "invoke_model_activity", 1, {"arguments": [{"model_name": "m"}]}, True, None
    )
    assert naming.effect_of(command).name == "m"


@pytest.mark.parametrize("name", ["invoke_model_activity", "agent__desk__toolset__t__call_tool", "x-call-tool"])
@pytest.mark.parametrize("arguments", [[], [None], [7], [[]], ["\x00"], [{"name": 3, "model_name": 3}]])
def test_arguments_that_a_framework_would_not_give_raise_nothing(name: str, arguments: list[Value]) -> None:
    found = naming.effect_of(activity(name, *arguments))
    assert found.name


def test_an_activity_without_arguments_in_its_request_is_named_by_its_type() -> None:
    """A history does not say what a local activity was given."""
    command = Command(commands.LOCAL_ACTIVITY, "agent__desk__toolset__t__call_tool", 1, {}, True, None)
    assert naming.effect_of(command).name == "agent__desk__toolset__t__call_tool"


@pytest.mark.parametrize(
    ("name", "path", "who"),
    [
        ("agent__desk__model_request", "arguments[0].messages[2].parts[0].timestamp", "pydantic-ai"),
        ("agent__desk__model_request", "arguments[0].serialized_run_context.active_capability_ids[1]", "pydantic-ai"),
        ("agent__desk__toolset__t__call_tool", "arguments[0].serialized_run_context.run_id", "pydantic-ai"),
        ("agent__desk__toolset__t__call_tool", "arguments[0].tool_args.run_id", ""),
        ("agent__desk__model_request", "arguments[0].messages[2].parts[0].content.timestamp", ""),
        ("report", "arguments[0].messages[0].timestamp", ""),
        ("desk.look", "arguments[0].langgraph_config.configurable.checkpoint_map.", "temporalio-langgraph"),
        ("desk.look", "arguments[0].langgraph_config.metadata.langgraph_checkpoint_ns", "temporalio-langgraph"),
        ("desk.look", "arguments[0].args[0].configurable.checkpoint_ns", ""),
        ("desk.look", "arguments[0].langgraph_config.metadata.langgraph_node", ""),
    ],
)
def test_only_what_a_framework_itself_fills_anew_may_differ(name: str, path: str, who: str) -> None:
    assert drift.known(name, path) == who
