"""How Lockstep speaks: plain lines, colour and tables for a terminal, one JSON object for programs.

Rich gets ready-made `Text`, never markup: what was recorded is shown and not interpreted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from lockstep.debugger.lines import Line, Piece, cells, cut

_CODES = {"good": "32", "bad": "31", "warn": "33", "dim": "2", "strong": "1", "address": "36"}
_STYLES = {"good": "green", "bad": "red", "warn": "yellow", "dim": "dim", "strong": "bold", "address": "cyan"}


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


def say(line: Line | str = "", *, to: TextIO | None = None, end: str = "\n") -> None:
    """Prints one line, by default on stderr, where Lockstep's own words go."""
    stream = sys.stderr if to is None else to
    pieces = [line] if isinstance(line, str) else line
    colour = coloured(stream)
    text = "".join(_painted(piece, colour) for piece in pieces)
    stream.write(_encodable(text.rstrip(), stream) + end)


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
        _rich_table(columns, fitted, max(available, sum(widths) + 2 * len(widths)))
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


def _rich_table(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[Piece]], room: int) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    headed = any(heading for heading, _ in columns)
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=headed, header_style="dim")
    for heading, side in columns:
        shown.add_column(Text(heading), justify="right" if side == "right" else "left", no_wrap=True)
    for row in rows:
        shown.add_row(*(Text(cell) if isinstance(cell, str) else Text(cell[0], _STYLES[cell[1]]) for cell in row))
    # What does not give way may stand out of a narrow terminal: an address that was cut is of no use.
    Console(file=sys.stdout, width=room, highlight=False, markup=False, emoji=False).print(shown, crop=False)


def emit(value: Any) -> None:
    """Prints one JSON value on stdout: the answer for a program."""
    import msgspec

    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n")
