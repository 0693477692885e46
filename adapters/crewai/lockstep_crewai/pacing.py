"""A crew's or agent's `max_rpm`: what is served asks nobody, so nobody has to wait a minute before it asks."""

from __future__ import annotations

from functools import wraps
from typing import Any

from crewai.utilities.rpm_controller import RPMController

from lockstep_crewai import classes, current


def install() -> None:
    """Has those who wait look whether anybody is asked. Once."""
    classes.wrap(RPMController, "_wait_for_next_minute", _waiting)


def _waiting(plain: Any) -> Any:
    @wraps(plain)
    def wait(self: Any) -> None:
        place = current.place()
        if place is None or place.recording:
            plain(self)
        else:
            self._current_rpm = 0

    return wait
