"""Recording: hides secrets in a text that comes in pieces, where a border may cut one in two.

Nothing is held back: a piece is stored when the program gets it. What is seen of a secret at the end of a
piece is hidden as its first part, the rest in the next piece as another part of the same one. From the
literal beginning of a token two characters more must have been seen to tell it from a word.
"""

from __future__ import annotations

from lockstep.log import placeholders
from lockstep.log.hiding import Hiding
from lockstep.log.names import Says
from lockstep.log.placeholders import Placeholder
from lockstep.session.secrets import Secrets

_CONTEXT = 256  # bytes before a piece that are looked at again: a name and what gives it a value
_MOST = 1 << 16


class Pieces:
    """One text: the body of an answer, or what a lane prints on a channel.

    framed   it holds its own framing, which counts bytes: each placeholder says how long the secret is
    """

    def __init__(self, secrets: Secrets, *, framed: bool = False) -> None:
        self._secrets = secrets
        self._framed = framed
        self._hiding: Hiding = secrets.hiding
        self._before = b""  # the end of what came so far
        self._begun: tuple[int, tuple[str, str]] | None = None  # a secret that may go on: where, its name and form

    def hide(self, data: bytes) -> bytes:
        """The next piece with placeholders in it."""
        base = len(self._before)
        whole = self._before + data
        hits = self._hiding.hits(whole, Says.NOTHING, "", partial=True)
        begun, self._begun = self._begun, None
        pieces: list[bytes] = []
        at = base
        for hit in hits:
            goes_on = begun is not None and begun[0] == hit.start
            if hit.end <= base:
                continue
            pieces.append(placeholders.escaped(whole[at : max(at, hit.start)]))
            text = whole[hit.start : hit.end]
            if hit.start >= base and not hit.open and not self._framed:
                pieces.append(self._secrets.stand(text, hit.kind))
            else:
                if hit.start >= base and not hit.open:
                    named = self._secrets.exactly(text, hit.kind)
                else:
                    named = self._secrets.grow(text, hit.kind, begun[1] if goes_on and begun is not None else None)
                part = Placeholder(*named, max(0, base - hit.start), hit.end - hit.start)
                pieces.append(part.text())
                if hit.open:
                    self._begun = (hit.start, named)
            at = max(at, hit.end)
        pieces.append(placeholders.escaped(whole[at:]))
        self._keep(whole)
        return b"".join(pieces)

    def _keep(self, whole: bytes) -> None:
        if self._begun is None and whole.endswith(b"\n\n"):
            self._before = b""  # no name is apart from its value by an empty line
            return
        least = len(whole) - _CONTEXT
        if self._begun is not None:
            least = max(self._begun[0] - _CONTEXT, len(whole) - _MOST)
        least = max(0, least)
        self._before = whole[least:]
        if self._begun is not None:
            start = self._begun[0] - least
            self._begun = (start, self._begun[1]) if start >= 0 else None
