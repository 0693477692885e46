"""What a program asks for when it starts a process: as data, and as what must match in a replay.

What differs from machine to machine and says nothing of the program is written as what it stands for: the
running interpreter, and a variable's value where it is built from the parent's (`/venv/bin:$PATH`).
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Mapping
from typing import Any

from lockstep.log.model import Value

PYTHON = "{python}"
_SHORT = 4  # characters of a variable's value that are found in another one by chance
_SPECIAL = {-1: "pipe", -2: "stdout", -3: "null"}  # PIPE, STDOUT and DEVNULL of `subprocess`
_STANDARD = 2  # the highest descriptor that every process has


def name(given: Mapping[str, Any]) -> str:
    """The program's base name; the shell's where a shell is asked to find it."""
    if given.get("shell"):
        return "sh"
    words = argv(given.get("args"))
    first = given.get("executable") or (words[0] if words else "")
    first = _text(first)
    return "python" if first == sys.executable else os.path.basename(first) or "program"


def argv(args: Any) -> list[str]:
    if isinstance(args, (str, bytes, os.PathLike)):
        return [_text(args)]
    return [_text(word) for word in args]


def asked(given: Mapping[str, Any], *environs: Mapping[str, str]) -> dict[str, Value]:
    """What is recorded of `Popen`'s arguments. `environs`: see `environment`."""
    words = argv(given.get("args"))
    found: dict[str, Value] = {"argv": list(words)}
    if given.get("shell"):
        found = {"shell": words[0] if len(words) == 1 else list(words)}
    if given.get("executable") is not None:
        found["executable"] = _text(given["executable"])
    if given.get("cwd") is not None:
        found["cwd"] = _text(given["cwd"])
    changed = environment(given.get("env"), *environs)
    if changed:
        found["env"] = changed
    for stream in ("stdin", "stdout", "stderr"):
        kind = handle(given.get(stream))
        if kind != "inherited":
            found[stream] = kind
    return found


def key(request: Mapping[str, Value]) -> dict[str, Value]:
    """What must match of it."""
    found = dict(request)
    words = request.get("argv")
    if isinstance(words, list):
        found["argv"] = [PYTHON if word == sys.executable else word for word in words]
    if request.get("executable") == sys.executable:
        found["executable"] = PYTHON
    return found


def environment(env: Any, *environs: Mapping[str, str]) -> dict[str, Value]:
    """The variables that were set or changed for the process. What was left out is not among them: a program that
    names all that it wants leaves out whatever else this machine has.

    environs  the parent's own variables: as the program sees them, and in a replay also as this machine has them, which
              is what a library gets that copies them all
    """
    if env is None:
        return {}
    found: dict[str, Value] = {}
    for raw, value in env.items():
        variable, text = _text(raw), _text(value)
        owns = [environ[variable] for environ in environs if variable in environ]
        if text in owns:
            continue
        own = next((own for own in owns if len(own) >= _SHORT and own in text), None)
        found[variable] = text if own is None else text.replace(own, f"${variable}")
    return found


def handle(stream: Any) -> str:
    """What a process gets as one of its three streams. See `foreign`."""
    if stream is None:
        return "inherited"
    if isinstance(stream, int) and stream in _SPECIAL:
        return _SPECIAL[stream]
    try:
        fd = stream if isinstance(stream, int) else stream.fileno()
        mode = os.fstat(fd).st_mode
    except (OSError, ValueError, AttributeError):
        return "unknown"
    # Whether the parent's own streams are terminals or files is no matter of the program's.
    return "inherited" if fd <= _STANDARD else "file" if stat.S_ISREG(mode) else "descriptor"


def foreign(stream: Any) -> str:
    """What of the program's own a process's output goes into where it is no file and no pipe to it, "" otherwise: who
    reads there is not known."""
    try:
        fd = stream if isinstance(stream, int) else stream.fileno()
        mode = os.fstat(fd).st_mode
    except (OSError, ValueError, AttributeError):
        return ""
    if fd <= _STANDARD:
        return ""
    if stat.S_ISCHR(mode):
        return "terminal" if os.isatty(fd) else ""
    return "pipe" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else ""


def _text(value: Any) -> str:
    if isinstance(value, (str, bytes, os.PathLike)):
        return os.fsdecode(value)
    return str(value)
