"""Makes tests/temporal/histories anew, on a real server: python tests/temporal/make_histories.py

They are for tests that need no server. Of a chain of runs each is a file, as in edges.1.json and edges.2.json.
"""

from __future__ import annotations

import json
import logging
import re
import time
from functools import partial
from pathlib import Path
from typing import Any

import kitchen_sink as sink
from live_server import Server, run, running

HISTORIES = Path(__file__).parent / "histories"


def main() -> None:
    """Runs each workflow, and writes what the server keeps of it, without a word of this machine."""
    logging.disable(logging.CRITICAL)  # activities fail on purpose
    with running() as server:
        make(server, "steps", sink.Steps.run, 5)
        make(server, "unwinds", sink.Unwinds.run, "the table", drive=sink.serve_unwinds)
        make(server, "edges", sink.Edges.run, 1, start={"memo": {"kind": "edges"}})
        order = sink.Order(7, ["lamp", "rug"], rounds=1)
        make(server, "kitchen_sink", sink.KitchenSink.run, order, drive=partial(sink.serve_kitchen_sink, rounds=1))
    time.sleep(0.3)


def make(server: Server, name: str, workflow: Any, *args: Any, **options: Any) -> None:
    options |= {"workflows": sink.WORKFLOWS, "activities": sink.ACTIVITIES, "identity": "tests"}
    ran = run(server, workflow, *args, id=name, **options)
    for number, history in enumerate(ran.histories, 1):
        path = HISTORIES / (f"{name}.{number}.json" if len(ran.histories) > 1 else f"{name}.json")
        path.write_text(json.dumps(_placeless(json.loads(history)), indent=1) + "\n")


def _placeless(value: Any) -> Any:
    """Files in traces are named without their folders."""
    if isinstance(value, str):
        return re.sub(r'File "[^"]*/([^"/]+)"', r'File "\1"', value)
    if isinstance(value, list):
        return [_placeless(one) for one in value]
    return {key: _placeless(one) for key, one in value.items()} if isinstance(value, dict) else value


if __name__ == "__main__":
    main()
