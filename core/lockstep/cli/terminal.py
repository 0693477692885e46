"""How Lockstep speaks: plain lines, colour and tables for a terminal, one JSON object for programs.

Recorded content is shown, never interpreted: `safe` makes control characters visible before anything
else happens to a text, and Rich gets ready-made `Text`, not markup.
"""

from __future__ import annotations

import os
import sys
import unicodedata
from collections.abc import Sequence
from typing import Any, TextIO

# A piece of a line: what it says, and what it is. Colour only carries what a word already says.
type Piece = str | tuple[str, str]
type Line = Sequence[Piece]

_CODES = {"good": "32", "bad": "31", "warn": "33", "dim": "2", "strong": "1", "address": "36"}
_STYLES = {"good": "green", "bad": "red", "warn": "yellow", "dim": "dim", "strong": "bold", "address": "cyan"}
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


def coloured(stream: TextIO) -> bool:
    """Whether that stream is a terminal that wants colour (https://no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width(stream: TextIO) -> int:
    """Columns of the terminal; 0 where there is none, and nothing needs to be cut to fit."""
    if not stream.isatty():
        return 0
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except OSError:
        return 80


def say(line: Line | str = "", *, to: TextIO | None = None) -> None:
    """Prints one line, by default on stderr, where Lockstep's own words go."""
    stream = sys.stderr if to is None else to
    pieces = [line] if isinstance(line, str) else line
    colour = coloured(stream)
    text = "".join(_painted(piece, colour) for piece in pieces)
    stream.write(_encodable(text.rstrip(), stream) + "\n")


def plain(line: Line) -> str:
    return "".join(piece if isinstance(piece, str) else piece[0] for piece in line)


def _painted(piece: Piece, colour: bool) -> str:
    if isinstance(piece, str):
        return piece
    text, style = piece
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if colour and text else text


def _encodable(text: str, stream: TextIO) -> str:
    # A terminal in an ASCII locale must still get the words.
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def table(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Piece]], *, flexible: int | None = None) -> None:
    """Prints rows on stdout: a Rich table on a terminal, aligned text elsewhere.

    columns   (heading, "left" or "right"); without any heading no heading line is printed
    flexible  the column that gives way, cut in the middle, where the terminal is narrow
    """
    stream = sys.stdout
    available = width(stream)
    texts = [[cell if isinstance(cell, str) else cell[0] for cell in row] for row in rows]
    widths = [
        max([cells(heading), *(cells(row[index]) for row in texts)]) for index, (heading, _) in enumerate(columns)
    ]
    if available and flexible is not None:
        over = sum(widths) + 2 * (len(widths) - 1) - available
        widths[flexible] = max(8, widths[flexible] - max(0, over))
    fitted = [[_fit(cell, widths[index], index == flexible) for index, cell in enumerate(row)] for row in rows]
    if available and coloured(stream):
        _rich_table(columns, fitted)
        return
    if any(heading for heading, _ in columns):
        say(_aligned([heading for heading, _ in columns], columns, widths), to=stream)
    for row in fitted:
        say(_aligned(row, columns, widths), to=stream)


def _fit(cell: Piece, wide: int, flexible: bool) -> Piece:
    if not flexible:
        return cell
    if isinstance(cell, str):
        return cut(cell, wide)
    return cut(cell[0], wide), cell[1]


def _aligned(row: Sequence[Piece], columns: Sequence[tuple[str, str]], widths: Sequence[int]) -> Line:
    line: list[Piece] = []
    for index, cell in enumerate(row):
        text = cell if isinstance(cell, str) else cell[0]
        padding = " " * (widths[index] - cells(text))
        gap = "  " if index + 1 < len(row) else ""
        line += [padding, cell, gap] if columns[index][1] == "right" else [cell, padding, gap]
    return line


def _rich_table(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Piece]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    headed = any(heading for heading, _ in columns)
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=headed, header_style="dim")
    for heading, side in columns:
        shown.add_column(Text(heading), justify="right" if side == "right" else "left", no_wrap=True)
    for row in rows:
        shown.add_row(*(Text(cell) if isinstance(cell, str) else Text(cell[0], _STYLES[cell[1]]) for cell in row))
    Console(file=sys.stdout, highlight=False, markup=False, emoji=False).print(shown, soft_wrap=False)


def emit(value: Any) -> None:
    """Prints one JSON value on stdout: the answer for a program."""
    import msgspec

    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")
