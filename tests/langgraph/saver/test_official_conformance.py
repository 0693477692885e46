"""The official suite of LangGraph, with nothing left out: 81 tests, of eight capabilities."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.report import ProgressCallbacks

from lockstep_langgraph import LockstepCheckpointer

TESTS = {
    "put": 17,
    "put_writes": 10,
    "get_tuple": 10,
    "list": 16,
    "delete_thread": 5,
    "delete_for_runs": 7,
    "copy_thread": 8,
    "prune": 8,
}


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_official_suite_passes_whole(tmp_path: Path, anyio_backend: str) -> None:
    @checkpointer_test(name="LockstepCheckpointer")
    async def saver() -> AsyncIterator[LockstepCheckpointer]:
        checkpointer = LockstepCheckpointer(str(tmp_path / "store.db"))
        yield checkpointer
        checkpointer.close()

    passed: Counter[str] = Counter()
    failed: dict[str, str | None] = {}

    def told(capability: str, name: str, ok: bool, error: str | None) -> None:
        passed[capability] += ok
        if not ok:
            failed[name] = error

    report = await validate(saver, progress=ProgressCallbacks(on_test_result=told))

    assert failed == {}
    assert dict(passed) == TESTS
    assert report.passed_all()
