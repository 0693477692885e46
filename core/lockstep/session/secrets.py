"""The secrets of one session: what stands for each of them in the log, and what it stands for.

Everything that is stored passes through `hide` and everything that a replay hands out through `reveal`.
Match keys and digests are made of the hidden form in both modes.

* A secret from the environment is named after its variable. In a replay it is what that variable holds now,
  else what the vault has, else the placeholder itself.
* Any other is named by its kind and number in the order of first appearance, which is a race where strands
  run at once: so a replay goes by values. One that it does not know takes the name that the recording has in
  its place (`lockstep.session.following`).
* Once known, a value is hidden wherever it appears, if it is too long and odd to be a word (`_distinct`).
"""

from __future__ import annotations

import zlib
from _thread import RLock
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lockstep.log import canonical, hiding, placeholders
from lockstep.log.model import Value
from lockstep.log.names import Judge, Rules
from lockstep.log.placeholders import FORM, FORMS, JSON, URL, Placeholder
from lockstep.log.redact import Hit, scan
from lockstep.log.vault import Vault

KEPT = "coded-answer"  # a kind of which the values stand nowhere in a text
_WORDS_LONG = 16
_DISTINCT = 8
_SEEN = 4  # characters by which the beginning of a known value is told at the end of a piece
_PLACES = frozenset(("PWD", "OLDPWD"))  # a shell's directories, not passwords
_CONSTANTS = frozenset(("true", "false", "yes", "no", "on", "off", "none", "null"))


