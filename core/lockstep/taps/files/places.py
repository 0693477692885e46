"""Which files are the program's input: those below the working directory that nobody else's tool keeps there.

A file is known by its path relative to the directory in which the program began, so that a replay in
another copy of the project finds it under the same name.
"""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from collections.abc import Sequence
from typing import Any

# Directories of installed packages, and of what is made from sources.
_TOOLS = frozenset({"site-packages", "dist-packages", "__pycache__", ".venv", ".lockstep"})
_MEETING = re.compile(r"lockstep-\d+-[0-9a-f]{12}")  # `launch.meeting`
_SYSTEM = ("/proc/", "/sys/", "/dev/", "/run/")
_KNOWN = 10_000  # paths

_getcwd = os.getcwd
_fspath = os.fspath


class Places:
    """Names files of the program. `left_out`: paths, and beginnings of paths, that are somebody else's."""

    def __init__(self, root: str, left_out: Sequence[str] = ()) -> None:
        self.root = root
        # As the shell says it, where the directory was entered through a link.
        shell = os.environ.get("PWD", "")
        linked = shell != root and os.path.isabs(shell) and _same(shell, root)
        self._roots = (root, os.path.normpath(shell)) if linked else (root,)
        self._left_out = (*left_out, *(path for path in _SYSTEM if not root.startswith(path)), *_interpreter(root))
        self._known: dict[str, str | None] = {}
        self._directory = ""

    def moved(self) -> None:
        """The working directory is another one now."""
        self._known.clear()
        self._directory = ""

    def name(self, path: Any) -> str | None:
        """The file's name, relative and with `/`; None for what is no business of ours."""
        if type(path) is not str:
            path = _text(path)
            if path is None:
                return None
        try:
            return self._known[path]
        except KeyError:
            pass
        if len(self._known) >= _KNOWN:
            self._known.clear()
        found = self._known[path] = self._find(path)
        return found

    def _find(self, path: str) -> str | None:
        if not path or "\0" in path:
            return None
        if not os.path.isabs(path):
            if not self._directory:
                try:
                    self._directory = _getcwd()
                except OSError:
                    return None  # it was removed
            path = os.path.join(self._directory, path)
        path = os.path.normpath(path)
        for root in self._roots:
            if path == root:
                return "."
            if path.startswith(root if root.endswith(os.sep) else root + os.sep):
                below = path[len(root) :].lstrip(os.sep)
                full = os.path.join(self.root, below)
                parts = below.split(os.sep)
                if _TOOLS.intersection(parts) or full.startswith(self._left_out) or any(map(_MEETING.fullmatch, parts)):
                    return None
                # As it is stored: a name that is no text is escaped.
                return "/".join(parts).encode("utf-8", "backslashreplace").decode()
        return None


def _text(path: Any) -> str | None:
    if isinstance(path, int):
        return None  # a descriptor
    try:
        found = _fspath(path)
    except TypeError:
        return None
    return os.fsdecode(found)


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _interpreter(root: str) -> tuple[str, ...]:
    """Where Python's own files lie below `root`."""
    found = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib")]
    found += [prefix for prefix in (sys.prefix, sys.base_prefix) if prefix != root]
    return tuple({path + os.sep for path in found if path and path.startswith(root)})
