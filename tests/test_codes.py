"""Every error code is raised by some line of the code, met by some test, and explained with what to do."""

from __future__ import annotations

import ast
import asyncio
import re
from pathlib import Path

import pytest

import lockstep
from lockstep.errors import Code

ROOT = Path(__file__).parents[1]
CORE = ROOT / "core" / "lockstep"
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text()

# What is called with a code to raise it, or to latch it for the session to raise.
RAISING = re.compile(r"(\w*Error|Diverge|Difference|diverge|differs|latch|_?finding|_?difference)")


def codes(node: ast.AST) -> set[str]:
    """Names of the codes in an expression."""
    found = (each for each in ast.walk(node) if isinstance(each, ast.Attribute))
    return {each.attr for each in found if ast.unparse(each.value).rpartition(".")[2] == "Code"}


def classes_of_one_code() -> dict[str, set[str]]:
    """The errors that bring their code along, by name."""
    tree = ast.parse((CORE / "errors.py").read_text())
    return {each.name: codes(each) for each in tree.body if isinstance(each, ast.ClassDef) and each.name != "Code"}


BRINGS = classes_of_one_code()


def raised(source: str) -> set[str]:
    """The codes that a module's source raises: given to an error or a divergence as an argument, or brought by one."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        call = node.exc if isinstance(node, ast.Raise) else node
        if not isinstance(call, ast.Call):
            continue
        name = ast.unparse(call.func).rpartition(".")[2]
        found |= BRINGS.get(name, set())
        if call is not node or RAISING.fullmatch(name):
            given = (*call.args, *(keyword.value for keyword in call.keywords))
            found |= {name for each in given if isinstance(each, ast.Attribute) for name in codes(each)}
    return found


def test_every_code_is_raised_somewhere() -> None:
    paths = (path for root in (CORE, ROOT / "adapters") for path in root.rglob("*.py"))
    found = {name for path in paths if path.name != "errors.py" for name in raised(path.read_text())}
    assert {code.name for code in Code} - found == set()


def test_only_what_is_given_to_an_error_counts_as_raised() -> None:
    assert raised("raise StoreError(Code.DAMAGED, 'x')") == {"DAMAGED"}
    assert raised("session.latch(Code.ORDER, 'x', call=call)") == {"ORDER"}
    assert raised("raise Refused('x', run)") == {"REFUSED"}
    assert raised("shown = (Code.DAMAGED,)\nif error.code is Code.ORDER: print(Code.END)") == set()


def test_every_code_is_met_by_a_test() -> None:
    tests = "".join(path.read_text() for path in (ROOT / "tests").rglob("*.py"))
    unmet = [str(code) for code in Code if not re.search(rf"\bCode\.{code.name}\b|\b{code}\b", tests)]
    assert unmet == []


def entries() -> dict[str, str]:
    return dict(re.findall(r"^### (LS\d{3})\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("code", [str(code) for code in Code])
def test_an_entry_says_what_happened_and_then_why_and_what_to_do(code: str) -> None:
    entry = entries()[code].strip()
    what = re.match(r"\*\*[^*]+\*\*", entry)
    assert what is not None, "what happened comes first, and stands out"
    rest = entry[what.end() :]
    assert len(re.findall(r"[.:](?:\s|$)", rest)) >= 2, "why, and what to do, takes more than that"
    assert "nothing raises it" not in entry and "Reserved" not in entry


def test_a_program_that_waits_for_what_never_came_is_stuck(tmp_path: Path) -> None:
    @lockstep.tool
    async def look() -> int:
        await asyncio.sleep(0)
        return 7

    async def agent(*, waits: bool) -> int:
        seen = await look()
        if waits:
            await asyncio.get_running_loop().create_future()
        return seen

    with lockstep.record("waits", store=tmp_path / "store.db"):
        assert asyncio.run(agent(waits=False)) == 7
    replay = lockstep.replay("waits", lambda: asyncio.run(agent(waits=True)), store=tmp_path / "store.db")
    assert replay.report.difference is not None
    assert replay.report.difference.code is Code.STUCK
    assert replay.report.difference.step == 2
