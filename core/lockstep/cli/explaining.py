"""`lockstep explain`: the entry of a code in docs/troubleshooting.md, which the wheel carries."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from lockstep.cli import failures, terminal
from lockstep.errors import Code

# In the wheel beside this file; in a checkout where it is written.
_PLACES = (
    Path(__file__).with_name("troubleshooting.md"),
    Path(__file__).parents[3] / "docs" / "troubleshooting.md",
)


def explain(code: str) -> None:
    """Prints what is to be known of a code."""
    found = entry(code.upper())
    if found is None:
        failures.fail(ValueError(f"there is no code {code}. Known are {', '.join(sorted(Code))}."))
    terminal.say(found, to=sys.stdout)


def entry(code: str) -> str | None:
    """The entry, with its links reduced to their texts; None where the page has none."""
    page = next(place for place in _PLACES if place.exists()).read_text(encoding="utf-8")
    found = re.search(rf"^### ({re.escape(code)})\n+(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
    if found is None:
        return None
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", found[2]).replace("**", "")
    return f"{found[1]}  {text.strip()}"
