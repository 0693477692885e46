"""Output files: what a task writes down as its result, if it has an `output_file`.

What is to be written is compared with what was written, and nothing is written in a replay: the file may have been
moved or changed since. Past the cut of a fork it is written, with no word of the user's, unless just that was written
before: it is the crew's own output, as its answer is.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from crewai.task import Task

from lockstep.log.model import Value
from lockstep.session.native.answers import Question
from lockstep.session.policy import Declared
from lockstep_crewai import asking, classes, current
from lockstep_crewai.asking import Leaf
from lockstep_crewai.canonical import inert

WRITE, NAME = "write", "output_file"  # kind and name of the effect
_OWN = Declared("read", "it writes down what the crew answered, and nothing else")


def install() -> None:
    """Has tasks ask whether they write. Once, but for later subclasses of `Task`."""
    for cls in classes.family(Task):
        classes.wrap(cls, "_save_file", _saving)


def _saving(plain: Any) -> Any:
    @wraps(plain)
    def save(self: Any, result: Any) -> Any:
        place = current.place()
        if place is None:
            return plain(self, result)
        request: dict[str, Value] = {"path": str(self.output_file), "content": inert(result)}
        return asking.outside(
            place, WRITE, lambda: Question(NAME, request, request, _OWN), lambda: plain(self, result),
            Leaf(lambda nothing: None, lambda value: None),
        )  # fmt: skip

    return save
