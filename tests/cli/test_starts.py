"""Each command in an interpreter of its own, where it imports what it needs: most other tests run it in a fork of a
process that has everything loaded."""

import subprocess
import sys
from pathlib import Path

import typer

from lockstep.cli.app import app

# In an order in which each finds what it needs; with the status that it ends with.
COMMANDS = [
    (("record", "--run", "r", "--", sys.executable, "agent.py"), 0),
    (("replay", "r"), 0),
    (("verify", "r"), 0),
    (("fork", "r:0", "--branch", "b", "--live", "*"), 0),
    (("log", "r"), 0),
    (("show", "r:0"), 0),
    (("diff", "r", "r@b"), 0),
    (("bisect", "r", "--bad", "false"), 1),
    (("export", "r", "--output", "r.tape"), 0),
    (("import", "r.tape"), 0),
    (("scrub", "r", "--check"), 0),
    (("runs",), 0),
    (("rm", "r"), 0),
    (("gc",), 0),
    (("explain", "LS101"), 0),
    (("why", "r:0"), 2),
    (("adapters",), 0),
    (("conformance", "python", "--only", "records_steps"), 0),
    (("--version",), 0),
]


def test_every_command_imports_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text("print('hello')\n")
    for words, status in COMMANDS:
        done = subprocess.run(
            [sys.executable, "-m", "lockstep", *words], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == status, f"{words}: {done.stderr}"
        assert "Traceback" not in done.stderr and done.stdout + done.stderr


def test_these_are_all_commands() -> None:
    known = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    assert known.keys() == {words[0] for words, _ in COMMANDS} - {"--version"}
