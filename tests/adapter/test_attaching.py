"""Under `lockstep record` an adapter attaches to its framework, with no line of the program changed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.warm import command

from lockstep.launch import attaching

PROGRAM = "import toykit\nprint('attached', getattr(toykit, 'attached', 0))\n"


def _run(*words: str, program: str, place: Path) -> subprocess.CompletedProcess[str]:
    script = place / "program.py"
    script.write_text(program)
    return subprocess.run([sys.executable, *words, str(script)], capture_output=True, text=True, check=False, cwd=place)


def _record(program: str, place: Path) -> subprocess.CompletedProcess[str]:
    script = place / "program.py"
    script.write_text(program)
    return command.run("record", "--run", "toys", "--", sys.executable, str(script), cwd=place)


def test_a_framework_is_instrumented_once_it_is_imported(
    toy: Callable[..., None], install: Callable[..., None], tmp_path: Path
) -> None:
    toy()
    install("toykit", "1.3", toykit="")
    recorded = _record(PROGRAM, tmp_path)
    assert recorded.returncode == 0, recorded.stderr
    assert recorded.stdout == "attached 1\n"
    assert "complete" in recorded.stderr
    replayed = command.run("replay", "toys")
    assert (replayed.returncode, replayed.stdout) == (0, "attached 1\n"), replayed.stderr


def test_without_lockstep_nothing_is_attached(
    toy: Callable[..., None], install: Callable[..., None], tmp_path: Path
) -> None:
    toy()
    install("toykit", "1.3", toykit="")
    assert _run(program=PROGRAM, place=tmp_path).stdout == "attached 0\n"


def test_a_framework_that_is_not_imported_stays_so(
    toy: Callable[..., None], install: Callable[..., None], tmp_path: Path
) -> None:
    toy()
    install("toykit", "1.3", toykit="")
    recorded = _record("import sys; print('toykit' in sys.modules)\n", tmp_path)
    assert (recorded.returncode, recorded.stdout) == (0, "False\n"), recorded.stderr


IN_CODE = """
import lockstep
with lockstep.record("first"):
    print("loaded", "toykit" in __import__("sys").modules)
import toykit
print("between", getattr(toykit, "attached", 0))
with lockstep.record("second"):
    print("second", getattr(toykit, "attached", 0))
lockstep.replay("second", lambda: print("again", getattr(toykit, "attached", 0)))
"""


@pytest.mark.parametrize(("says", "attached"), [("in_code=True", 1), ("in_code=False", 0)])
def test_a_session_begun_in_code_has_those_attach_that_say_so(
    says: str, attached: int, toy: Callable[..., None], install: Callable[..., None], tmp_path: Path
) -> None:
    toy(old="instrument=attach,", new=f"instrument=attach, {says},")
    install("toykit", "1.3", toykit="")
    ran = _run(program=IN_CODE, place=tmp_path)
    assert ran.stdout == f"loaded False\nbetween 0\nsecond {attached}\nagain {attached}\n", ran.stderr


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('module.attached = getattr(module, "attached", 0) + 1', 'raise LookupError("no such seam")'),
        ("def attach", "raise LookupError('no such seam')\ndef attach"),
    ],
)
def test_a_fault_of_an_adapter_reaches_the_report_and_not_the_program(
    old: str, new: str, toy: Callable[..., None], install: Callable[..., None], tmp_path: Path
) -> None:
    toy(old=old, new=new)
    install("toykit", "1.3", toykit="")
    recorded = _record(PROGRAM, tmp_path)
    assert (recorded.returncode, recorded.stdout) == (0, "attached 0\n"), recorded.stderr
    assert "no such seam" in recorded.stderr


def test_only_distributions_with_lockstep_in_their_name_are_looked_at(
    toy: Callable[..., None], monkeypatch: pytest.MonkeyPatch, packages: Path
) -> None:
    toy("toy")
    toy("joy", distribution="joykit")
    monkeypatch.setattr(sys, "path", [str(packages), str(packages / "nowhere"), __file__])
    assert attaching._entries() == [("toy", "lockstep_toy:adapter")]
