import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.warm import command

type Lockstep = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def lockstep(tmp_path: Path) -> Lockstep:
    """Runs `lockstep` with the given words in the test's own directory and store."""

    def run(*words: str, env: Mapping[str, str] | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
        return command.run(*words, cwd=tmp_path, env={**os.environ, **(env or {})}, **options)

    return run


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], str]:
    """Writes a program's file into the test's directory and returns its name."""

    def write(code: str, name: str = "agent.py") -> str:
        (tmp_path / name).write_text(code)
        return name

    return write
