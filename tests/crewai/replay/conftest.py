import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from crewai.flow import Flow, persist, start
from crewai.flow.persistence import SQLiteFlowPersistence

sys.path.insert(0, str(Path(__file__).parents[1] / "record"))


@pytest.fixture
def counting(tmp_path: Path) -> Callable[[], Flow[Any]]:
    """Makes a flow that goes on counting where a state of it is loaded."""

    def make() -> Flow[Any]:
        @persist(SQLiteFlowPersistence(str(tmp_path / "flows.db")))
        class Counts(Flow[dict[str, Any]]):
            @start()
            def more(self) -> int:
                self.state["n"] = self.state.get("n", 0) + 1
                return int(self.state["n"])

        return Counts()

    return make
