"""What stands in the log for a secret: text that is legal in a header, a URL, a form, JSON and a file name.

    lockstep-secret.openai-key-1.            the first OpenAI key of the run
    lockstep-secret.DB_PASSWORD.             the value of that environment variable
    lockstep-secret-url.password-1.          the same password, percent-encoded
    lockstep-secret-form.password-1.         the same in a form, where a space is a plus
    lockstep-secret-json.password-1.         the same, as it stands inside a JSON string
    lockstep-secret-part.password-1.0-7.     its first 7 bytes, where a border between two pieces cut it
    lockstep-secret-part.password-1.7-12.    the rest
    lockstep-secret-literal.                 no secret: the program's own text was `lockstep-secret`

A name says of what kind a secret is and which of its kind, in the order of first appearance, or which
variable it came from. Nothing in it depends on the value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import msgspec

MARK = b"lockstep-secret"
LITERAL = MARK + b"-literal."
URL, FORM, JSON = "url", "form", "json"
FORMS = (URL, FORM, JSON)

_PLACEHOLDER = re.compile(
    rb"lockstep-secret(?:-literal\.|(?:-(url|form|json))?\.([A-Za-z0-9_-]{1,120})\."
    rb"|-part(?:-(url|form|json))?\.([A-Za-z0-9_-]{1,120})\.([0-9]{1,9})-([0-9]{1,9})\.)"
)
_ESCAPE = re.compile(rb"%([0-9A-Fa-f]{2})")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~")
_UNFIT = re.compile(r"[^A-Za-z0-9_]+")


class Placeholder(msgspec.Struct, frozen=True):
    """One placeholder in a text.

    form         how the value is written there: "" as it is, else one of FORMS
    start, stop  which bytes of that are meant; `stop` None: all of it
    """

    name: str
    form: str = ""
    start: int = 0
    stop: int | None = None

    def text(self) -> bytes:
        form = f"-{self.form}" if self.form else ""
        if self.stop is None:
            return f"lockstep-secret{form}.{self.name}.".encode()
        return f"lockstep-secret-part{form}.{self.name}.{self.start}-{self.stop}.".encode()


def label(words: str) -> str:
    """A kind as it stands in a name."""
    return _UNFIT.sub("-", words).strip("-").lower()[:40] or "secret"


def escaped(data: bytes) -> bytes:
    """Text of the program's own, in which nothing looks like a placeholder any more."""
    return data.replace(MARK, LITERAL)


def every(data: bytes) -> Iterator[re.Match[bytes]]:
    """The placeholders in hidden text, as matches."""
    return _PLACEHOLDER.finditer(data)


def split(data: bytes) -> Iterator[bytes | Placeholder]:
    """Takes hidden text apart: the program's own text, as it was, and placeholders."""
    at = 0
    own: list[bytes] = []
    for found in _PLACEHOLDER.finditer(data):
        own.append(data[at : found.start()])
        at = found.end()
        form, name, part_form, part, start, stop = found.groups()
        if name is None and part is None:
            own.append(MARK)
            continue
        if text := b"".join(own):
            yield text
        own = []
        if part is not None:
            yield Placeholder(part.decode(), (part_form or b"").decode(), int(start), int(stop))
        else:
            yield Placeholder(name.decode(), (form or b"").decode())
    if text := b"".join((*own, data[at:])):
        yield text


def joined(data: bytes) -> bytes:
    """Hidden text in which what a border has cut is one placeholder again: to read it, not to serve it."""
    if MARK + b"-part" not in data:
        return data
    pieces: list[bytes] = []
    before: Placeholder | None = None
    for piece in split(data):
        if isinstance(piece, bytes):
            pieces.append(escaped(piece))
            before = None
            continue
        if piece.stop is None:
            pieces.append(piece.text())
        elif before is None or before.name != piece.name or before.stop != piece.start:
            pieces.append(Placeholder(piece.name, piece.form).text())
        before = piece
    return b"".join(pieces)


def revealed(data: bytes, value: Callable[[str], tuple[bytes, bool]]) -> bytes:
    """Hidden text with the values in it. `value` gives what a name stands for, and whether that is the
    recorded value."""
    pieces = []
    for piece in split(data):
        pieces.append(piece if isinstance(piece, bytes) else given(piece, *value(piece.name)))
    return b"".join(pieces)


def given(piece: Placeholder, value: bytes, recorded: bool = True) -> bytes:
    """What the program gets for a placeholder. A value that is not the recorded one, cut up, comes whole in the
    place of its first part."""
    text = variant(value, piece.form) if piece.form else value
    if piece.stop is None:
        return text
    if recorded:
        return text[piece.start : piece.stop]
    return b"" if piece.start else text


def variant(value: bytes, form: str) -> bytes:
    """The value as it stands in a URL or a form, or inside a JSON string."""
    if form == URL:
        return _quoted(value)
    if form == FORM:
        return _quoted(value).replace(b"%20", b"+")
    text = msgspec.json.encode(value.decode("utf-8", "surrogateescape"))[1:-1] if _is_text(value) else value
    return bytes(text)


def plain(text: bytes, form: str) -> bytes | None:
    """The value that is written so in that form; None where it would be written in another way."""
    if form == URL:
        value = _unquoted(text)
    elif form == FORM:
        value = _unquoted(text.replace(b"+", b" "))
    else:
        try:
            value = msgspec.json.decode(b'"' + text + b'"', type=str).encode("utf-8", "surrogatepass")
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
    return value if variant(value, form) == text else None


# As urllib.parse has them, whose import takes 3 ms before the program's first line.
def _quoted(value: bytes) -> bytes:
    return b"".join(b"%c" % byte if byte in _UNRESERVED else b"%%%02X" % byte for byte in value)


def _unquoted(text: bytes) -> bytes:
    return _ESCAPE.sub(lambda found: bytes((int(found[1], 16),)), text)


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
