"""A workload's command line."""

from __future__ import annotations

import sys


def arguments(*kinds: type[str | int]) -> list[str | int]:
    """The command line, each argument as its kind."""
    return [kind(given) for kind, given in zip(kinds, sys.argv[1:], strict=True)]
