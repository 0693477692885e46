"""The example for AutoGen runs as it is."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "autogen_refund.py"


def test_the_wrong_price_is_found_and_mended() -> None:
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=False, timeout=100)
    assert done.stdout.splitlines() == [
        "recorded  DONE, refunded 40000",
        "replayed  DONE, refunded 40000 / identical / paid [40000]",
        "bisected  culprit 1.2",
        "mended    DONE, refunded 4000 / paid [4000]",
    ], done.stderr
