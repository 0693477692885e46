"""The example for CrewAI runs as it is."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[3] / "examples" / "crewai_refund.py"


@pytest.mark.timeout(200)
def test_the_wrong_price_is_found_and_mended() -> None:
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=False, timeout=100)
    assert done.stdout.splitlines() == [
        "recorded  refunded 40000",
        "replayed  refunded 40000 / identical / paid [40000]",
        "bisected  culprit 1.2",
        "mended    refunded 4000 / paid [4000]",
    ], done.stderr
