"""`show` tells what a step read beside its calls."""

import os
from pathlib import Path

import pytest

import lockstep
from lockstep.debugger import listing
from lockstep.log.store import open_store
from lockstep.log.timeline import resolve


def test_the_reads_of_a_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    monkeypatch.setenv("MODE", "quick")
    (project / "in.txt").write_text("words")
    store = tmp_path / "reads.db"
    with lockstep.record("reads", store=store):
        Path("in.txt").read_text()
        Path("in.txt").read_text()
        lockstep.step("first")
        assert os.environ["MODE"] == "quick"
        assert not os.path.exists("out.txt")
        assert os.listdir() == ["in.txt"]
        lockstep.step("second")
    with open_store(str(store)) as opened:
        first, second = (listing.show(resolve(opened, f"reads:{number}")).reads for number in (1, 2))
    assert [(row.source, row.found) for row in first if row.name == "in.txt"] == [("file", "5 B")]
    assert [row.address for row in first] == [f"reads:1~{number}" for number in range(1, len(first) + 1)]
    told = {(row.source, row.name): row.found for row in second}
    assert told["environ", "MODE"] == "quick"
    assert told["stat", "out.txt"] == "No such file or directory"
    assert told["listing", "."] == "1 name"
