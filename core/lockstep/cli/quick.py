"""Reads the command lines that start a program, without the weight of the whole CLI.

Importing typer takes 100 to 400 ms, which a program would start later: more than all the rest of a replay's
start. What is not plain here (help, a mistake, another command) is left to `lockstep.cli.app`, which knows
the same options.
"""

from __future__ import annotations

from collections.abc import Sequence

# Options of `record` by name: whether a value follows, and the argument's name.
RECORD = {
    "--store": (True, "store"),
    "--run": (True, "run"),
    "--break": (True, "breaks"),
    "--json": (False, "as_json"),
}
# The same for commands that run a program again.
_EITHER = {
    "--store": (True, "store"),
    "--json": (False, "as_json"),
    "--trust": (False, "trust"),
    "--isolate": (False, "isolate"),
}
AGAIN = {
    "bisect": {
        **_EITHER,
        "--bad": (True, "bad"),
        "--good": (True, "good"),
        "--live": (True, "live"),
        "--tail": (True, "tail"),
        "--again": (False, "again"),
        "--confidence": (True, "confidence"),
        "--max-probes": (True, "max_probes"),
        "--shrink": (False, "shrink"),
        "--plot": (True, "plot"),
        "--workers": (True, "workers"),
        "--jobs": (True, "jobs"),
        "--resume": (False, "resume"),
        "--target": (True, "target"),
    },
    "replay": {
        **_EITHER,
        "--speed": (True, "speed"),
        "--target": (True, "target"),
        "--depth": (True, "depth"),
        "--turn": (True, "turn"),
        "--until": (True, "until"),
    },
    "verify": {
        **_EITHER,
        "--times": (True, "times"),
        "--authentic": (False, "authentic"),
        "--target": (True, "target"),
    },
}
HOMES = {"replay": "replaying", "verify": "replaying", "bisect": "bisecting"}  # modules of `lockstep.cli`
_DEFAULTS: dict[str, dict[str, object]] = {
    "bisect": {
        "bad": "",
        "good": "",
        "live": (),
        "tail": "",
        "again": False,
        "confidence": None,
        "max_probes": None,
        "shrink": False,
        "plot": "",
        "workers": "",
        "jobs": None,
        "resume": False,
        "target": "",
        "trust": False,
        "isolate": False,
    },
    "replay": {
        "speed": 0.0,
        "target": "",
        "depth": "call",
        "turn": None,
        "until": None,
        "trust": False,
        "isolate": False,
    },
    "verify": {"times": 1, "authentic": False, "target": "", "trust": False, "isolate": False},
}


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


def again(words: Sequence[str]) -> tuple[str, dict[str, object]] | None:
    """Which of the functions of `cli.replaying` and `cli.bisecting` is asked for, and its arguments, for a plain
    `[--debug] replay|verify|bisect RUN [options] [-- CMD...]`, else None."""
    rest = list(words)
    debug = rest[:1] == ["--debug"]
    if debug:
        del rest[0]
    verb = rest.pop(0) if rest else ""
    if verb not in AGAIN:
        return None
    found: dict[str, object] = {"command": [], "store": None, "as_json": False, "debug": debug, **_DEFAULTS[verb]}
    while rest:
        word = rest.pop(0)
        if word == "--":
            found["command"] = rest
            break
        if not word.startswith("-") and "run" not in found:
            found["run"] = word
            continue
        name, given, value = word.partition("=")
        valued, argument = AGAIN[verb].get(name, (None, ""))
        if valued is None or (given and not valued) or (valued and not given and not rest):
            return None
        told = _value(argument, value if given else rest.pop(0)) if valued else True
        if told is None:
            return None
        before = found.get(argument)
        found[argument] = (*before, told) if isinstance(before, tuple) else told
    if verb == "bisect" and (found.get("run") == "log" or found["resume"]):
        return None  # another command, and one that may be asked in a wrong way
    return (verb, found) if "run" in found else None


def _value(argument: str, text: str) -> str | float | int | None:
    """An option's value; None where typer has to say what is wrong with it."""
    digits = text.replace(".", "", 1) if argument in ("speed", "confidence") else text
    if argument == "tail":
        return text if text in ("live", "reuse", "record") else None
    if argument in ("store", "bad", "good", "live", "target", "depth", "plot", "workers"):
        return text
    if not (digits.isascii() and digits.isdigit()):
        return None
    if (argument == "confidence" and not 0.5 < float(text) < 1) or (
        argument in ("max_probes", "jobs") and int(text) < 1
    ):
        return None
    return float(text) if argument in ("speed", "confidence") else int(text)
