"""First reads: what a process was told of its surroundings, where it asked first, by name.

An environment variable or the name of the host is one value for the whole process, until the program itself
changes it. So the first answer to each name is all that a replay needs, and needs before it begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from lockstep.log.model import Kind, Value
from lockstep.session import reads

ENVIRON = "environ"  # the source whose names are those of variables


class Firsts:
    """One source of one process. Recording: keeps first answers until the next commit, which stores them with
    what came of them."""

    def __init__(self, session: Any, source: str) -> None:
        self.session = session
        self.source = source
        self._hidden: Callable[[dict[str, Value]], Any] = session.secrets.hide
        if source == ENVIRON:
            self._hidden = session.secrets.environment
        self._told: dict[str, tuple[int, Value]] = {}  # with the place where it was asked for

    def note(self, name: str, value: Value) -> None:
        """The program was told this. Several threads may say the same: the first that is stored counts."""
        try:
            self._told[name] = self.session.position(), self._hidden({name: value})[name]
        except Exception as error:
            self.session.fault(f"{self.source} {name}", error)
        self.session.told[self.source] = self.session.told.get(self.source, 0) + 1
        reads.waiting[self] = None

    def flush(self, emit: reads.Emit | None = None) -> None:
        """Makes one event of what was told since the last one. From any thread."""
        reads.waiting.pop(self, None)
        told = {name: self._told.pop(name) for name in tuple(self._told)}
        if told:
            session = self.session
            position = min(place for place, _ in told.values())
            body: Value = {name: value for name, (_, value) in told.items()}
            emit = emit or session.emit
            emit(Kind.READS, session.root.name, position, what=self.source, body=body, hidden=True)


def recorded(session: Any, source: str) -> Mapping[str, Value]:
    """Replay: what the recorded process was told, by name, with its secrets."""
    tape = session.tape
    told: dict[str, Value] = {}
    for seq in tape.lane(session.root.name).reads.get(source, ()):
        body = session.secrets.reveal(tape.body(seq))
        if isinstance(body, dict):
            for name, value in body.items():
                told.setdefault(name, value)
    if told:
        session.told[source] = len(told)
    return told
