"""Runs a loopback provider for programs in other processes; its first line of output is its URL.

python -m lockstep.testing.provider --port 0 --script answers.py:answer
"""

from __future__ import annotations

import argparse
import runpy
import signal
import threading

from lockstep.testing.answers import Script
from lockstep.testing.loopback import Provider

__all__ = ["Provider", "main"]


def main(arguments: list[str] | None = None) -> None:
    """Runs a provider until it is told to end, and prints its URL as the first line."""
    parser = argparse.ArgumentParser(prog="python -m lockstep.testing.provider", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0: any free one")
    parser.add_argument("--seed", type=int, default=0, help="of default texts, ids and jitter")
    parser.add_argument("--jitter", type=float, default=0.0, metavar="S", help="longest random delay of an answer")
    parser.add_argument(
        "--script", default="", metavar="FILE:NAME", help="a Python file and its function of the request"
    )
    asked = parser.parse_args(arguments)
    script: Script = ()
    if asked.script:
        file, _, name = asked.script.rpartition(":")
        script = runpy.run_path(file)[name]
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with Provider(script, seed=asked.seed, jitter=(0.0, asked.jitter), port=asked.port) as provider:
        print(provider.url, flush=True)
        stop.wait()


if __name__ == "__main__":
    main()
