"""Reads the command lines that start a program, without the weight of the whole CLI.

Importing typer takes some 100 ms, which a recorded program would start later. What is not plain here
(help, a mistake, another command) is left to `lockstep.cli.app`, which knows the same options.
"""

from __future__ import annotations

from collections.abc import Sequence

# Options of `record` by name: whether a value follows, and the argument's name.
RECORD = {"--store": (True, "store"), "--run": (True, "run"), "--json": (False, "as_json")}


def record(words: Sequence[str]) -> dict[str, str | bool | list[str]] | None:
    """The arguments of `cli.running.record` for a plain `[--debug] record [options] [--] CMD...`, else None."""
    found: dict[str, str | bool | list[str]] = {}
    rest = list(words)
    if rest[:1] == ["--debug"]:
        found["debug"] = True
        del rest[0]
    if rest[:1] != ["record"]:
        return None
    del rest[0]
    while rest and rest[0].startswith("-"):
        word = rest.pop(0)
        if word == "--":
            break
        name, given, value = word.partition("=")
        if name not in RECORD:
            return None
        valued, argument = RECORD[name]
        if not valued:
            if given:
                return None
            found[argument] = True
        elif given:
            found[argument] = value
        elif rest:
            found[argument] = rest.pop(0)
        else:
            return None
    if not rest:
        return None
    found["command"] = rest
    return found
