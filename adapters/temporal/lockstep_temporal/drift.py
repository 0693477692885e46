"""Inputs that a framework, or the code itself, draws anew each time: no divergence, and told as "input drift".

Temporal does not compare what activities are called with, so that frameworks put clocks and ids into it that are none
of the workflow's. Some are known by framework (`known`), some the user names (`Setup.volatile`); others show when one
record is driven twice with the same code: what then differs between the two has nothing to do with the record
(`Drifts.learn`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import translate

from lockstep.session import coverage
from lockstep.session.report import Coverage
from lockstep_temporal.compare import Drift, ordinary

SOURCE = "input drift"
DECLARED = "the setup says that it may differ"

# By framework: the commands that it calls, and the fields that it fills anew, as far as these were seen to differ.
# What a tool is given has fields of any name: it is not among them.
_KNOWN = (
    (
        "pydantic-ai",
        re.compile(r"agent__"),
        re.compile(
            r"arguments\[0\]\.(messages\[\d+\]\.((parts\[\d+\]\.)?timestamp|run_id|conversation_id)"
            r"|serialized_run_context\.(run_id|conversation_id|active_capability_ids(\[\d+\])?))"
        ),
    ),
    (
        "temporalio-langgraph",
        re.compile(r""),
        re.compile(
            r"arguments\[0\]\.langgraph_config\."
            r"(configurable\.(__pregel_task_id|checkpoint_ns|checkpoint_map\b.*)"
            r"|execution_info\.(task_id|checkpoint_id|checkpoint_ns|node_first_attempt_time)"
            r"|metadata\.langgraph_checkpoint_ns)"
        ),
    ),
)
_INPUTS = ("activity", "local_activity", "child", "signal_external")
_INDEX = re.compile(r"\[\d+\]")


def known(name: str, path: str) -> str:
    """The framework that fills this field of a command of that name anew each time, "" for none."""
    for framework, command, field in _KNOWN:
        if command.match(name) and field.fullmatch(path):
            return framework
    return ""


class Drifts:
    """What may differ in one replay or fork, and what did.

    declared  see `Setup.volatile`
    learned   (kind, name, path without indexes) of fields that differed between two drives of one record
    """

    def __init__(self, declared: Mapping[str, Sequence[str]] | None = None) -> None:
        self._declared = [(re.compile(translate(name)), tuple(paths)) for name, paths in (declared or {}).items()]
        self.learned: set[tuple[str, str, str]] = set()
        self.seen: dict[tuple[str, str, str, str], int] = {}

    def volatile(self, kind: str, name: str, path: str) -> bool:
        """Whether a field of a command may differ."""
        if (kind, name, _general(path)) in self.learned:
            return True
        return kind in _INPUTS and ordinary(path) and bool(self._cause(name, path))

    def _cause(self, name: str, path: str) -> str:
        """Who says that a field may differ, "" for nobody."""
        if any(names.match(name) and any(_within(path, each) for each in paths) for names, paths in self._declared):
            return DECLARED
        framework = known(name, path)
        return f"{framework} fills it anew" if framework else ""

    def learn(self, differing: Iterable[Drift]) -> bool:
        """Takes what differed between two drives. False: nothing that was not known."""
        new = {(each.kind, each.name, _general(each.path)) for each in differing} - self.learned
        self.learned |= new
        return bool(new)

    def add(self, drifts: Iterable[Drift]) -> None:
        """Fields that were let differ."""
        for each in drifts:
            cause = self._cause(each.name, each.path)
            at = (each.kind, each.name, _general(each.path), cause)
            self.seen[at] = self.seen.get(at, 0) + 1

    @property
    def inputs(self) -> tuple[Coverage, ...]:
        """What differed in what was called, for a report."""
        return tuple(
            Coverage(SOURCE, coverage.DIFFERS, count, _told(*at))
            for at, count in sorted(self.seen.items())
            if at[0] in _INPUTS
        )

    @property
    def others(self) -> tuple[str, ...]:
        """What differed elsewhere, as in a result: not an input's drift, so that nothing vouches for it."""
        return tuple(_told(*at) for at in sorted(self.seen) if at[0] not in _INPUTS)


def _told(kind: str, name: str, path: str, cause: str) -> str:
    who = cause or "the code draws it anew: two drives of this record differ in it"
    return f"{kind} {name}".strip() + f"  {path}: {who}"


def _within(path: str, declared: str) -> bool:
    """Whether a field is the declared one, or part of it."""
    return any(
        whole == declared or whole.startswith((f"{declared}.", f"{declared}[")) for whole in (path, _general(path))
    )


def _general(path: str) -> str:
    """The path for all items of a list alike, but for which argument it is."""
    head, bracket, rest = path.partition("]")
    return head + bracket + _INDEX.sub("[]", rest)