class Secrets:
    """The mapping of one session. Usable from any thread.

    vault    where a recording keeps the values; None keeps none
    process  the stream's process: others of the run number their own
    stood_in names of secrets that were handed out as placeholders, since nobody knows their values
    """

    def __init__(
        self, *, rules: Rules = Rules(), vault: Vault | None = None, process: str = "main", replay: bool = False  # noqa: B008 - immutable
    ) -> None:  # fmt: skip
        self.vault = vault
        self.rules = rules
        self.fault: Callable[[str, BaseException], None] = lambda where, error: None
        self.stood_in: set[str] = set()
        self._replay = replay
        self._suffix = "" if process == "main" else f"-{zlib.crc32(process.encode()):08x}"
        self._lock: Any = RLock()
        self._forms: dict[bytes, tuple[str, str]] = {}  # a value, as it stands in a text -> name, form
        self._values: dict[str, bytes] = {}  # what to hand out
        self._everywhere: tuple[bytes, ...] = ()  # what is hidden wherever it stands, longest first
        self._counts: dict[str, int] = {}
        self._stored: set[str] = set()
        self._recorded: dict[str, bytes] = {}  # replay: what the vault has
        self._growing: set[str] = set()  # names of values of which only a first part has come
        self._new_names: set[str] = set()  # replay: of values that the recording does not have
        self._judge = Judge(rules)
        self._hiding = hiding.Hiding(self._judge, self.stand, self._known)

    # What sessions ask.

    def hide(self, value: Value) -> Value:
        """The value with placeholders in the place of credentials; the same object where there are none."""
        return self._hiding.value(value)

    def hide_more(self, value: Value) -> Value:
        """As `hide`, for what may have been hidden already: every placeholder in it is one."""
        return hiding.Hiding(self._judge, self.stand, self._known, stored=True).value(value)

    def reveal(self, value: Value) -> Value:
        """The value as the program gets it: placeholders become what they stand for."""
        return hiding.revealed(value, self._reveal_text)

    def asked(self, kind: str, name: str, request: Value, key: Value) -> tuple[str, Value, bytes]:
        """A call with its secrets hidden: name, request and match key."""
        hide = self._hiding.value
        called: Any = hide(name)
        told = hide(request)
        compared = told if key is request else hide(key)
        if called is name and compared is key:
            return name, told, canonical.key(kind, name, key)
        return called, told, self.key(kind, called, compared)

    def key(self, kind: str, name: str, hidden: Value) -> bytes:
        """The match key of a call with its secrets hidden. How a secret is written there (in a URL, in JSON) does
        not count, since a placeholder that stands in for it is written in one way only."""
        told: Any = hiding.revealed([name, hidden], _as_it_is)
        return canonical.key(kind, told[0], told[1])

    def environment(self, variables: Mapping[str, Value]) -> dict[str, Value]:
        """Variables that the program has read, by name."""
        return {name: self._variable(name, value) for name, value in variables.items()}

    def command(self, words: list[Value]) -> list[Value]:
        """The words of a command."""
        return self._hiding.words(words)

    # What is known from the start.

    def know_environment(self, environ: Mapping[str, str]) -> None:
        """The secrets in the environment, each named after its variable. Before `know`: they win."""
        for name in sorted(environ):
            value = environ[name].encode("utf-8", "surrogateescape")
            if not value or name.startswith("LOCKSTEP_") or name in _PLACES:
                continue
            if self._judge.variable(name):
                if len(value) >= 4 and environ[name].lower() not in _CONSTANTS:
                    self._learn(value, name)
            elif len(value) >= _DISTINCT:
                for number, hit in enumerate(scan(value, self._judge), 1):
                    self._learn(value[hit.start : hit.end], f"{name}--{number}")

    def know(self, values: Mapping[str, bytes]) -> None:
        """The values that the vault has. What is known already stays what is handed out."""
        self._recorded = dict(values)
        for name, value in values.items():
            if name.startswith(KEPT):
                self._values[name] = value
            else:
                self._learn(value, name)

    def learn(self, value: bytes, name: str) -> None:
        """Replay: this value stands where the recording has that secret."""
        with self._lock:
            for text, (named, form) in list(self._forms.items()):
                if named in self._new_names and self._values.get(named) == value:
                    self._forms[text] = (name, form)
            self._learn(value, name)

    def name(self, value: bytes) -> str | None:
        """The name of a value that is known, in whatever form."""
        found = self._forms.get(value)
        return found[0] if found is not None else None

    def names(self) -> list[str]:
        """The names of all secrets so far."""
        return list(self._values)

    def value(self, name: str) -> bytes | None:
        """What is handed out for a name; None where it is not known."""
        return self._values.get(name)

    def values(self, name: str) -> list[bytes]:
        """All that is known to be a value of this secret."""
        return [value for value, (named, form) in list(self._forms.items()) if named == name and not form]

    def everywhere(self, value: bytes) -> bool:
        """Whether a value is hidden wherever it stands."""
        return value in self._everywhere

    def is_new(self, name: str) -> bool:
        """Replay: whether the recording has no such name."""
        return name in self._new_names

    def same(self, recorded: Value, now: Value) -> bool:
        """Replay: whether the program's value is the recorded one. What is unknown in it becomes known."""
        from lockstep.session.following import Following

        if self.reveal(recorded) == now:
            return True
        laid = Following(self)
        if not laid.lay(recorded, now):
            return False
        laid.accept()
        return True

    def grow(self, value: bytes, kind: str, begun: tuple[str, str] | None) -> tuple[str, str]:
        """As much of a secret as has come, where it may go on or began in an earlier piece, which called it
        `begun`. Returns its name and form."""
        with self._lock:
            if begun is not None:
                name, form = begun
                known = self._values[name]
                text = placeholders.variant(known, form) if form else known
                if text.startswith(value):
                    return begun
                if name in self._growing and value.startswith(known):
                    self._grow(name, known, value, kind)
                    return begun
            known_text = next((each for each in self._everywhere if self._may_begin(each, value, kind)), None)
            found = self._forms.get(known_text if known_text is not None else value)
            if found is None:
                found = self._named(value, "", kind)
                self._growing.add(found[0])
            if not self._replay and found[0] not in self._stored:
                self._store(found[0])
            return found

    def keep(self, data: bytes, kind: str) -> bytes:
        """A name for bytes that hold a secret, and are none that could stand in another text."""
        with self._lock:
            number = self._counts[kind] = self._counts.get(kind, 0) + 1
            name = f"{kind}-{number}{self._suffix}"
            self._values[name] = data
        self._store(name)
        return Placeholder(name).text()

    def exactly(self, value: bytes, kind: str) -> tuple[str, str]:
        """Name and form of a secret that stands in a text whose framing counts its bytes."""
        self.stand(value, kind)
        return self._forms[value]

    def _may_begin(self, known: bytes, value: bytes, kind: str) -> bool:
        # A character or two begin many values: then it is one of that kind, if any.
        if not known.startswith(value):
            return False
        return len(value) >= _SEEN or self._forms[known][0].startswith(f"{placeholders.label(kind)}-")

    def _grow(self, name: str, known: bytes, value: bytes, kind: str) -> None:
        gone = [text for text, (named, _) in self._forms.items() if named == name]
        for text in gone:
            del self._forms[text]
        self._everywhere = tuple(text for text in self._everywhere if text not in gone)
        self._values[name] = value
        self._learn(value, name, kind)
        self._stored.discard(name)
        self._store(name)

    def follow_command(self, recorded: list[Value], now: list[Value]) -> None:
        """Replay: takes what stands in this process's command where the recorded one had secrets."""
        from lockstep.session.following import Following

        for old, new in zip(recorded, now, strict=False):
            laid = Following(self, trusting=True)
            if self.reveal(old) != new and laid.lay(old, new):
                laid.accept()

    def forked(self, process: str) -> Secrets:
        """In a forked child, which knows what its parent knew and numbers its own."""
        self._lock = RLock()
        self._suffix = f"-{zlib.crc32(process.encode()):08x}"
        return self

    def goes_live(self, vault: Vault, branch: str) -> None:
        """Of a fork that has served its part: what it finds from now on is kept, and numbered as the branch's own."""
        with self._lock:
            self._replay = False
            self._stored = set(self._recorded)
            self._suffix += f"-{zlib.crc32(branch.encode()):08x}"
            self.vault = vault

    def other(self, hidden: Value) -> bool:
        """Replay: whether something in this stands for another value than the recorded one."""
        found: list[bool] = []

        def look(text: bytes) -> bytes:
            found.extend(
                not self._value(each.name)[1] for each in placeholders.split(text) if not isinstance(each, bytes)
            )
            return text

        hiding.revealed(hidden, look)
        return any(found)

    def reveal_piece(self, value: Value, begun: set[str]) -> Value:
        """As `reveal`, for one piece of a text. Of a secret that has another value than recorded the first part
        stands for all of it; `begun` has the names of which that was handed out."""

        def text(data: bytes) -> bytes:
            pieces = []
            for piece in placeholders.split(data):
                if isinstance(piece, bytes):
                    pieces.append(piece)
                    continue
                first = Placeholder(piece.name, piece.form, 0, piece.stop)
                pieces.append(self.given(piece if piece.name in begun or piece.stop is None else first))
                begun.add(piece.name)
            return b"".join(pieces)

        return hiding.revealed(value, text) if self.other(value) else self.reveal(value)

    def given(self, piece: Placeholder) -> bytes:
        """Replay: what the program gets for a placeholder."""
        return placeholders.given(piece, *self._value(piece.name))

    @property
    def hiding(self) -> hiding.Hiding:
        return self._hiding

    @property
    def judge(self) -> Judge:
        return self._judge

    # Names.

    def stand(self, value: bytes, kind: str) -> bytes:
        """What stands in the log for a secret. A new one gets a name, and a place in the vault."""
        found = self._forms.get(value)
        if found is None:
            with self._lock:
                found = self._forms.get(value) or self._new(value, kind)
        name, form = found
        if not self._replay and name not in self._stored:
            self._store(name)
        return Placeholder(name, form).text()

    def _new(self, value: bytes, kind: str) -> tuple[str, str]:
        # In a URL or a JSON string it may be written in another way than it is.
        plain, form = value, ""
        for sign, way in ((b"%", URL), (b"%", FORM), (b"+", FORM), (b"\\", JSON)):
            if sign in value and (read := placeholders.plain(value, way)) is not None:
                plain, form = read, way
                break
        if plain in self._forms:
            return self._forms[plain][0], form
        return self._named(plain, form, kind)

    def _named(self, plain: bytes, form: str, kind: str) -> tuple[str, str]:
        label = placeholders.label(kind)
        number = self._counts[label] = self._counts.get(label, 0) + 1
        name = f"{label}{'-new' if self._replay else ''}-{number}{self._suffix}"
        if self._replay:
            self._new_names.add(name)
        self._learn(plain, name, kind)
        return name, form

    def _learn(self, value: bytes, name: str, kind: str = "") -> None:
        with self._lock:
            self._values.setdefault(name, value)
            forms = {value: ""}
            for form in FORMS:
                forms.setdefault(placeholders.variant(value, form), form)
            new = [text for text in forms if text not in self._forms]
            for text in new:
                self._forms[text] = (name, forms[text])
            if new and _distinct(value, kind):
                self._everywhere = tuple(sorted((*self._everywhere, *new), key=len, reverse=True))
            self._hiding.forget()

    def _store(self, name: str) -> None:
        with self._lock:
            if name in self._stored:
                return
            self._stored.add(name)
        if self.vault is not None:
            try:
                self.vault.put(name, self._values[name])
            except OSError as error:
                self.fault("vault", error)

    # Texts.

    def _known(self, data: bytes, partial: bool) -> Iterator[Hit]:
        for value in self._everywhere:
            at = data.find(value)
            while at >= 0:
                yield Hit(at, at + len(value), "known")
                at = data.find(value, at + len(value))
            at = data.rfind(value[:_SEEN], max(0, len(data) - len(value) + 1)) if partial else -1
            if at >= 0 and value.startswith(data[at:]):
                yield Hit(at, len(data), "known", True)

    def _reveal_text(self, data: bytes) -> bytes:
        return placeholders.revealed(data, self._value)

    def _value(self, name: str) -> tuple[bytes, bool]:
        value = self._values.get(name)
        if value is None:
            # The program gets the placeholder, and may send it where it would have sent the value.
            self._learn(Placeholder(name).text(), name)
            value = self._values[name]
        if value == Placeholder(name).text():
            self.stood_in.add(name)
        return value, value is self._recorded.get(name) or value == self._recorded.get(name)

    def _variable(self, name: str, value: Value) -> Value:
        if not isinstance(value, str) or not value:
            return value
        if not self._judge.variable(name):
            return self.hide(value)
        data = value.encode("utf-8", "surrogateescape")
        if self._values.setdefault(name, data) != data:
            return self._hiding.value({name: value})[name]  # type: ignore[index, call-overload]
        self._learn(data, name)
        if not self._replay:
            self._store(name)
        return Placeholder(name).text().decode()


def _as_it_is(text: bytes) -> bytes:
    for form in FORMS:
        text = text.replace(b"lockstep-secret-" + form.encode() + b".", b"lockstep-secret.")
    return text


def _distinct(value: bytes, kind: str) -> bool:
    """Whether a value is so long and odd that it is no word that stands elsewhere for itself."""
    size = len(value)
    if size >= _WORDS_LONG:
        return not value.isdigit()
    if size < _DISTINCT or kind == "cookie":
        return False
    letters = any(65 <= (byte & 0xDF) <= 90 for byte in value)
    return letters and any(byte < 65 and byte not in b" -._/," for byte in value)
