"""The stress programs and their runner live in `bench`, which is no package of the distribution."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
