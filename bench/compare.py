"""Everything that is measured, side by side with lockstepd, the best tool of its kind that there was.

    python bench/compare.py [--quick] [--write]

`--write` puts the table into docs/benchmarks.md. Each part is a program of its own: `python bench/tools.py`.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import page
from contenders import PEER
from posts import posts
from reads import reads
from replays import replays
from rounds import cells, line, markdown, measure, reached
from startup import startup
from stored import stored
from stream import stream
from tapes import tapes
from tools import tools

from bisecting import bisects

PARTS = (tools, posts, stream, reads, startup, stored, tapes, replays, bisects)


def main() -> None:
    asked = page.asked(__doc__)
    rows = measure(PARTS, asked.quick, lambda text: print(text, flush=True))
    short = [row for row in rows if reached(row) is False]
    print(f"\n{sum(reached(row) is True for row in rows)} goals reached, {len(short)} not")
    for row in short:
        print(line(cells(row)))
    if asked.write:
        page.write("peers", markdown(rows), {"lockstepd": PEER.version(), "httpx": version("httpx")})


if __name__ == "__main__":
    main()
