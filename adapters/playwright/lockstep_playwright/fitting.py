"""Whether a tap fits the Playwright that is installed, asked before anything is changed: on an older one pages would
wait for ever, and the program with them."""

from __future__ import annotations

from lockstep.adapter import require, versions
from lockstep.errors import AdapterError, Code
from lockstep_playwright.adapter import adapter


def check() -> None:
    """Raises AdapterError LS410 for a version before the oldest that was tried."""
    version, tried = require(adapter), adapter.tested
    if versions.before(version, tried.oldest):
        raise AdapterError(
            Code.UNFIT_FRAMEWORK,
            f"playwright {version} is too old to be tapped, which needs {tried.oldest} or later (tried up to "
            f"{tried.newest}): pip install -U playwright. A whole program can be recorded with it at wire depth, by "
            "`lockstep record -- CMD`",
        )
