import sys
from pathlib import Path

_HERE = Path(__file__).parent
_ROOT = _HERE.parents[2]
sys.path[:0] = [str(_HERE), str(_HERE.parent / "reading"), str(_ROOT / "bench" / "workloads")]
