"""What a program says to a process that it talks with, message by message, where an adapter knows their language.

Otherwise what is written to a process is compared as text. Of a conversation, that may hold what is no matter of the
program's: the line of the code that speaks, numbers of messages. And a difference in it says nothing to a reader.

    languages.learn(Language("playwright", speaks=is_driver, reader=Messages))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from lockstep.log.model import Value


class Language(msgspec.Struct, frozen=True):
    """A language that some process is spoken to in.

    name    is in the process's request, in place of the place of its program on this machine
    speaks  whether a process with these words of command is spoken to so
    reader  makes the reader of one conversation: it is given what is written, in whatever pieces, and gives back the
            messages that are complete with it as lines of text, without what does not count. Nothing of it may raise
    site    where in the program's own code it speaks now, as "file:line in function"; "" where the stack tells it
    """

    name: str
    speaks: Callable[[Sequence[str]], bool]
    reader: Callable[[], Callable[[bytes], bytes]]
    site: Callable[[], str] = str


_known: dict[str, Language] = {}


def learn(language: Language) -> None:
    """From now on, such processes are understood. Once a language."""
    _known[language.name] = language


def forget(name: str) -> None:
    """The reverse."""
    _known.pop(name, None)


def spoken_to(argv: Sequence[str]) -> Language | None:
    return next((language for language in _known.values() if language.speaks(argv)), None)


def key(language: Language, found: Mapping[str, Value]) -> dict[str, Value]:
    """What must match of a process's request."""
    return {"speaks": language.name, **{name: value for name, value in found.items() if name not in _PLACES}}


_PLACES = frozenset({"argv", "executable", "cwd"})
