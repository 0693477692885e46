import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

# The agents to search stand beside the tests, which are no package.
sys.path.insert(0, str(Path(__file__).parent))

type Lockstep = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def lockstep(tmp_path: Path) -> Lockstep:
    """Runs `lockstep` in the test's own directory and store."""

    def run(*words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "lockstep", *words], cwd=tmp_path, env={**os.environ, **(env or {})},
            capture_output=True, text=True, check=False, timeout=120, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    return run
