"""The lines that say, before a fork or a bisect, what its tail would do. Pure: structs in, lines out."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from lockstep.debugger.lines import Line, cut, safe
from lockstep.debugger.preview import Expected, Preview

_SHOWN = 5  # names of a group
_NAME = 60


def preview(found: Preview) -> list[Line]:
    """One line for each thing that may become of a call; none for what no call would."""
    lines: list[Line] = []
    if found.live:
        lines.append(["  would call live: ", _names(found.live)])
        for each in found.live:
            if each.changing:
                inner = ", ".join(cut(safe(name), _NAME) for name in each.changing[:_SHOWN])
                lines.append([f"    in {cut(safe(each.name), _NAME)}: ", (inner, "warn")])
    if found.reused:
        lines.append(["  would answer from the record, and call live what is not there: ", _names(found.reused)])
    if found.refused:
        said = "would answer from the record, and refuse what is not there"
        lines.append([f"  {said}: ", (_names(found.refused), "warn"), "   to let it run: ", _flags(found.refused)])
    if found.stopped:
        lines.append([
            "  ", ("would refuse", "bad"), ": ", (_names(found.stopped), "bad"), "   to let it run: ",
            _flags(found.stopped),
        ])  # fmt: skip
    return lines


def _names(expected: Sequence[Expected]) -> str:
    shown = [
        f"{each.kind} {cut(safe(each.name), _NAME)}" + (f" ×{each.times}" if each.times > 1 else "")
        for each in expected[:_SHOWN]
    ]
    return ", ".join(shown) + _more(expected)


def _flags(expected: Sequence[Expected]) -> tuple[str, str]:
    flags = " ".join(f"--live {shlex.quote(safe(each.flag))}" for each in expected[:_SHOWN])
    return flags + _more(expected), "address"


def _more(expected: Sequence[Expected]) -> str:
    return f" and {len(expected) - _SHOWN} more" if len(expected) > _SHOWN else ""
