import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "calls")]

from benches import bench, nothing_left  # noqa: E402, F401 - beside this file
