"""Where the store is, when nobody says so, and the variables that speak of it. Light, because a recording asks
before its program starts."""

from __future__ import annotations

import os

DIRECTORY = ".lockstep"
FILE = "store.db"

# Variables that name the key of the seals, see `lockstep.log.seal`.
KEY = "LOCKSTEP_KEY"
KEY_FILE = "LOCKSTEP_KEY_FILE"


def locate(given: str | None = None) -> str:
    """The store's path, absolute: the one given, or `LOCKSTEP_STORE`, or `.lockstep/store.db` found
    upward from the working directory, or that file in the working directory, to be made."""
    named = given or os.environ.get("LOCKSTEP_STORE")
    if named:
        return named if "://" in named else os.path.abspath(os.path.expanduser(named))
    directory = os.getcwd()
    while True:
        found = os.path.join(directory, DIRECTORY, FILE)
        if os.path.exists(found):
            return found
        above = os.path.dirname(directory)
        if above == directory:
            return os.path.join(os.getcwd(), DIRECTORY, FILE)
        directory = above
