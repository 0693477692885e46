"""A checkpointer over a real store of its own, and the same store opened again as another process would."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from lockstep_langgraph import LockstepCheckpointer

sys.path.insert(0, str(Path(__file__).parent))

# The oldest supported version has no delta channels.
collect_ignore = [] if find_spec("langgraph.channels.delta") else ["test_delta_channels.py"]


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


@pytest.fixture
def opened(store: str) -> Iterator[Callable[..., LockstepCheckpointer]]:
    """Opens the store once more."""
    made: list[LockstepCheckpointer] = []

    def open_again(**options: Any) -> LockstepCheckpointer:
        made.append(LockstepCheckpointer(store, **options))
        return made[-1]

    yield open_again
    for saver in made:
        saver.close()


@pytest.fixture
def saver(opened: Callable[..., LockstepCheckpointer]) -> LockstepCheckpointer:
    return opened()
