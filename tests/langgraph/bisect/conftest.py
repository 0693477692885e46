import sys
from pathlib import Path

_HERE = Path(__file__).parents[1]
sys.path[:0] = [str(_HERE / "fork"), str(_HERE / "calls")]

from benches import bench, nothing_left  # noqa: E402, F401 - in fork
