import gc
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "calls")]

from threads_to_fork import Bench  # noqa: E402 - it is beside this file


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.close()


@pytest.fixture(autouse=True, scope="module")
def _nothing_left() -> Iterator[None]:
    """What checkpointers install goes when they do, and graphs refer to themselves."""
    yield
    gc.collect()
