"""A project's own rules: `[tool.lockstep]` in the pyproject.toml of the working directory or above it.

[tool.lockstep]
hide = ["session_id", "X-Tenant"]     # names whose values are secrets here
keep = ["csrf_token"]                 # names whose values are none

[tool.lockstep.scrub]
customer = "CUST-[0-9]{6}"            # personal data by its shape; a group says what of it

[tool.lockstep.effects]
"issue_refund" = "mutating"           # what calls may do to the outside; the first that fits decides
"POST https://search.example.com/*" = "read"

[tool.lockstep.volatile]
"GET */search" = ["query.ts"]         # of browsers: values that are other ones in each run
"""

from __future__ import annotations

import os
from typing import Any

import msgspec

from lockstep.errors import Code, TargetError
from lockstep.log.model import Value
from lockstep.log.names import Rules
from lockstep.session.policy import CLASSES, EffectRules

FILE = "pyproject.toml"


_KNOWN = ("effects", "hide", "keep", "scrub", "volatile")


type Volatile = tuple[tuple[str, tuple[str, ...]], ...]


class Project(msgspec.Struct, frozen=True):
    """What a project has to say of its secrets, of what its calls may do, and of what is another one in each run.

    volatile  by pattern of a call, the places in its request, as a divergence names them
    """

    rules: Rules = Rules()
    scrub: dict[str, str] = {}
    effects: EffectRules = EffectRules()
    volatile: Volatile = ()


def here() -> Project:
    """The rules that hold in the working directory. Raises TargetError LS402 where they make no sense."""
    directory = os.getcwd()
    while True:
        path = os.path.join(directory, FILE)
        try:
            with open(path, "rb") as file:
                text = file.read()
        except OSError:
            above = os.path.dirname(directory)
            if above == directory:
                return Project()
            directory = above
            continue
        return _read(text, path) if b"[tool.lockstep" in text else Project()


def told(project: Project) -> dict[str, Value]:
    """The rules as a run's meta has them."""
    found: dict[str, Value] = {"hide": [*project.rules.hide], "keep": [*project.rules.keep]}
    if project.effects.rules:
        found["effects"] = [[pattern, effect] for pattern, effect in project.effects.rules]
    if project.volatile:
        found["volatile"] = [[pattern, [*places]] for pattern, places in project.volatile]
    return found


def names(told: Value) -> Rules:
    """The rules for names that a run's processes have in common."""
    recorded = told if isinstance(told, dict) else {}
    found = {}
    for name in ("hide", "keep"):
        given = recorded.get(name)
        found[name] = tuple(each for each in given if isinstance(each, str)) if isinstance(given, list) else ()
    return Rules(**found)


def recorded(told: Value) -> EffectRules:
    """The rules for effects that a run's processes have in common, as the first of them stored them."""
    given = told.get("effects") if isinstance(told, dict) else None
    pairs = given if isinstance(given, list) else []
    return EffectRules(
        tuple(
            (str(each[0]), each[1])
            for each in pairs
            if isinstance(each, list) and len(each) == 2 and each[1] in CLASSES
        )
    )


def volatile(told: Value) -> Volatile:
    """The rules for what is another one in each run, as they were when a run was recorded."""
    given = told.get("volatile") if isinstance(told, dict) else None
    pairs = given if isinstance(given, list) else []
    return tuple(
        (str(each[0]), tuple(map(str, each[1])))
        for each in pairs
        if isinstance(each, list) and len(each) == 2 and isinstance(each[1], list)
    )


def _read(text: bytes, path: str) -> Project:
    # Here, since tomllib costs 10 ms that a project without rules need not pay.
    import tomllib

    try:
        table: Any = tomllib.loads(text.decode()).get("tool", {}).get("lockstep", {})
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise TargetError(Code.BAD_TARGET, f"cannot read the rules in {path}: {error}") from None
    if not isinstance(table, dict):
        raise TargetError(Code.BAD_TARGET, f"[tool.lockstep] of {path} must be a table")
    unknown = sorted(table.keys() - set(_KNOWN))
    if unknown:
        # A rule that nobody reads is worse than none: its author counts on it.
        raise TargetError(Code.BAD_TARGET, f"[tool.lockstep] of {path} has no {unknown[0]}: it has {', '.join(_KNOWN)}")
    scrub = table.get("scrub", {})
    if not isinstance(scrub, dict) or not all(isinstance(each, str) for each in scrub.values()):
        raise TargetError(
            Code.BAD_TARGET, f"[tool.lockstep.scrub] of {path} must give a name to each regular expression"
        )
    secrets = Rules(_names(table, "hide", path), _names(table, "keep", path))
    effects = EffectRules(_effects(table, path), os.path.relpath(path))
    return Project(secrets, scrub, effects, _volatile(table, path))


def _volatile(table: dict[str, Any], path: str) -> Volatile:
    given = table.get("volatile", {})
    fits = isinstance(given, dict) and all(
        isinstance(places, list) and places and all(isinstance(each, str) and each for each in places)
        for places in given.values()
    )
    if not fits:
        raise TargetError(
            Code.BAD_TARGET, f'[tool.lockstep.volatile] of {path} must be a table of "CALL" = ["query.name", …]'
        )
    return tuple((pattern, tuple(places)) for pattern, places in given.items())


def _effects(table: dict[str, Any], path: str) -> tuple[tuple[str, Any], ...]:
    given = table.get("effects", {})
    where = f"[tool.lockstep.effects] of {path}"
    if not isinstance(given, dict):
        raise TargetError(Code.BAD_TARGET, f'{where} must be a table of "NAME" = "CLASS"')
    for pattern, effect in given.items():
        if isinstance(effect, dict):
            raise TargetError(Code.BAD_TARGET, f'{where}: a name with dots stands in quotes, "{pattern}.…" = "CLASS"')
        if effect not in CLASSES:
            raise TargetError(
                Code.BAD_TARGET, f'{where}: "{pattern}" must be one of {", ".join(CLASSES)}, not {effect!r}'
            )
        if not pattern.strip():
            raise TargetError(Code.BAD_TARGET, f'{where}: "{pattern}" names nothing')
    return tuple(given.items())


def _names(table: dict[str, Any], key: str, path: str) -> tuple[str, ...]:
    names = table.get(key, [])
    if not isinstance(names, list) or not all(isinstance(each, str) and each for each in names):
        raise TargetError(Code.BAD_TARGET, f"{key} in [tool.lockstep] of {path} must be a list of names")
    return tuple(names)
