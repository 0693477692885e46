"""Each kind of planted fault is named in a LangGraph graph: a small sample of the trials of `bench/planted`."""

from pathlib import Path

from bench.planted import faults, trial
from bench.planted.agents import Graphed


def test_a_fault_of_each_kind_is_named(tmp_path: Path) -> None:
    found = [*trial.each_kind(Graphed(), 5, str(tmp_path))]
    assert [one.kind for one in found] == [*faults.KINDS]
    assert [(one.kind, one.named) for one in found] == [(one.kind, one.answer) for one in found]
