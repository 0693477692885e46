"""The report of a conformance run: what `lockstep conformance` prints, and what the table in the README is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from lockstep.adapter import Adapter

PASSED = "passed"
FAILED = "failed"
_UNSUPPORTED = "not supported: "

BEGIN = "<!-- adapters: made by `make docs` from docs/conformance -->"
END = "<!-- end of adapters -->"


class Report(msgspec.Struct, frozen=True):
    """How an adapter did. `framework`: its title and version. `capabilities`: "passed", "failed", or "not supported:
    reason", by name. `failures`: what was expected and what came, for those that failed."""

    adapter: str
    framework: str
    modes: tuple[str, ...]
    capabilities: dict[str, str]
    failures: dict[str, str] = {}

    @property
    def passed(self) -> bool:
        """Whether everything passed: what is not supported has not."""
        return all(result == PASSED for result in self.capabilities.values())

    @property
    def count(self) -> str:
        """How many passed, in words."""
        right = sum(result == PASSED for result in self.capabilities.values())
        return f"{right} of {len(self.capabilities)}"


def unsupported(reason: str) -> str:
    """The result of a capability that the framework cannot have."""
    return f"{_UNSUPPORTED}{reason}"


def kept(report: Report) -> bytes:
    """A report as it is kept in docs/conformance: without what differs from machine to machine."""
    return msgspec.json.format(
        msgspec.json.encode(msgspec.structs.replace(report, framework="", failures={})), indent=2
    )


def table(rows: Iterable[tuple[Adapter, Report]]) -> str:
    """The adapters as a table in Markdown, between marks that `make docs` finds again."""
    lines = [
        BEGIN,
        "| adapter | tested with | a step is | continues from a step by | conformance |",
        "|---|---|---|---|---|",
        *_rows(rows),
        END,
    ]
    return "\n".join(lines)


def _rows(rows: Iterable[tuple[Adapter, Report]]) -> Iterator[str]:
    for adapter, report in rows:
        tested = f"{adapter.title} {adapter.tested.oldest} to {adapter.tested.newest}"
        ways = ", ".join(
            name for name, way in (("restoring", adapter.restore), ("re-executing", adapter.re_execute)) if way.exact
        )
        result = f"{report.count} ({', '.join(report.modes)})"
        lacking = [f"{name} {told}" for name, told in report.capabilities.items() if told != PASSED]
        told = "; ".join([result, *lacking])
        yield f"| {adapter.name} | {tested} | {adapter.steps.what} | {ways} | {told} |"
