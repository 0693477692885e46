"""The `lockstep` command. `main` is its entry point."""

from __future__ import annotations

import sys


def main() -> None:
    """Runs the command line in `sys.argv` and ends the process with its status."""
    from lockstep.cli import quick

    arguments = quick.record(sys.argv[1:])
    if arguments is None:
        from lockstep.cli.app import run

        run()
        return
    from lockstep.cli.recording import record

    record(**arguments)  # type: ignore[arg-type]
