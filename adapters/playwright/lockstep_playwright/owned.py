"""The keyword arguments of `lockstep.replay`, `fork` and `bisect` that only a browser's run has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from lockstep.errors import Code, TargetError
from lockstep.session.rules import Volatile
from lockstep_playwright import volatile

MISSES = ("fail", "strict")


class Own(msgspec.Struct, frozen=True, kw_only=True):
    """See `lockstep_playwright.adapter`. `headless`: None as it was recorded; `strict`: a request that was not recorded
    stops the program at its next action; `volatile`: see `lockstep_playwright.volatile`."""

    endpoint: str = ""
    executable: str = ""
    headless: bool | None = None
    strict: bool = False
    volatile: Volatile = ()


def own_of(given: Mapping[str, Any]) -> Own:
    """Raises TargetError LS402 for what makes no sense."""
    misses = given.get("misses", MISSES[0])
    if misses not in MISSES:
        raise TargetError(Code.BAD_TARGET, f"misses= is one of {', '.join(MISSES)}, not {misses!r}")
    headless = given.get("headless")
    if headless is not None and not isinstance(headless, bool):
        raise TargetError(Code.BAD_TARGET, f"headless= is True or False, not {headless!r}")
    for name in ("endpoint", "executable"):
        if not isinstance(given.get(name) or "", str):
            raise TargetError(Code.BAD_TARGET, f"{name}= is a text, not {given[name]!r}")
    return Own(
        endpoint=given.get("endpoint") or "", executable=given.get("executable") or "", headless=headless,
        strict=misses == "strict", volatile=volatile.given(given.get("volatile") or {}),
    )  # fmt: skip
