"""A cipher that can be told from none, and that gives other bytes each time, as real ones do."""

import os

from langgraph.checkpoint.serde.base import CipherProtocol


class Xor(CipherProtocol):
    def __init__(self, key: int = 0x5A) -> None:
        self._key = key

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        once = os.urandom(4)
        return "xor", once + bytes([self._key]) + self._apply(once, plaintext)

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        assert ciphername == "xor"
        if ciphertext[4:5] != bytes([self._key]):
            raise ValueError("MAC check failed")
        return self._apply(ciphertext[:4], ciphertext[5:])

    def _apply(self, once: bytes, data: bytes) -> bytes:
        return bytes(byte ^ self._key ^ once[at % 4] for at, byte in enumerate(data))
