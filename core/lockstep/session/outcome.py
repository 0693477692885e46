"""Recording: the parts of one outcome on their way to the log, with their secrets hidden."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lockstep.log.model import Value
from lockstep.session.pieces import Pieces
from lockstep.session.secrets import Secrets

if TYPE_CHECKING:
    from lockstep.log.incoming import Incoming
    from lockstep.session.coded import Coded


class Outcome:
    """The parts of one effect: pieces of bytes are one text, and may be the answer to an HTTP request, as the
    client has it or as it came over the wire, encoded or not."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._text: Pieces | None = None
        self._incoming: Incoming | None = None  # as it came over the wire
        self._coded: Coded | None = None

    def hide(self, value: Value) -> Value:
        """The next part."""
        if isinstance(value, bytes):
            return self._piece(value)
        if not isinstance(value, dict):
            return self._secrets.hide(value)
        item = value.get("item")
        if isinstance(item, str) and len(value) == 1:  # a generator's, which may hand out a text in pieces
            return {"item": self._plain(item.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")}
        segments = value.get("raw")
        if not isinstance(segments, list):
            if self._incoming is None:
                self._coded = _encoded(self._secrets, value.get("headers")) or self._coded
            return self._secrets.hide(value)
        if self._incoming is None:
            # Here, as below: a program that starts need not wait for it.
            from lockstep.log.incoming import Incoming

            self._incoming = Incoming()
            self._text = Pieces(self._secrets, framed=True)
        head: Any = self._secrets.hide({name: item for name, item in value.items() if name != "raw"})
        raw: list[Value] = []
        for segment in segments:
            raw += self._split(segment) if isinstance(segment, bytes) else [segment]
        return {**head, "raw": raw}

    def _piece(self, data: bytes) -> Value:
        if self._incoming is not None:
            stored = self._split(data)
            if len(stored) == 1:
                return stored[0]
            # A head and the begin of an encoded body came in one piece.
            texts = [text for text in stored if isinstance(text, bytes)]
            return b"".join(texts) if len(texts) == len(stored) else {"raw": stored}
        if self._coded is not None:
            return self._coded.hide(data, data)
        return self._plain(data)

    def _plain(self, data: bytes) -> bytes:
        if self._text is None:
            self._text = Pieces(self._secrets)
        return self._text.hide(data)

    def _split(self, data: bytes) -> list[Value]:
        """A piece of what came over the wire, in one or two: the head, and what follows."""
        incoming = self._incoming
        assert incoming is not None
        if self._coded is not None:
            return [self._coded.hide(data, incoming.feed(data))]
        headed = bool(incoming.head)
        body = incoming.feed(data)
        if headed or not incoming.encoding:
            return [self._plain(data)]
        from lockstep.session.coded import Coded

        self._coded = Coded(self._secrets, incoming.encoding)
        cut = len(data) - incoming.after
        head = self._plain(data[:cut])
        return [head, self._coded.hide(data[cut:], body)] if cut < len(data) else [head]


def _encoded(secrets: Secrets, headers: Value) -> Coded | None:
    if not isinstance(headers, list):
        return None
    for pair in headers:
        if isinstance(pair, list) and len(pair) == 2 and str(pair[0]).lower() == "content-encoding":
            from lockstep.session.coded import Coded

            return Coded(secrets, str(pair[1]))
    return None
