"""What the programs that measure say on the command line, and their tables in docs/benchmarks.md."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
from collections.abc import Mapping
from importlib.metadata import version

from contenders import ROOT

_PAGE = ROOT / "docs" / "benchmarks.md"


def asked(about: str | None) -> argparse.Namespace:
    """What a program was asked: `quick`, and whether to `write`."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a small run: shows that it works, and the order of size")
    parser.add_argument("--write", action="store_true", help="put the table into docs/benchmarks.md")
    return parser.parse_args()


def write(name: str, table: str, beside: Mapping[str, str], command: str = "make bench") -> None:
    """Puts a table where the page has its name, under a line that says with what it was measured: `beside`, name and
    version of each peer or framework, and by which `command`."""
    others = ", ".join(f"{name} {number}" for name, number in beside.items())
    about = (
        f"Measured {datetime.date.today():%Y-%m-%d} by `{command}`: lockstep-replay {version('lockstep-replay')}, "
        f"{others}, CPython {platform.python_version()}, {platform.system()}, {os.cpu_count()} cores."
    )
    place = re.compile(rf"(<!-- {name}[^>]*-->\n).*?(<!-- end of {name} -->)", re.DOTALL)
    text, places = place.subn(lambda found: f"{found[1]}\n{about}\n\n{table}\n\n{found[2]}", _PAGE.read_text())
    if places != 1:
        raise ValueError(f"{_PAGE.name} has {places} places for the table of {name}")
    _PAGE.write_text(text)
