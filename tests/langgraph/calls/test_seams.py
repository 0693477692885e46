"""The places in LangChain and LangGraph that are replaced: put back when nobody wants them, and told when they lack."""

from __future__ import annotations

from collections.abc import Iterator

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


@pytest.fixture(autouse=True)
def _nobody_wants_it(_seen: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Savers and sessions of other tests want it for good."""
    wanted = patches._installed
    for _ in range(wanted):
        patches.uninstall()
    yield
    monkeypatch.undo()
    for _ in range(wanted):
        patches.install()


def test_all_is_put_back_when_the_last_who_wanted_it_goes() -> None:
    before = _places()
    patches.install()
    patches.install()
    assert not any(new is old for new, old in zip(_places(), before, strict=True))
    patches.uninstall()
    assert not any(new is old for new, old in zip(_places(), before, strict=True))
    patches.uninstall()
    assert _places() == before


def test_a_version_without_such_a_place_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    before = BaseChatModel.stream
    monkeypatch.delattr(BaseTool, "arun")
    with pytest.raises(
        AdapterError, match=r"langchain_core\.tools\.base has no BaseTool\.arun .*langgraph 1\.1"
    ) as told:
        patches.install()
    assert told.value.code is Code.UNFIT_FRAMEWORK
    assert BaseChatModel.stream is before


def test_a_version_with_another_signature_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BaseTool, "run", lambda self, given: None)
    with pytest.raises(AdapterError, match="does not take tool_input"):
        patches.install()
