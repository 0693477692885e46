"""Tries every installed adapter and puts what came of it into the README.

    python docs/table.py [ADAPTER...]      (`make docs`)

The reports are kept in docs/conformance, one an adapter, and the table is made of them: an adapter whose framework
is not installed here keeps the report that it has.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from lockstep import adapter as adapters
from lockstep.adapter import registry
from lockstep.conformance import report, suite
from lockstep.conformance.report import Report

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
REPORTS = ROOT / "docs" / "conformance"
_TABLE = re.compile(rf"{re.escape(report.BEGIN)}.*?{re.escape(report.END)}", re.DOTALL)


def page(text: str, reports: Mapping[str, Report]) -> str:
    """The README with its table made anew of the reports, by adapter."""
    table = report.table((adapters.get(name), reports[name]) for name in sorted(reports))
    written, places = _TABLE.subn(lambda _: table, text)
    if places != 1:
        raise ValueError(f"{README.name} has {places} places for the table")
    return written


def kept() -> dict[str, Report]:
    """The reports in docs/conformance, by adapter."""
    return {path.stem: msgspec.json.decode(path.read_bytes(), type=Report) for path in REPORTS.glob("*.json")}


def main(names: Sequence[str]) -> int:
    """Tries the adapters named, or all whose frameworks are here. Ends with 1 where one did not pass."""
    REPORTS.mkdir(exist_ok=True)
    here = [adapter.name for adapter in adapters.installed() if registry.installed_version(adapter) is not None]
    good = True
    for name in names or here:
        found = suite.run_adapter(name)
        print(f"{name}: {found.count}", *(f"\n  {one}: {told}" for one, told in found.failures.items()))
        good = good and found.passed
        (REPORTS / f"{name}.json").write_bytes(report.kept(found) + b"\n")
    README.write_text(page(README.read_text(), kept()))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
