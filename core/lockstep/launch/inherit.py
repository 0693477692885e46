"""Our variables in the environment of a process that the program starts.

The program does not see them (`Ours.take` hid them), so an environment that it builds itself lacks
them; `Ours.dress` adds them to one, and what they stood for, so that the child can hide them again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

# What our variables were before we set them: "NAME=value", or "NAME" for one that was not set. The
# separator is a character that no shell puts into a variable by accident.
BARE = "LOCKSTEP_BARE"
SEPARATOR = "\x1f"
PATH = "PYTHONPATH"
LANE = "LOCKSTEP_LANE"
IMAGE = "LOCKSTEP_IMAGE"

# Of this process, None where it was not launched: for the taps that start processes.
here: Ours | None = None


# What else is to be done to an environment that is given to a child (`lockstep.taps.environ`).
translations: list[Callable[[dict[Any, Any]], None]] = []


class Ours:
    """The variables that the supervisor set, with their values in this process."""

    def __init__(self, boot: str, values: dict[str, str]) -> None:
        self._boot = boot
        self.values = values

    @classmethod
    def take(cls, boot: str) -> Ours | None:
        """Reads them and gives the program the environment that it would have without us: only its own
        view changes (`os.environ._data`), so children that inherit it are still reached. None where we
        were not launched by a supervisor."""
        bare = os.environ.get(BARE)
        if bare is None:
            return None
        values: dict[str, str] = {}
        data: dict[Any, Any] = os.environ._data  # type: ignore[attr-defined]
        for entry in bare.split(SEPARATOR):
            name, given, value = entry.partition("=")
            values[name] = os.environ.get(name, "")
            key = os.environ.encodekey(name)
            if given:
                data[key] = os.environ.encodevalue(value)
            else:
                data.pop(key, None)
        return cls(boot, values)

    def get(self, name: str) -> str:
        return self.values.get(name, "")

    def set(self, name: str, value: str) -> None:
        """Changes one for this process's children, also for those that inherit the C environment."""
        self.values[name] = value
        os.putenv(name, value)

    def dress(self, env: Mapping[Any, Any], lane: str | None = None) -> dict[Any, Any]:
        """A copy of an environment (str or bytes, as `os.execve` takes it) with our variables in it.

        lane  that of the process which will get it, as its parent named it; "" for one that belongs to an
              effect, and is not to be followed. None: the same process goes on in another image
        """
        dressed = dict(env)
        for translate in translations:
            translate(dressed)
        values = self.values if lane is None else {**self.values, LANE: lane, IMAGE: "0"}
        bare = []
        for name in self.values:
            if name == BARE:
                bare.append(name)
                continue
            key: str | bytes = os.fsencode(name) if os.fsencode(name) in dressed else name
            given = dressed.get(key)
            bare.append(name if given is None else f"{name}={os.fsdecode(given)}")
            dressed[key] = self._front(os.fsdecode(given or "")) if name == PATH else values[name]
        dressed[BARE] = SEPARATOR.join(bare)
        return dressed

    def _front(self, paths: str) -> str:
        """Our directory first again: another launcher puts its own in front, and its sitecustomize need
        not hand over to ours."""
        rest = [path for path in paths.split(os.pathsep) if path and path != self._boot]
        return os.pathsep.join([self._boot, *rest])
