"""`lockstep adapters` and `lockstep conformance`: the answers are what was asked for, so they go to stdout."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from lockstep.adapter import registry
from lockstep.adapter.registry import Row
from lockstep.cli import failures, terminal
from lockstep.conformance import capabilities, suite
from lockstep.conformance.report import PASSED, Report
from lockstep.debugger.lines import Piece, safe


def adapters(*, as_json: bool, debug: bool) -> None:
    """Lists what is registered. Ends with 1 where one of them cannot be used."""
    with failures.reported(as_json=as_json, debug=debug):
        rows = [*registry.listing()]
        if as_json:
            terminal.emit(rows)
        else:
            columns = ["ADAPTER", "FRAMEWORK", "TESTED WITH", "ATTACHES", "RESTORES", "RE-EXECUTES"]
            terminal.table([(heading, "left") for heading in columns], [_cells(row) for row in rows], flexible=1)
            for row in rows:
                if row.problem:
                    terminal.say([("✗ ", "bad"), safe(row.problem)])
        raise SystemExit(failures.NO if any(row.problem for row in rows) else failures.OK)


def _cells(row: Row) -> list[Piece]:
    if row.tested is None:
        return [row.name, (row.verdict, "bad"), "", "", "", ""]
    framework = f"{row.title} {row.installed}" if row.installed else row.title
    style = "good" if row.verdict == "tested" else "warn"
    told = f"{framework}, {row.verdict}" if row.verdict != "tested" else framework
    return [
        (row.name, "strong"), (told, style), " to ".join(row.tested), "yes" if row.attaches else "no",
        _short(row.restore), _short(row.re_execute),
    ]  # fmt: skip


def _short(way: str) -> str:
    return way if way == "exact" else "no"


def conformance(name: str, *, only: Sequence[str], as_json: bool, debug: bool) -> None:
    """Runs the tests against an adapter. Ends with 0 where everything passed, with 1 where not."""
    with failures.reported(as_json=as_json, debug=debug):
        unknown = [capability for capability in only if capability not in capabilities.CAPABILITIES]
        if unknown:
            failures.fail(
                ValueError(f"there is no capability {unknown[0]}. Known are {', '.join(capabilities.CAPABILITIES)}"),
                as_json=as_json,
            )
        if ":" in name:
            # A subject that no installed adapter names yet: its author's, in the working directory.
            sys.path.insert(0, os.getcwd())
            report = suite.run(suite.find(name), reference=name, name=name, only=only, heard=_heard(as_json))
        else:
            report = suite.run_adapter(name, only=only, heard=_heard(as_json))
        if as_json:
            terminal.emit(report)
        else:
            _say(report)
        raise SystemExit(failures.OK if report.passed else failures.NO)


def _heard(as_json: bool) -> suite.Heard | None:
    if as_json:
        return None

    def heard(capability: str, result: str) -> None:
        mark: Piece = ("✓ ", "good") if result == PASSED else ("✗ ", "bad")
        told = "" if result == PASSED else f"  {result}"
        terminal.say([mark, capability, (told, "warn")], to=sys.stdout)
        sys.stdout.flush()

    return heard


def _say(report: Report) -> None:
    for capability, problem in report.failures.items():
        terminal.say("", to=sys.stdout)
        terminal.say([(capability, "strong"), f": {capabilities.told(capability)}"], to=sys.stdout)
        for line in problem.splitlines():
            terminal.say(["  ", safe(line)], to=sys.stdout)
    good = report.passed
    about = " ".join(part for part in (report.adapter, report.framework) if part)
    terminal.say("", to=sys.stdout)
    terminal.say(
        [("✓ " if good else "✗ ", "good" if good else "bad"), (f"{report.count} passed", "strong"),
         f"  {about}  ({', '.join(report.modes)})"], to=sys.stdout,
    )  # fmt: skip
