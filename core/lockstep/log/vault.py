"""The vault: the values of a run's secrets, in a file of their own that only their owner can read.

    <store>.vault/<vault id>        directory 0700, file 0600, one JSON line for each secret

It stays on the machine: nothing shows, lists, exports or verifies it, and no other part of a run depends on
it. The id is drawn for each run and is part of its meta, so that a run that is renamed, copied or imported
finds its values where they are, and a new run never finds another's. Several processes of a run append to
one file: a line is one write.
"""

from __future__ import annotations

import contextlib
import os

import msgspec

from lockstep.log import untapped

SUFFIX = ".vault"
_ID = 32  # hex digits
_HEX = frozenset("0123456789abcdef")


class _Line(msgspec.Struct, frozen=True, omit_defaults=True):
    name: str
    text: str | None = None
    raw: bytes = b""  # of a value that is no text; base64 in JSON


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Line).decode


def new_id() -> str:
    """A name for the vault of a new run."""
    return untapped.urandom(_ID // 2).hex()


def is_id(text: object) -> bool:
    """Whether this names a vault. What a run's meta says may come from a stranger."""
    return isinstance(text, str) and len(text) == _ID and _HEX.issuperset(text)


def path_of(store: str, vault: str) -> str:
    """The file that holds the values of a run."""
    return os.path.join(store + SUFFIX, vault)


class Vault:
    """The vault of one run. Nothing is created before there is a secret."""

    def __init__(self, store: str, vault: str) -> None:
        self._directory = store + SUFFIX
        self.path = path_of(store, vault)

    def put(self, name: str, value: bytes) -> None:
        """Keeps a value; of several with one name the last counts. Raises OSError."""
        try:
            line = _Line(name, value.decode())
        except UnicodeDecodeError:
            line = _Line(name, raw=value)
        data = _encode(line) + b"\n"
        file = self._open()
        try:
            while data:
                data = data[untapped.write(file, data) :]
        finally:
            untapped.close(file)

    def read(self) -> tuple[dict[str, bytes], str]:
        """The values by name, and what was wrong with the file, "" if nothing. Without a file there are none."""
        try:
            with open(self.path, "rb") as file:
                lines = file.read().split(b"\n")
        except FileNotFoundError:
            return {}, ""
        except OSError as error:
            return {}, f"the vault cannot be read: {error}"
        found: dict[str, bytes] = {}
        damaged = 0
        for line in filter(None, lines):
            try:
                entry = _decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError):
                damaged += 1
                continue
            found[entry.name] = entry.raw if entry.text is None else entry.text.encode("utf-8", "surrogatepass")
        wrong = f"{damaged} of {damaged + len(found)} entries of the vault are damaged: {self.path}" if damaged else ""
        return found, wrong

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        try:
            return untapped.open(self.path, flags, 0o600)
        except FileNotFoundError:
            with contextlib.suppress(FileExistsError):
                os.mkdir(self._directory, 0o700)
            return untapped.open(self.path, flags, 0o600)


def delete(store: str, vault: str) -> None:
    """With the run go its secrets. Raises OSError where the file cannot be removed."""
    with contextlib.suppress(FileNotFoundError):
        os.remove(path_of(store, vault))
    with contextlib.suppress(OSError):
        os.rmdir(store + SUFFIX)
