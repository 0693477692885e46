import sys
from pathlib import Path

_HERE = Path(__file__).parent
_TEMPORAL, _ROOT = _HERE.parent, _HERE.parents[2]
# What writes runs, with a workflow and without.
sys.path[:0] = [
    str(_HERE), str(_TEMPORAL / "reading"), str(_TEMPORAL / "replay"), str(_ROOT / "bench" / "workloads"),
]  # fmt: skip
