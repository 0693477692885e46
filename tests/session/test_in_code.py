"""Sessions in code, in a process that goes on: what it does once, a replay in the same process does not do again."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

import lockstep

LIBRARY = """
import os, time
MADE = time.time(), os.environ.get("LATE_LIBRARY")
"""


@pytest.fixture
def late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A library and a module of the program's own, neither of which has been loaded."""
    place = tmp_path / "site-packages"
    place.mkdir()
    (place / "late_library.py").write_text(LIBRARY)
    (tmp_path / "late_module.py").write_text(LIBRARY)
    for folder in (place, tmp_path):
        monkeypatch.syspath_prepend(str(folder))


def test_a_library_that_is_loaded_meanwhile_has_read_nothing_of_the_programs(late: None) -> None:
    def program() -> str:
        return str(importlib.import_module("late_library").__name__)

    with lockstep.record("late"):
        program()
    replayed = lockstep.replay("late", program)
    assert replayed.identical, replayed.divergence


def test_what_the_program_has_loaded_itself_and_is_not_loaded_again_is_a_difference(late: None) -> None:
    def program() -> str:
        return str(importlib.import_module("late_module").__name__)

    with lockstep.record("late"):
        program()
    replayed = lockstep.replay("late", program)
    assert replayed.divergence is not None and "LS105" in replayed.divergence
