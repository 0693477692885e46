"""The places in LangChain and LangGraph that are replaced: put back when nobody wants them, and told when they lack."""

from __future__ import annotations

import pytest
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.tools import BaseTool
from langgraph.pregel._loop import PregelLoop

from lockstep.errors import AdapterError, Code
from lockstep_langgraph import patches


def _places() -> list[object]:
    return [
        BaseChatModel._generate_with_cache,
        BaseChatModel._agenerate_with_cache,
        BaseChatModel.stream,
        BaseChatModel.astream,
        BaseTool.run,
        BaseTool.arun,
        PregelLoop.tick,
    ]


def test_all_is_put_back_when_the_last_who_wanted_it_goes() -> None:
    patches.uninstall()  # the test's own
    try:
        before = _places()
        patches.install()
        patches.install()
        assert not any(new is old for new, old in zip(_places(), before, strict=True))
        patches.uninstall()
        assert not any(new is old for new, old in zip(_places(), before, strict=True))
        patches.uninstall()
        assert _places() == before
    finally:
        patches.install()


def test_a_version_without_such_a_place_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    patches.uninstall()
    try:
        before = BaseChatModel.stream
        monkeypatch.delattr(BaseTool, "arun")
        with pytest.raises(
            AdapterError, match=r"langchain_core\.tools\.base has no BaseTool\.arun .*langgraph 1\.1"
        ) as told:
            patches.install()
        assert told.value.code is Code.UNFIT_FRAMEWORK
        assert BaseChatModel.stream is before
    finally:
        monkeypatch.undo()
        patches.install()


def test_a_version_with_another_signature_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    patches.uninstall()
    try:
        monkeypatch.setattr(BaseTool, "run", lambda self, given: None)
        with pytest.raises(AdapterError, match="does not take tool_input"):
            patches.install()
    finally:
        monkeypatch.undo()
        patches.install()
