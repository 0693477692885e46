"""The `lockstep` command. `main` is its entry point."""

from __future__ import annotations

import sys
from importlib import import_module


def main() -> None:
    """Runs the command line in `sys.argv` and ends the process with its status."""
    from lockstep.cli import ending

    ending.ended(_main)


def _main() -> None:
    from lockstep.cli import quick

    arguments = quick.record(sys.argv[1:])
    if arguments is not None:
        from lockstep.cli.recording import record

        record(**arguments)  # type: ignore[arg-type]
        return
    again = quick.again(sys.argv[1:])
    if again is not None:
        verb, asked = again
        getattr(import_module(f"lockstep.cli.{quick.HOMES[verb]}"), verb)(**asked)
        return
    from lockstep.cli.app import run

    run()
