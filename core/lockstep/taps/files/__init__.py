"""Files: what a program reads below its working directory, as long as it did not write it itself.

Contents, listings and what `stat` tells are recorded where the program looks, and served to a replay in
which the present files differ or are gone. What the program writes is written again.

Not seen: files opened by C code (SQLite, pyarrow, `io.FileIO`), `os.access`, `DirEntry.stat`, calls with
`dir_fd` or an `opener`, and everything outside of the working directory.
"""

from __future__ import annotations

import os
from typing import Any

from lockstep.log.model import Value
from lockstep.taps.files import area, changing, databases, looking, opening
from lockstep.taps.files.places import Places
from lockstep.taps.held import Originals
from lockstep.taps.imports import when_imported
from lockstep.taps.patches import Patches

_patches = Patches()
_originals: Originals | None = None


def install() -> None:
    """Patches once; inert without a session."""
    global _originals
    if _originals is not None:
        return
    replaced = opening.install(_patches) | looking.install(_patches) | changing.install(_patches)
    _originals = Originals(replaced)
    _declare(replaced)
    when_imported("linecache", looking.leave_out_sources)
    when_imported("glob", looking.tap_glob)
    when_imported("sqlite3", databases.tap)


def originals() -> Originals:
    """What other modules may have taken before, with what stands for it."""
    assert _originals is not None
    return _originals


def _declare(replaced: dict[Any, Any]) -> None:
    # Modules ask these sets for what a function can do: shutil removes trees another way without.
    for abilities in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks):
        abilities.update([ours for real, ours in replaced.items() if real in abilities])


def start(session: Any, facts: Value = None) -> Value:
    """Begins to record or to serve the files below the present working directory."""
    install()
    directory, name = os.path.split(os.path.abspath(session.store))
    store = os.path.join(os.path.realpath(directory), name)  # and all names that begin alike: journals, locks
    area.now = area.Area(session, Places(os.getcwd(), (store,)))
    return None


def forked(session: Any) -> None:
    """The child has made what its parent has made, and looks at its files with its own eyes."""
    before = area.now
    if before is not None:
        area.now = area.Area(session, before.places)
        area.now.changed.update(before.changed)


def stop(session: Any) -> None:
    """Files are what they are again."""
    area.now = None
