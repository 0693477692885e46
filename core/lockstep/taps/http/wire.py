"""HTTP/1.1 as bytes: where a head ends, how long a body is, and a body without its chunk frames."""

from __future__ import annotations

import re

type Pairs = list[tuple[str, str]]

_END_OF_HEAD = re.compile(rb"\n\r?\n")
_STATUS = re.compile(rb"^HTTP/\d(?:\.\d)? (\d{3})\b", re.MULTILINE)
_INTERIM = re.compile(rb"HTTP/\d(?:\.\d)? 100\b")


def end_of_head(data: bytes) -> int:
    """Where the body begins, -1 while the head is not whole. `100 Continue` answers belong to the head."""
    start = 0
    while True:
        found = _END_OF_HEAD.search(data, start)
        if found is None:
            return -1
        if not _INTERIM.match(data, start):
            return found.end()
        start = found.end()


def headers_of(head: bytes) -> Pairs:
    """The header lines of a head, the first line left out. Continuation lines are joined."""
    pairs: Pairs = []
    for line in head.decode("latin-1").splitlines()[1:]:
        if line[:1] in (" ", "\t") and pairs:
            pairs[-1] = (pairs[-1][0], f"{pairs[-1][1]} {line.strip()}")
            continue
        name, colon, value = line.partition(":")
        if colon:
            pairs.append((name.strip(), value.strip()))
    return pairs


def status_of(head: bytes) -> int | None:
    """The status of an answer's head, that of the final answer where interim ones came before."""
    found = _STATUS.findall(head)
    return int(found[-1]) if found else None


class Body:
    """Follows the bytes of a body to its end.

    length  bytes of the body; None: until the connection closes; "chunked": as the chunks say
    """

    __slots__ = ("_chunks", "_left", "complete")

    def __init__(self, length: int | str | None) -> None:
        self._chunks = Dechunker() if length == "chunked" else None
        self._left = length if isinstance(length, int) else None
        self.complete = self._left == 0

    def feed(self, data: bytes) -> bool:
        """Takes note of more bytes; whether the body is complete now."""
        if self._chunks is not None:
            self._chunks.feed(data)
            self.complete = self._chunks.complete
        elif self._left is not None:
            self._left -= len(data)
            self.complete = self._left <= 0
        return self.complete


class Dechunker:
    """Takes chunk frames off, in any cut of the bytes. `complete` after the trailer's last line."""

    __slots__ = ("_left", "_line", "_trailer", "complete")

    def __init__(self) -> None:
        self._line = b""  # a size line or trailer line that is not whole yet
        self._left = 0  # of the current chunk, its CRLF included
        self._trailer = False
        self.complete = False

    def feed(self, data: bytes) -> list[bytes]:
        """The pieces of content in these bytes."""
        content: list[bytes] = []
        at = 0
        while at < len(data) and not self.complete:
            if self._left:
                piece = data[at : at + self._left]
                # The two last bytes of a chunk are its line end.
                keep = min(len(piece), max(0, self._left - 2))
                if keep:
                    content.append(piece[:keep])
                self._left -= len(piece)
                at += len(piece)
                continue
            end = data.find(b"\n", at)
            if end < 0:
                self._line += data[at:]
                break
            self._read_line((self._line + data[at:end]).rstrip(b"\r"))
            self._line = b""
            at = end + 1
        return content

    def _read_line(self, line: bytes) -> None:
        if self._trailer:
            self.complete = not line
            return
        try:
            size = int(line.partition(b";")[0], 16)
        except ValueError:
            self.complete = True  # not chunked after all: nothing can be said of what follows
            return
        if size:
            self._left = size + 2
        else:
            self._trailer = True


class Outgoing:
    """A request on its way out, from its first line to the end of its body."""

    __slots__ = ("_body", "_head", "_parts", "complete", "headers", "line", "size")

    def __init__(self) -> None:
        self._head = b""
        self._body: Body | None = None
        self._parts: list[bytes] = []
        self.line = ""
        self.headers: Pairs = []
        self.complete = False
        self.size = 0

    @property
    def at_head(self) -> bool:
        """Whether the head is whole and nothing of the body has been sent."""
        return self._body is not None and not self._parts

    @property
    def open_ended(self) -> bool:
        """Whether the request says nothing of where its body ends."""
        return self._body is not None and self._length() is None

    def feed(self, data: bytes) -> None:
        self.size += len(data)
        if self._body is None:
            self._head += data
            end = end_of_head(self._head)
            if end < 0:
                return
            head, data = self._head[:end], self._head[end:]
            self.line = head.partition(b"\n")[0].strip().decode("latin-1")
            self.headers = headers_of(head)
            self._body = Body(self._length())
            self._head = b""
        if data:
            self._parts.append(data)
            self._body.feed(data)
        self.complete = self._body.complete

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    def body(self) -> bytes:
        """The body as the server reads it: without chunk frames."""
        if self._chunked():
            chunks = Dechunker()
            return b"".join(piece for part in self._parts for piece in chunks.feed(part))
        return b"".join(self._parts)

    def _chunked(self) -> bool:
        return "chunked" in (self.header("transfer-encoding") or "").lower()

    def _length(self) -> int | str | None:
        if self._chunked():
            return "chunked"
        length = self.header("content-length")
        if length is not None:
            return int(length) if length.isascii() and length.isdigit() else None
        # Some send a body without saying how long it is: then only the call for the answer ends it.
        return None if self.line.partition(" ")[0] in ("POST", "PUT", "PATCH") else 0
