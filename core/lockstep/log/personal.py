"""Finds personal data in free text: e-mail addresses, phone numbers, card numbers, IBANs, US social security
numbers, and whatever a project's own rules describe.

For `lockstep scrub` and never while recording: an agent must be served in a replay what it was served. What can
be checked is: cards by Luhn, IBANs by their two check digits. Names, streets and birthdays have no shape.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from lockstep.log.redact import Hit

_EMAIL = re.compile(rb"(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.){1,8}[A-Za-z]{2,24}\b")
_PHONE = re.compile(
    rb"(?<![\w+.-])(?:\+[1-9][0-9]{0,2}[ .-]?(?:\(?[0-9]{1,4}\)?[ .-]?){2,5}[0-9]{2,4}"
    rb"|\([0-9]{3}\) ?[0-9]{3}[ .-][0-9]{4}|[0-9]{3}[.-][0-9]{3}[.-][0-9]{4})(?![\w-])"
)
_CARD = re.compile(rb"(?<![\w.-])[3-6][0-9]{3}(?:[ -]?[0-9]{2,6}){2,4}(?![\w.-]*[0-9])")
_IBAN = re.compile(rb"(?<![A-Za-z0-9])[A-Z]{2}[0-9]{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?(?![A-Za-z0-9])")
_SSN = re.compile(rb"(?<![\w-])(?!000|666|9)[0-9]{3}-(?!00)[0-9]{2}-(?!0000)[0-9]{4}(?![\w-])")
_LEAST_PHONE = 8  # digits


def find(data: bytes, own: Mapping[str, re.Pattern[bytes]]) -> Iterator[Hit]:
    """Personal data in a text. `own`: a project's rules by name; a group in one says what of it is hidden."""
    if b"@" in data:
        for found in _EMAIL.finditer(data):
            yield Hit(*found.span(), "email")
    for found in _CARD.finditer(data):
        if luhn(found[0]):
            yield Hit(*found.span(), "card")
    for found in _IBAN.finditer(data):
        if iban(found[0]):
            yield Hit(*found.span(), "iban")
    for found in _SSN.finditer(data):
        yield Hit(*found.span(), "ssn")
    for found in _PHONE.finditer(data):
        if sum(48 <= byte <= 57 for byte in found[0]) >= _LEAST_PHONE:
            yield Hit(*found.span(), "phone")
    for name, pattern in own.items():
        for found in pattern.finditer(data):
            span = found.span(1 if pattern.groups and found.start(1) >= 0 else 0)
            if span[1] > span[0]:
                yield Hit(*span, name)


def luhn(text: bytes) -> bool:
    """Whether the digits are those of a card number (ISO/IEC 7812: 13 to 19, the last one checks the others)."""
    digits = [byte - 48 for byte in text if 48 <= byte <= 57]
    if not 13 <= len(digits) <= 19 or len(set(digits)) == 1:
        return False
    total = 0
    for place, digit in enumerate(reversed(digits)):
        twice = 2 * digit if place % 2 else digit
        total += twice - 9 if twice > 9 else twice
    return total % 10 == 0


def iban(text: bytes) -> bool:
    """Whether an account number's check digits are right (ISO 13616: 1 modulo 97)."""
    plain = text.replace(b" ", b"").decode()
    if not 15 <= len(plain) <= 34:
        return False
    number = "".join(str(int(sign, 36)) for sign in plain[4:] + plain[:4])
    return int(number) % 97 == 1
