"""What stopped a replay or a fork first, for everybody who asks afterwards."""

from __future__ import annotations

from typing import Any, NoReturn, cast

from msgspec.structs import replace

from lockstep.errors import Cut, Difference, Divergence, Refusal
from lockstep.log import untapped
from lockstep.session.secrets import Secrets


class Latch:
    """The first difference, refusal or cut wins. A program may hide what was raised; what is here stays.

    difference  that diverged; `when`: on the system's monotonic clock in ns
    refused     what may not run, in words
    cut         whether the end of an interrupted recording was reached, and nothing before it differed
    """

    def __init__(self, secrets: Secrets) -> None:
        self.difference: Difference | None = None
        self.when = 0
        self.refused: list[str] = []
        self.cut = False
        self._secrets = secrets
        self._lock = untapped.RLock()

    @property
    def stopped(self) -> bool:
        return self.cut or self.difference is not None or bool(self.refused)

    def stop_at(self, found: Difference) -> None:
        """Latches a difference. What it says may quote what was asked: secrets in it are hidden."""
        rows = [text for row in found.beside for text in row]
        texts: Any = [found.reason, found.name, found.expected, found.actual, *rows, *found.nearest]
        reason, name, expected, actual, *rest = cast(list[str], self._secrets.hide_more(texts))
        rows, nearest = rest[: len(rows)], rest[len(rows) :]
        found = replace(
            found, reason=reason, name=name, expected=expected, actual=actual, nearest=tuple(nearest),
            beside=tuple(zip(rows[::2], rows[1::2], strict=True)),
        )  # fmt: skip
        with self._lock:
            if not self.stopped:
                self.difference, self.when = found, untapped.monotonic_ns()

    def refuse(self, message: str) -> None:
        with self._lock:
            if self.difference is None and not self.cut:
                self.refused.append(message)

    def come_to_cut(self) -> None:
        with self._lock:
            if not self.stopped:
                self.cut = True

    def error(self) -> BaseException:
        """What everybody is stopped with."""
        if self.difference is not None:
            return Divergence(self.difference)
        return Refusal(self.refused[0]) if self.refused else Cut("the end of the interrupted recording")

    def raise_it(self) -> NoReturn:
        raise self.error()
