"""Replay: hides a call as its recording was hidden, where the two are the same but for unknown secrets.

The first try at a call hides it by what is known, and is right nearly always. Where its key is not the
recorded one, the recorded request is laid over the present one. A placeholder stands for any value known
to be that secret's, or for one that nobody knows yet: where such a value is a credential by itself too, it
takes the name. Then the call is hidden by the names of that request alone, so that neither what became
known later in the recording nor a newer rule makes a difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lockstep.log import hiding, placeholders
from lockstep.log.model import Value
from lockstep.log.names import Says
from lockstep.log.placeholders import Placeholder
from lockstep.log.redact import Hit
from lockstep.session.secrets import Secrets


class Following:
    """One recorded value laid over a present one. `trusting`: whatever stands in the place of a secret is one."""

    def __init__(self, secrets: Secrets, *, trusting: bool = False) -> None:
        self._trusting = trusting
        self._secrets = secrets
        self._named: set[str] = set()  # the placeholders of the recorded value
        self._taken: dict[bytes, str] = {}  # values that take a name
        self._forms: dict[bytes, Placeholder] = {}
        self._hiding = hiding.Hiding(secrets.judge, self._stand, self._known)

    @property
    def any(self) -> bool:
        """Whether the recorded value has placeholders."""
        return bool(self._named)

    def lay(self, recorded: Value, now: Value, name: str = "") -> bool:
        """Lays one over the other. False: they differ in more than the values of secrets."""
        if isinstance(recorded, (str, bytes)):
            return self._lay_text(recorded, now, name)
        if isinstance(recorded, dict) and isinstance(now, dict):
            same = recorded.keys() == now.keys()
            for key, item in recorded.items():
                if key in now:
                    same = self.lay(item, now[key], key) and same
            return same
        if isinstance(recorded, list) and isinstance(now, list | tuple):
            if all(_is_pair(item) for item in (*recorded, *now)):
                return self._lay_pairs(recorded, list(now))
            same = len(recorded) == len(now)
            for old, new in zip(recorded, now, strict=False):
                same = self.lay(old, new, name) and same
            return same
        return type(recorded) is type(now) and recorded == now

    def hide(self, value: Value) -> Value:
        """Hides by the names of the recorded value only."""
        for name in self._named:
            for known in self._secrets.values(name):
                self._form(known, name)
        for known, name in self._taken.items():
            self._form(known, name)
        return self._hiding.value(value)

    def accept(self) -> None:
        """It was the recorded call: the values keep their names."""
        for value, name in self._taken.items():
            self._secrets.learn(value, name)

    def _form(self, value: bytes, name: str) -> None:
        self._forms.setdefault(value, Placeholder(name))
        for form in placeholders.FORMS:
            self._forms.setdefault(placeholders.variant(value, form), Placeholder(name, form))

    def _stand(self, value: bytes, kind: str) -> bytes:
        found = self._forms.get(value)
        return placeholders.escaped(value) if found is None else found.text()

    def _known(self, data: bytes, partial: bool) -> Iterator[Hit]:
        for value in self._forms:
            if self._secrets.everywhere(value):
                at = data.find(value)
                while at >= 0:
                    yield Hit(at, at + len(value), "known")
                    at = data.find(value, at + len(value))

    def _lay_pairs(self, recorded: list[Any], now: list[Any]) -> bool:
        # Headers that are not compared may be more or fewer.
        same = [old[0] for old in recorded] == [new[0] for new in now]
        waiting = list(now)
        for old in recorded:
            new = next((pair for pair in waiting if pair[0] == old[0]), None)
            if new is not None:
                waiting.remove(new)
                same = self.lay(old[1], new[1], str(old[0])) and same
        return same

    def _lay_text(self, recorded: str | bytes, now: Value, name: str) -> bool:
        if type(now) is not type(recorded):
            return False
        raw = _bytes(recorded)
        if placeholders.MARK not in raw:
            return bool(recorded == now)
        data = _bytes(now)
        pieces = list(placeholders.split(raw))
        self._named.update(piece.name for piece in pieces if isinstance(piece, Placeholder))
        at = 0
        hits: list[Hit] | None = None
        for number, piece in enumerate(pieces):
            if isinstance(piece, bytes):
                if not data.startswith(piece, at):
                    return False
                at += len(piece)
                continue
            known = self._is_known(data, at, piece, pieces[number + 1 :])
            if known is None and self._trusting:
                after = pieces[number + 1] if number + 1 < len(pieces) else None
                known = data.find(after, at) if isinstance(after, bytes) else len(data)
                if known <= at or not self._take(data[at:known], piece):
                    return False
            if known is None:
                if hits is None:
                    says = self._secrets.judge.says(name) if name else Says.NOTHING
                    hits = self._hiding.hits(data, says, name)
                known = next((hit.end for hit in hits if hit.start == at), None)
                if known is None or not self._take(data[at:known], piece):
                    return False
            at = known
        return at == len(data)

    def _is_known(self, data: bytes, at: int, piece: Placeholder, rest: list[bytes | Placeholder]) -> int | None:
        """Where a known value of this placeholder ends; None if none stands here."""
        values = self._secrets.values(piece.name) + [v for v, name in self._taken.items() if name == piece.name]
        values.append(Placeholder(piece.name).text())
        after = rest[0] if rest and isinstance(rest[0], bytes) else b""
        for value in values:
            text = placeholders.given(piece, value)
            if text and data.startswith(text, at) and data.startswith(after, at + len(text)):
                return at + len(text)
        return None

    def _take(self, value: bytes, piece: Placeholder) -> bool:
        """Whether an unknown value may be what this placeholder stands for: one name for one value."""
        if piece.stop is not None:
            return False
        if piece.form:
            plain = placeholders.plain(value, piece.form)
            if plain is None:
                return False
            value = plain
        before = self._taken.get(value) or self._secrets.name(value)
        if before is not None and before != piece.name and not self._secrets.is_new(before):
            return False
        self._taken[value] = piece.name
        return True


def _is_pair(item: Value) -> bool:
    return isinstance(item, list | tuple) and len(item) == 2 and isinstance(item[0], str)


def _bytes(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
