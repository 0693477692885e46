"""A certificate for one replay, of a key that nobody else has: a browser that is told of it takes it for anybody's.

Secure WebSockets end at the wall, which so has to be a TLS server. Written out here, since a package for it would weigh
more than Playwright's client: an elliptic key (P-256, FIPS 186-5), a certificate that it signs itself (RFC 5280).
"""

from __future__ import annotations

import hashlib
import os
import secrets
import ssl
import tempfile
from base64 import b64encode

import msgspec

# The curve (SEC 2, section 2.4.2): y² = x³ - 3x + b over the integers modulo P, its point G, of order N.
_P = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF
_N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)

type _Point = tuple[int, int] | None  # None: the one at infinity

_EC_KEY = bytes.fromhex("06072a8648ce3d0201")
_P256 = bytes.fromhex("06082a8648ce3d030107")
_ECDSA_SHA256 = bytes.fromhex("300a06082a8648ce3d040302")
_COMMON_NAME = bytes.fromhex("0603550403")
_SEQUENCE, _SET, _INTEGER, _BITS, _BYTES, _TEXT, _TIME = 0x30, 0x31, 0x02, 0x03, 0x04, 0x0C, 0x17
_FROM, _UNTIL = b"200101000000Z", b"491231235959Z"  # the browser is told to look at neither


class Certificate(msgspec.Struct, frozen=True):
    """`key`: the digest of its public key, by which a browser knows it; `server`: for TLS with it."""

    key: str
    server: ssl.SSLContext


def make() -> Certificate:
    """A new one."""
    private = secrets.randbelow(_N - 1) + 1
    x, y = _known(_times(private, _G))
    public = b"\x04" + x.to_bytes(32) + y.to_bytes(32)
    info = _der(_SEQUENCE, _der(_SEQUENCE, _EC_KEY, _P256), _der(_BITS, b"\x00", public))
    name = _der(_SEQUENCE, _der(_SET, _der(_SEQUENCE, _COMMON_NAME, _der(_TEXT, b"Lockstep replay"))))
    valid = _der(_SEQUENCE, _der(_TIME, _FROM), _der(_TIME, _UNTIL))
    serial = _integer(secrets.randbits(63) + 1)
    told = _der(_SEQUENCE, serial, _ECDSA_SHA256, name, valid, name, info)
    whole = _der(_SEQUENCE, told, _ECDSA_SHA256, _der(_BITS, b"\x00", _signed(private, told)))
    parts = _der(0xA0, _P256), _der(0xA1, _der(_BITS, b"\x00", public))
    held = _der(_SEQUENCE, _integer(1), _der(_BYTES, private.to_bytes(32)), *parts)
    pem = _pem("EC PRIVATE KEY", held) + _pem("CERTIFICATE", whole)
    return Certificate(b64encode(hashlib.sha256(info).digest()).decode(), _server(pem))


def _server(pem: bytes) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # Python reads keys from files only: one that nobody else may open, for a moment.
    descriptor, path = tempfile.mkstemp(prefix="lockstep-")
    try:
        with os.fdopen(descriptor, "wb") as out:
            out.write(pem)
        context.load_cert_chain(path)
    finally:
        os.unlink(path)
    return context


def _signed(private: int, data: bytes) -> bytes:
    """The ECDSA signature of its SHA-256."""
    told = int.from_bytes(hashlib.sha256(data).digest())
    while True:
        once = secrets.randbelow(_N - 1) + 1
        r = _known(_times(once, _G))[0] % _N
        s = pow(once, -1, _N) * (told + r * private) % _N
        if r and s:
            return _der(_SEQUENCE, _integer(r), _integer(s))


def _times(number: int, point: _Point) -> _Point:
    total: _Point = None
    while number:
        if number & 1:
            total = _plus(total, point)
        point = _plus(point, point)
        number >>= 1
    return total


def _plus(one: _Point, other: _Point) -> _Point:
    if one is None or other is None:
        return one or other
    (x1, y1), (x2, y2) = one, other
    if x1 == x2 and (y1 + y2) % _P == 0:
        return None
    slope = (3 * x1 * x1 - 3) * pow(2 * y1, -1, _P) if one == other else (y2 - y1) * pow(x2 - x1, -1, _P)
    x = (slope * slope - x1 - x2) % _P
    return x, (slope * (x1 - x) - y1) % _P


def _known(point: _Point) -> tuple[int, int]:
    assert point is not None  # no multiple below the order is at infinity
    return point


# DER (X.690): a tag, the length, the content.


def _der(tag: int, *content: bytes) -> bytes:
    data = b"".join(content)
    if len(data) < 0x80:
        return bytes([tag, len(data)]) + data
    length = len(data).to_bytes((len(data).bit_length() + 7) // 8)
    return bytes([tag, 0x80 | len(length)]) + length + data


def _integer(number: int) -> bytes:
    return _der(_INTEGER, number.to_bytes(number.bit_length() // 8 + 1))


def _pem(label: str, data: bytes) -> bytes:
    text = b64encode(data)
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    return b"\n".join([f"-----BEGIN {label}-----".encode(), *lines, f"-----END {label}-----".encode(), b""])
