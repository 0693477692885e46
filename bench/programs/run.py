"""Runs one random program and prints its trace and value as JSON, nothing else.

    python -m programs.run --kind asyncio --seed 7 --server http://127.0.0.1:8000/space

The server (`programs.server`) must be up. A recorded program is run by the same command.
"""

from __future__ import annotations

import argparse
import json
import logging
from typing import Any

from programs import bridged
from programs.tree import KINDS, build


def execute(kind: str, seed: int, url: str) -> dict[str, Any]:
    """Runs the program: {"trace": its lines in order, "value": what it returned}."""
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # exceptions nobody fetched, on purpose
    trace, value = bridged.main(build(kind, seed), url)
    return {"trace": trace, "value": value}


def main() -> None:
    parser = argparse.ArgumentParser(description="Run one random concurrent program.")
    parser.add_argument("--kind", choices=KINDS, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--server", required=True, help="URL of the server, with a space: http://127.0.0.1:PORT/7")
    given = parser.parse_args()
    print(json.dumps(execute(given.kind, given.seed, given.server)))


if __name__ == "__main__":
    main()
