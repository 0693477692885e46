"""The secrets of one session: what stands for each of them in the log, and what it stands for.

Everything that is stored passes through `hide` and everything that a replay hands out through `reveal`.
Match keys and digests are made of the hidden form in both modes.
"""

from __future__ import annotations

from lockstep.log.model import Value


class Secrets:
    """The mapping of one session."""

    def hide(self, value: Value) -> Value:
        """The value with placeholders in the place of credentials; the same object where there are none."""
        return value

    def reveal(self, value: Value) -> Value:
        """The value as the program gets it: placeholders become what they stand for."""
        return value
