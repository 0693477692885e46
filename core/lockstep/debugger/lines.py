"""Text for people: lines in pieces with a meaning each, made safe to show and cut to fit.

Recorded content is shown, never interpreted: `safe` makes visible whatever a terminal would act on.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

# A piece of a line: what it says, and what it is ("good", "bad", "warn", "dim", "strong", "address"). Colour
# only carries what a word already says.
type Piece = str | tuple[str, str]
type Line = Sequence[Piece]

# Left-to-right and right-to-left overrides and isolates: they show a text in another order than it is.
_REORDERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def safe(text: str) -> str:
    """The text on one line, with everything a terminal would act on written out as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    named = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character)
    if named is not None:
        return named
    code = ord(character)
    if character in _REORDERING or unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp"):
        return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"
    return character


def cells(text: str) -> int:
    """Columns that a text takes in a terminal."""
    if text.isascii():
        return len(text)
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) == "Cf":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut(text: str, width: int) -> str:
    """The text in at most `width` columns; what is too wide loses its middle."""
    if cells(text) <= width:
        return text
    if width < 2:
        return "…"[:width]
    left = (width - 1 + 1) // 2
    head = _take(text, left)
    tail = _take(text[::-1], width - 1 - cells(head))[::-1]
    return f"{head}…{tail}"


def _take(text: str, width: int) -> str:
    used = 0
    for index, character in enumerate(text):
        used += _width(character)
        if used > width:
            return text[:index]
    return text


def plain(line: Line) -> str:
    return "".join(piece if isinstance(piece, str) else piece[0] for piece in line)
