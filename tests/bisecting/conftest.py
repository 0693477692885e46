import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from tests.warm import command

# The agents to search stand beside the tests, which are no package.
sys.path.insert(0, str(Path(__file__).parent))

type Lockstep = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def lockstep(tmp_path: Path) -> Lockstep:
    """Runs `lockstep` in the test's own directory and store."""

    def run(*words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return command.run(*words, cwd=tmp_path, env={**os.environ, **(env or {})}, timeout=120)

    return run
