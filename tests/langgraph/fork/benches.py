"""The fixtures of tests that fork threads: a bench, and nothing of it left behind."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest
from threads_to_fork import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.close()


@pytest.fixture(autouse=True, scope="module")
def nothing_left() -> Iterator[None]:
    """What checkpointers install goes when they do, and graphs refer to themselves."""
    yield
    gc.collect()
