"""SQLite databases below the working directory: read by C code, so a replay can only tell that one has changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

from lockstep.session.looks import ABSENT
from lockstep.taps.files import area as files
from lockstep.taps.files import contents
from lockstep.taps.files.area import OWN, Area, asked, of
from lockstep.taps.patches import stand_in

DATABASE = "database"

_CHANGED = "{} is not what it was when recorded, and is read as it is"

_real_stat = os.stat


def tap(module: ModuleType) -> None:
    """Taps `sqlite3.connect`."""
    real = module.connect
    if getattr(real, "__self__", None) is not None and not isinstance(real.__self__, ModuleType):
        return  # ours
    ours = stand_in(_connect(real), real, "sqlite3")
    module.connect = ours  # type: ignore[attr-defined]
    module.dbapi2.connect = ours


def overlooked(session: Any, path: str) -> None:
    """Replay: whoever works with that database gets what it is told from elsewhere, so it may be another one."""
    area = files.now
    name = area.places.name(path) if area is not None and area.session is session else None
    if name is not None:
        session.notes.pop((DATABASE, _CHANGED.format(name)), None)


def _connect(real: Callable[..., Any]) -> Callable[..., Any]:
    def connect(_: object, database: Any, *args: Any, **options: Any) -> Any:
        path = database
        if isinstance(path, str) and options.get("uri") and path.startswith("file:"):
            path = path.removeprefix("file:").partition("?")[0]
        found = asked(path) if files.now is not None and path != ":memory:" else None
        if found is not None:
            area, lane, name = found
            try:
                _look(area, lane, name, path)
            except Exception as error:
                area.session.fault(f"database {name}", error)
        return real(database, *args, **options)

    return connect


def _look(area: Area, lane: Any, name: str, path: Any) -> None:
    if name in area.changed:
        return  # the run has it open, or made it
    area.changed[name] = OWN
    looks = of(lane, DATABASE)
    number = looks.next(name)
    state = _state(area, path)
    if area.recording:
        looks.found(name, number, tuple(state.items()), state)
        return
    recorded = looks.served(name, number)
    if recorded is not ABSENT and recorded != state:
        area.session.note(DATABASE, _CHANGED.format(name))


def _state(area: Area, path: Any) -> dict[str, Any]:
    fd = contents.present(path)
    if fd is None:
        return {"size": None}
    try:
        found = os.fstat(fd)
        digest = contents.digest_of_big(fd, found.st_size)
    finally:
        os.close(fd)
    return {"size": found.st_size, "hash": digest}
