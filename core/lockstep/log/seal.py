"""Seals: what shows that a log is the writer's own, also against whoever can write the file.

A chain alone can be made anew by anybody. With a key (`LOCKSTEP_KEY`, or the file that `LOCKSTEP_KEY_FILE` names)
each commit also stores a keyed BLAKE2b over the chain's head, in one place of the stream that the next commit
overwrites. So a finished stream has the seal of its end and no other: what was cut off behind, or is said
to have been interrupted, has none. Of an interrupted one the last seal says up to where it is authentic.

The key never reaches the store, only its id.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from hashlib import blake2b

import msgspec

from lockstep.errors import Code, StoreError
from lockstep.log.place import KEY, KEY_FILE

SIZE = 32
SHORTEST = 32  # bytes: 128 bits in hexadecimal
_FEWEST = 8  # different bytes: hexadecimal drawn at random has fewer than that once in ten billion
_LARGEST = 1 << 16
_ADVICE = 'Make one: python -c "import secrets; print(secrets.token_hex(32))"'

_encode = msgspec.msgpack.Encoder().encode


class Key(msgspec.Struct, frozen=True):
    """A key. `id` may be shown and is stored: 16 hexadecimal digits that tell one key from another."""

    id: str
    secret: bytes

    def __repr__(self) -> str:
        return f"Key({self.id!r})"


class Seal(msgspec.Struct, frozen=True):
    """What a stream stores: the id of the key, the number of events sealed, and the seal."""

    key: str
    events: int
    mac: bytes


# The supervisor's variables, where they are hidden from the program (`lockstep.launch.inherit`).
_hidden: Mapping[str, str] = {}


def hide(variables: Mapping[str, str]) -> None:
    """Variables that count although `os.environ` does not show them."""
    global _hidden
    _hidden = variables


def given() -> Key | None:
    """The key that this process writes and checks with. Raises StoreError LS208 for one of no use."""
    text = os.environ.get(KEY) or _hidden.get(KEY, "")
    file = os.environ.get(KEY_FILE) or _hidden.get(KEY_FILE, "")
    if text:
        return made(text.encode("utf-8", "surrogateescape"), KEY)
    if file:
        return made(_read(file), file)
    return None


def made(raw: bytes, source: str = KEY) -> Key:
    """The key that some bytes stand for; white space around them does not count. Raises StoreError LS208."""
    raw = raw.strip()
    if len(raw) < SHORTEST:
        raise StoreError(
            Code.NO_KEY, f"the key in {source} has {len(raw)} bytes, too few: {SHORTEST} at least. {_ADVICE}"
        )
    if len(set(raw)) < _FEWEST:
        raise StoreError(Code.NO_KEY, f"the key in {source} repeats itself: it can be guessed. {_ADVICE}")
    secret = blake2b(raw, digest_size=SIZE, person=b"lockstep.secret").digest()
    return Key(blake2b(secret, digest_size=8, person=b"lockstep.keyid").hexdigest(), secret)


def make(key: Key, base: bytes, state: int, events: int, faults: int, head: bytes) -> Seal:
    """The seal of a stream: `base` and `head` of its chain, its state (0 open, else how it ended), and the numbers
    of events and faults."""
    record = _encode((base, state, events, faults, head))
    return Seal(key.id, events, blake2b(record, digest_size=SIZE, key=key.secret, person=b"lockstep.seal").digest())


def holds(seal: Seal, key: Key, base: bytes, state: int, faults: int, head: bytes) -> bool:
    """Whether the owner of the key sealed this."""
    import hmac  # here: who records does not need it

    return hmac.compare_digest(make(key, base, state, seal.events, faults, head).mac, seal.mac)


def _read(file: str) -> bytes:
    try:
        descriptor = os.open(os.path.expanduser(file), os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError as error:
        raise StoreError(Code.NO_KEY, f"cannot read the key in {file} ({KEY_FILE}): {error.strerror}") from error
    try:
        return os.read(descriptor, _LARGEST)
    except OSError as error:
        raise StoreError(Code.NO_KEY, f"cannot read the key in {file} ({KEY_FILE}): {error.strerror}") from error
    finally:
        os.close(descriptor)
