"""The same as `long_run`, on the peer's tape and with its environment.

long_tape.py write TAPE COUNT
long_tape.py read TAPE COUNT FIGURES
long_tape.py scan TAPE COUNT FIGURES      with its streaming reader, up to the middle
"""

from __future__ import annotations

import itertools
import resource
import sys

from lockstepd.core.events import EventKind
from lockstepd.core.tape import TapeWriter, load_tape, read_streaming
from meter import Figures, process, wall


def write(path: str, count: int) -> None:
    with TapeWriter(path) as tape:
        for pos in range(1, count, 2):
            asked = {"call_id": pos, "name": "get_order", "args": {"order": pos}}
            tape.append(EventKind.TOOL_CALL, asked)
            answer = {"order": pos, "note": f"{pos:200}"}
            tape.append(
                EventKind.TOOL_RESULT,
                {"call_id": pos, "ok": True, "value": answer, "duration_ns": 500, "completion_index": pos},
            )


def read(path: str, count: int, figures: Figures, *, scan: bool) -> None:
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began, spent = wall(), process()
    middle = count // 2 + 1
    event = next(itertools.islice(read_streaming(path), middle, None)) if scan else load_tape(path).events[middle]
    body = event.payload_json()
    figures.add("wall", (wall() - began) / 1e3)
    figures.add("process", (process() - spent) / 1e3)
    figures.add("memory", (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024)
    if not isinstance(body, dict) or "value" not in body:
        raise ValueError(f"not the event in the middle: {body!r}")
    figures.write()


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2], int(sys.argv[3]))
    else:
        read(sys.argv[2], int(sys.argv[3]), Figures(sys.argv[4]), scan=sys.argv[1] == "scan")
