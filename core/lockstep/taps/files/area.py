"""The files of the running session: which they are, what is known of them, and what the run did to them."""

from __future__ import annotations

import os
from typing import Any

from lockstep.errors import Code
from lockstep.session import current as active
from lockstep.session.lanes import Lane, current
from lockstep.session.looks import Looks, looks
from lockstep.taps.files import contents
from lockstep.taps.files.places import Places

FILE = "file"  # a file opened to be read
LISTING = "listing"  # names in a directory, and what sort of thing each is
STAT = "stat"  # what is known of a file without opening it
CHANGE = "file change"  # making, moving and removing files, where it failed
_COUNTED = frozenset({FILE})

# What the run did to a file. A number: how long it was when the run first appended to it.
OWN = "own"  # made, or emptied
UPDATED = "updated"  # opened to be changed in place

real_stat = os.stat


class Area:
    """Files below the working directory, for one session."""

    def __init__(self, session: Any, places: Places) -> None:
        self.session = session
        self.places = places
        self.changed: dict[str, str | int] = {}
        self.stored: dict[bytes, int] = {}  # digest of a content -> position of the event that has it
        # Replay: event of a content -> signature of the file that was found to have it
        self.as_recorded: dict[int, contents.Signature] = {}
        self._digests: dict[contents.Signature, bytes] = {}

    @property
    def recording(self) -> bool:
        return bool(self.session.recording)

    def serves(self, looks: Looks, place: str, number: int) -> bool:
        """Whether the record answers a look; a fork that has come to one which it does not have goes live first."""
        return not self.recording and (looks.which(place, number) is not None or not self.session.goes_live())

    def own(self, name: str) -> bool:
        """Whether the run itself made the file: what it reads of it then is its own doing."""
        return self.changed.get(name) == OWN

    def is_as_recorded(self, event: int, path: Any) -> bool:
        """Replay: whether the file was compared before, and has not changed since."""
        known = self.as_recorded.get(event)
        try:
            return known is not None and known == contents.signature(real_stat(path))
        except OSError:
            return False

    def digest(self, found: os.stat_result, fd: int) -> tuple[bytes, bytes | None]:
        """The identity of an open file's content, and the content where it had to be read for that."""
        signature = contents.signature(found)
        known = self._digests.get(signature)
        if known is not None:
            return known, None
        if found.st_size > contents.LIMIT:
            data, made = None, contents.digest_of_big(fd, found.st_size)
        else:
            data = contents.read(fd, found.st_size)
            made = contents.digest(data)
        if contents.settled(found):
            self._digests[signature] = made
        return made, data


now: Area | None = None


def asked(path: Any) -> tuple[Area, Lane, str] | None:
    """Where the program's own code asks for a file that is its input: the area, the lane and the file's name."""
    area = now
    if area is None:
        return None
    name = area.places.name(path)
    if name is None or active.session is not area.session:
        return None
    lane = current()
    return None if lane is None else (area, lane, name)


def of(lane: Lane, source: str) -> Looks:
    """The lane's looks at one of the sources above."""
    return lane.taps.get(source) or looks(lane, source, counted=source in _COUNTED)


def failed(error: OSError) -> dict[str, Any]:
    """The state of a look that raised."""
    return {"error": error.errno or 0}


def raise_recorded(state: Any, path: Any, second: Any = None) -> None:
    """Raises what a recorded look raised; returns where it raised nothing."""
    number = state.get("error") if isinstance(state, dict) else None
    if isinstance(number, int):
        if second is not None:
            raise OSError(number, os.strerror(number), path, None, second)
        raise OSError(number, os.strerror(number), path)


def unread(area: Area, lane: Lane, name: str) -> None:
    """Replay: the program reads a file that the recorded one did not. Returns where nothing is known of it."""
    if area.session.past_end(lane):
        return
    area.session.diverge(
        Code.READS, "a file is read that the recorded program did not read here", lane=lane, kind="read", name=FILE,
        path=name, expected="(not read)", actual=f"open {name}",
    )  # fmt: skip
