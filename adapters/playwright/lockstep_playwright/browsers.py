"""The Chromium that is used where nobody says which.

The Python client of Playwright has no variable for it, and the one that it looks for by itself is only there where
`playwright install` could load it: so a system's own is as good.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from lockstep.errors import Code, TargetError

VARIABLE = "LOCKSTEP_CHROMIUM"

# By the names that systems give it, the free one first.
COMMANDS = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome", "microsoft-edge")

_MAC = "/Applications/{0}.app/Contents/MacOS/{0}"
_PLACES = {
    "darwin": tuple(_MAC.format(name) for name in ("Chromium", "Google Chrome", "Microsoft Edge")),
    "win32": tuple(
        rf"{root}\{path}"
        for root in (r"C:\Program Files", r"C:\Program Files (x86)")
        for path in (r"Google\Chrome\Application\chrome.exe", r"Microsoft\Edge\Application\msedge.exe")
    ),
}


def find_chromium(executable: str = "", bundled: str = "") -> str:
    """The path of a Chromium: `executable`, if one is said, else that of LOCKSTEP_CHROMIUM, else `bundled` (what
    Playwright would start: `playwright.chromium.executable_path`) if it is there, else the first that is installed.

    Raises TargetError LS412 where there is none, and for one that is said and is not there.
    """
    for said, by in ((executable, "executable="), (os.environ.get(VARIABLE, ""), VARIABLE)):
        if said:
            return _there(said, by)
    if bundled and Path(bundled).is_file():
        return bundled
    for command in COMMANDS:
        if found := shutil.which(command):
            return found
    for place in _PLACES.get(sys.platform, ()):
        if Path(place).is_file():
            return place
    raise TargetError(
        Code.NO_BROWSER,
        f"no Chromium was found: Playwright's own is not installed, and there is no {', '.join(COMMANDS[:-1])} or "
        f"{COMMANDS[-1]} on the PATH. Install one with `playwright install chromium`, or your system's with "
        f"`apt install chromium`, or set {VARIABLE} to the path of one",
    )


def _there(said: str, by: str) -> str:
    found = shutil.which(said)
    if found is None:
        raise TargetError(Code.NO_BROWSER, f"{by} says {said!r}, where there is nothing that can be started")
    return found
