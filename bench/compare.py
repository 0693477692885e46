"""Everything that is measured, side by side with lockstepd, the best tool of its kind that there was.

    python bench/compare.py [--quick] [--write]

`--write` puts the table into docs/benchmarks.md. Each part is a program of its own: `python bench/tools.py`.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from contenders import PEER, ROOT
from posts import posts
from reads import reads
from replays import replays
from rounds import Row, cells, line, markdown, measure, reached
from startup import startup
from stored import stored
from stream import stream
from tapes import tapes
from tools import tools

from bisecting import bisects

PARTS = (tools, posts, stream, reads, startup, stored, tapes, replays, bisects)
_PAGE = ROOT / "docs" / "benchmarks.md"
_TABLE = re.compile(r"(<!-- table[^>]*-->\n).*?(<!-- end of the table -->)", re.DOTALL)


def page(text: str, rows: Sequence[Row]) -> str:
    """The page with its table written anew."""
    about = (
        f"Measured {datetime.date.today():%Y-%m-%d} by `make bench`: lockstep-replay {version('lockstep-replay')} and "
        f"lockstepd {PEER.version()}, CPython {platform.python_version()}, httpx {version('httpx')}, "
        f"{platform.system()}, {os.cpu_count()} cores."
    )
    table = f"{about}\n\n{markdown(rows)}\n"
    written, places = _TABLE.subn(lambda found: f"{found[1]}\n{table}\n{found[2]}", text)
    if places != 1:
        raise ValueError(f"{_PAGE.name} has {places} places for the table")
    return written


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small run: shows that it works, and the order of size")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    asked = parser.parse_args()
    rows = measure(PARTS, asked.quick, lambda text: print(text, flush=True))
    short = [row for row in rows if reached(row) is False]
    print(f"\n{sum(reached(row) is True for row in rows)} goals reached, {len(short)} not")
    for row in short:
        print(line(cells(row)))
    if asked.write:
        _PAGE.write_text(page(_PAGE.read_text(), rows))


if __name__ == "__main__":
    main()
