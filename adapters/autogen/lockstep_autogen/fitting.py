"""Whether the installed AutoGen has what the seams are put into. Some of these places are private: they may move."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from autogen_agentchat import __version__
from autogen_agentchat.agents import UserProxyAgent
from autogen_agentchat.teams import BaseGroupChat
from autogen_agentchat.teams._group_chat._base_group_chat_manager import BaseGroupChatManager

from lockstep.errors import AdapterError, Code
from lockstep_autogen.adapter import adapter

_PLACES: Mapping[Any, tuple[str, ...]] = {
    BaseGroupChat: ("name", "_create_group_chat_manager_factory", "run_stream", "save_state"),
    BaseGroupChatManager: (
        "_apply_termination_condition", "_signal_termination", "on_message_impl", "publish_message",
        "handle_agent_response",
    ),
    UserProxyAgent: ("_get_input",),
}  # fmt: skip


@cache
def probe() -> None:
    """Raises AdapterError LS410 where a place is missing."""
    for owner, names in _PLACES.items():
        for name in names:
            if not hasattr(owner, name):
                tested = adapter.tested
                raise AdapterError(
                    Code.UNFIT_FRAMEWORK,
                    f"{owner.__name__} has no {name!r} in this environment ({adapter.distribution} {__version__}), so a"
                    f" team cannot be recorded. Lockstep is tested with {tested.oldest} to {tested.newest}: install one"
                    " of these, or a newer Lockstep",
                )
