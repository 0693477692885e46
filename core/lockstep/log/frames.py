"""HTTP answers as they came over the wire, with placeholders in them.

Content-Length and the sizes of chunks count the bytes of the secrets that were there. Where something of
another length stands in their place now, the counts are made to fit. Each placeholder of such an answer says
how many bytes it stands for (`Pieces(framed=True)`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from lockstep.log import placeholders
from lockstep.log.model import Value
from lockstep.log.placeholders import Placeholder

_HEAD_END = re.compile(rb"\r?\n\r?\n")
_LENGTH = re.compile(rb"(?im)^content-length[ \t]*:[ \t]*([0-9]+)")
_CHUNKED = re.compile(rb"(?im)^transfer-encoding[ \t]*:[^\r\n]*\bchunked")
_SIZE = re.compile(rb"([0-9A-Fa-f]+)[^\r\n]*\r?\n")
_INTERIM = re.compile(rb"HTTP/1\.[01] 1[0-9][0-9][^0-9]")
_FILL = b"*"

_UNCOUNTED = 999_999_998  # a first byte that no secret has

type Stand = Callable[[Placeholder], bytes]


class _Edit(msgspec.Struct, frozen=True):
    """Bytes [start, end) of the answer as it came, and what stands there now."""

    start: int
    end: int
    text: bytes


def is_framed(value: Value) -> bool:
    """Whether this is the first part of an answer as it came over the wire."""
    return isinstance(value, dict) and isinstance(value.get("raw"), list)


def uncounted(piece: Placeholder) -> Placeholder:
    """A placeholder in an answer that is made and was never received: it counts as one byte, until `refit` puts a
    secret in its place."""
    return Placeholder(piece.name, piece.form, _UNCOUNTED, _UNCOUNTED + 1)


def is_uncounted(piece: Placeholder) -> bool:
    """Whether a placeholder is one of these."""
    return piece.start == _UNCOUNTED


def refit(parts: Sequence[Value], stand: Stand) -> list[Value]:
    """The parts of such an answer with `stand` in the place of placeholders, and with counts that fit."""
    edits: list[_Edit] = []
    borders: list[int] = []  # where the text of each segment ends
    came: list[bytes] = []
    at = 0
    for segment in _segments(parts):
        for piece in placeholders.split(segment):
            if isinstance(piece, bytes):
                came.append(piece)
                at += len(piece)
            else:
                text = stand(piece)
                size = len(text) if piece.stop is None else piece.stop - piece.start
                came.append(_FILL * size)
                edits.append(_Edit(at, at + size, text))
                at += size
        borders.append(at)
    data = b"".join(came)
    more, grown = _counts(data, edits) if any(len(edit.text) != edit.end - edit.start for edit in edits) else ([], 0)
    edits = sorted((*edits, *more), key=lambda edit: edit.start)
    pieces = _cut(data, edits, borders)
    return _rebuilt(parts, pieces, grown)


def _segments(parts: Sequence[Value]) -> list[bytes]:
    found: list[bytes] = []
    for part in parts:
        if isinstance(part, bytes):
            found.append(part)
        elif isinstance(part, dict) and isinstance(raw := part.get("raw"), list):
            found += [segment for segment in raw if isinstance(segment, bytes)]
    return found


def _counts(data: bytes, edits: Sequence[_Edit]) -> tuple[list[_Edit], int]:
    """What has to be counted anew, and by how many bytes a body of counted length has grown."""
    start = 0
    while (head := _HEAD_END.search(data, start)) is not None and _INTERIM.match(data, start):
        start = head.end()
    if head is None:
        return [], 0
    if _CHUNKED.search(data, start, head.end()):
        return _chunks(data, head.end(), edits), 0
    length = _LENGTH.search(data, start, head.end())
    if length is None:
        return [], 0
    grown = _grown(edits, head.end(), head.end() + int(length[1]))
    return ([_Edit(*length.span(1), str(int(length[1]) + grown).encode())] if grown else []), grown


def _chunks(data: bytes, at: int, edits: Sequence[_Edit]) -> list[_Edit]:
    found = []
    while (size := _SIZE.match(data, at)) is not None:
        count = int(size[1], 16)
        end = size.end() + count
        # A secret that a border between chunks cuts counts where it begins.
        grown = _grown(edits, size.end(), end)
        if grown:
            found.append(_Edit(*size.span(1), f"{count + grown:x}".encode()))
        if not count:
            break
        at = end + (2 if data[end : end + 2] == b"\r\n" else 1)
    return found


def _grown(edits: Sequence[_Edit], start: int, end: int) -> int:
    return sum(len(edit.text) - (edit.end - edit.start) for edit in edits if start <= edit.start < end)


def _cut(data: bytes, edits: Sequence[_Edit], borders: Sequence[int]) -> list[bytes]:
    pieces = []
    at, index = 0, 0
    for border in borders:
        piece: list[bytes] = []
        while index < len(edits) and edits[index].start < border:
            edit = edits[index]
            piece += (data[at : edit.start], edit.text)
            at = edit.end
            index += 1
        piece.append(data[at : max(at, border)])
        at = max(at, border)
        pieces.append(b"".join(piece))
    return unemptied(pieces)


def unemptied(pieces: list[bytes]) -> list[bytes]:
    """The same bytes, with something in each piece where there is enough: nothing at all means the end."""
    for number in range(1, len(pieces)):
        before = pieces[number - 1]
        if not pieces[number] and len(before) > 1:
            pieces[number - 1], pieces[number] = before[:-1], before[-1:]
    return pieces


def _rebuilt(parts: Sequence[Value], pieces: list[bytes], grown: int) -> list[Value]:
    left = iter(pieces)
    made: list[Value] = []
    for part in parts:
        if isinstance(part, bytes):
            made.append(next(left))
        elif isinstance(part, dict) and isinstance(raw := part.get("raw"), list):
            new: dict[str, Any] = {
                **part, "raw": [next(left) if isinstance(segment, bytes) else segment for segment in raw],
            }  # fmt: skip
            if grown and type(part.get("length")) is int:
                new["length"] = int(str(part["length"])) + grown
            made.append(new)
        else:
            made.append(part)
    return made
