"""The secrets of a native run, which many processes write and read, at once and years apart.

As a session's, with one difference: a name stands for one value, ever, since what a framework gets back from its
saver must be what it gave, also after a key was rotated. So each process numbers what it finds by a suffix of its own,
a variable whose value is not the one that the vault has under its name gets another name, and where a name is not
known the vault is looked into again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from lockstep.log import untapped
from lockstep.log.names import Rules
from lockstep.log.vault import Vault, is_id
from lockstep.session import rules
from lockstep.session.secrets import Secrets


class Kept(Secrets):
    """Hides, and reveals exactly. Usable from any thread, and by a forked child after `forked_child`."""

    def __init__(self, names: Rules, vault: Vault | None, environ: Mapping[str, str]) -> None:
        """`names`: whose values are secrets, and whose are none."""
        super().__init__(rules=names, vault=vault, process=untapped.urandom(8).hex())
        self._look()
        for name, value in _of_environment(names, environ):
            if self.name(value) is None:
                self.learn(value, self._free(name))

    def forked_child(self) -> None:
        """In a forked child: it numbers what it finds apart from its parent."""
        self.forked(untapped.urandom(8).hex())

    def stand(self, value: bytes, kind: str) -> bytes:
        """See `Secrets.stand`."""
        name = self.name(value)
        if name is not None and name not in self._stored:
            # Named after its variable when this process began: another may have stored that name since.
            self._look()
            if self._recorded.get(name, value) != self._values.get(name):
                self._rename(name)
        return super().stand(value, kind)

    def _free(self, name: str) -> str:
        return f"{name}{self._suffix}" if name in self._recorded else name

    def _rename(self, name: str) -> None:
        with self._lock:
            plain = next(text for text, (named, form) in self._forms.items() if named == name and not form)
            for text, (named, form) in list(self._forms.items()):
                if named == name:
                    self._forms[text] = (f"{name}{self._suffix}", form)
            self._values[f"{name}{self._suffix}"] = plain
            self._values[name] = self._recorded[name]
            self._learn(self._recorded[name], name)

    def _look(self) -> bool:
        """Takes over what the vault has now. False: nothing new."""
        if self.vault is None:
            return False
        found, _ = self.vault.read()
        with self._lock:
            new = {name: value for name, value in found.items() if self._recorded.get(name) != value}
            for name, value in new.items():
                # What this process has stored itself, it knows; what it has not, another one gave a meaning.
                if name not in self._values or name in self._recorded:
                    self._values[name] = value
                    self._learn(value, name)
                    self._stored.add(name)
            self._recorded = {**self._recorded, **new}
        return bool(new)

    def _value(self, name: str) -> tuple[bytes, bool]:
        if name not in self._values:
            self._look()
        return super()._value(name)


# What was found last: a process may open a run a millisecond, and its environment hardly ever changes.
_found: tuple[Rules, dict[str, str], tuple[tuple[str, bytes], ...]] | None = None


def _of_environment(names: Rules, environ: Mapping[str, str]) -> tuple[tuple[str, bytes], ...]:
    """The secrets in the environment, by their names."""
    global _found
    variables = dict(environ)
    known = _found
    if known is None or known[0] != names or known[1] != variables:
        own = Secrets(rules=names)
        own.know_environment(variables)
        every = tuple((name, value) for name in own.names() if (value := own.value(name)) is not None)
        _found = known = (names, variables, every)
    return known[2]


def recalled(store: str, told: Any) -> tuple[Secrets, str]:
    """The secrets of a native run for its replay, and what is wrong with its vault, "" if nothing. The program gets
    what was recorded, since nothing of it leaves; a value that the environment has now counts as the recorded one."""
    meta: dict[str, Any] = told if isinstance(told, dict) else {}
    secrets = Secrets(rules=rules.names(meta.get("rules")), replay=True)
    vault = meta.get("vault")
    values, wrong = Vault(store, str(vault)).read() if is_id(vault) else ({}, "")
    secrets.know(values)
    secrets.know_environment(os.environ)
    return secrets, wrong
