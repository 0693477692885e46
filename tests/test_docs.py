"""The documentation is true where that can be tested: its code runs, its commands exist, its links lead somewhere."""

import functools
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import typer

from lockstep.adapter import registry
from lockstep.cli import explaining, mounting
from lockstep.cli.app import app
from lockstep.conformance import Report
from lockstep.debugger import listing
from lockstep.debugger.recorded import Recorded
from lockstep.debugger.replay import Replayed
from lockstep.debugger.verdict import Verdict
from lockstep.debugger.verify import Verified
from lockstep.debugger.why import Why
from lockstep.errors import Code, Difference
from lockstep.log import exchange
from lockstep.log.sqlite import clean
from lockstep.session.report import Coverage
from lockstep.testing import Provider

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = {page.name: page.read_text() for page in PAGES}
CODES = {str(code) for code in Code}

_FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def fences(page: str) -> Iterator[tuple[list[str], str]]:
    """(words of the info string, content) of each fenced block."""
    for info, content in _FENCE.findall(TEXTS[page]):
        yield info.split(), content


# Code.


def test_the_guide_for_plain_python_runs(tmp_path: Path, provider: Provider) -> None:
    environment = {
        **os.environ,
        "PATH": f"{_commands(tmp_path)}{os.pathsep}{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "OPENAI_BASE_URL": f"{provider.url}/v1",
        "OPENAI_API_KEY": "sk-test",
        "COLUMNS": "100",
    }
    ran = 0
    for number, (words, content) in enumerate(fences("python.md")):
        kind, option = words[0], words[1] if len(words) > 1 else ""
        option, _, name = option.partition("=")
        if option == "file":
            (tmp_path / name).write_text(content)
            continue
        commands: list[tuple[str, int]] = []
        if (kind, option) == ("console", "run"):
            for line in content.splitlines():
                assert line.startswith("$ "), line
                command, _, status = line.removeprefix("$ ").partition("# exit ")
                commands.append((command, int(status or 0)))
        elif (kind, option) == ("python", "run"):
            (tmp_path / f"block{number}.py").write_text(content)
            commands.append((f"python block{number}.py", 0))
        elif (kind, option) == ("python", "pytest"):
            (tmp_path / name).write_text(content)
            commands.append((f"python -m pytest -q -p no:cacheprovider {name}", 0))
        for command, status in commands:
            done = subprocess.run(
                shlex.split(command), cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60,
                stdin=subprocess.DEVNULL, check=False,
            )  # fmt: skip
            assert done.returncode == status, f"{command}\n{content}\n{done.stdout}\n{done.stderr}"
            ran += 1
    assert ran >= 12


def _commands(place: Path) -> Path:
    """A directory with a `lockstep` that runs this checkout, installed or not."""
    folder = place / "bin"
    folder.mkdir()
    script = folder / "lockstep"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m lockstep "$@"\n')
    script.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("command", "struct"),
    [
        ("record", Recorded),
        ("replay", Replayed),
        ("verify", Verified),
        ("runs", listing.Run),
        ("bisect", Verdict),
        ("log", listing.Log),
        ("show", listing.Shown),
        ("why", Why),
        ("export", exchange.Exported),
        ("import", exchange.Imported),
        ("gc", clean.Cleaned),
        ("adapters", registry.Row),
        ("conformance", Report),
    ],
)
def test_json_has_the_fields_that_the_guide_lists(command: str, struct: type[msgspec.Struct]) -> None:
    told = re.search(rf"^\| `{command}` \| `\[?\{{(.*)\}}\]?` \|$", TEXTS["python.md"], re.MULTILINE)
    assert told is not None
    # Of a nested shape only the name counts here.
    names = re.sub(r": \[\{.*\}\]", "", told[1]).split(", ")
    assert names == [field.encode_name for field in msgspec.structs.fields(struct)]


@pytest.mark.parametrize(("struct", "first"), [(Difference, "code"), (Coverage, "source")])
def test_json_has_the_nested_fields_that_the_guide_lists(struct: type[msgspec.Struct], first: str) -> None:
    told = re.search(rf"`\{{({first}, [a-z_, ]*)\}}`", TEXTS["python.md"])
    assert told is not None
    assert told[1].split(", ") == [field.encode_name for field in msgspec.structs.fields(struct)]


def test_json_blocks_are_json() -> None:
    for page in TEXTS:
        for words, content in fences(page):
            if words[:1] == ["json"]:
                json.loads(content)


# Codes.


def test_every_code_has_an_entry_and_every_entry_a_code() -> None:
    entries = re.findall(r"^### (\S+)$", TEXTS["troubleshooting.md"], re.MULTILINE)
    assert entries == sorted(CODES)


def test_every_code_is_explained_without_markup() -> None:
    for code in CODES:
        told = explaining.entry(code)
        assert told is not None and told.startswith(f"{code}  ") and len(told) > 60
        assert "](" not in told and "**" not in told
    assert explaining.entry("LS999") is None


@pytest.mark.parametrize("page", TEXTS)
def test_no_page_names_a_code_that_does_not_exist(page: str) -> None:
    assert set(re.findall(r"\bLS\d{3}\b", TEXTS[page])) <= CODES


# Commands.


def commands() -> Iterator[tuple[str, str]]:
    """Every `lockstep …` command line in the pages: in code blocks a line that begins with it, else in backquotes."""
    for page, text in TEXTS.items():
        outside = text
        for words, content in fences(page):
            outside = outside.replace(content, "")
            if words[:1] != ["json"] and words[1:2] != ["vectors"]:
                for line in content.splitlines():
                    yield from ((page, found) for found in re.findall(r"^\s*(?:\$ )?(lockstep .*)$", line))
        for line in outside.splitlines():
            yield from ((page, found) for found in re.findall(r"^    (lockstep .*)$", line))
        yield from ((page, " ".join(found.split())) for found in re.findall(r"`(lockstep [a-z][^`]+)`", outside))


def test_pages_show_commands() -> None:
    assert len(list(commands())) > 20


@functools.cache
def _known() -> dict[str, Any]:
    whole = typer.Typer()
    whole.registered_commands = [*app.registered_commands]
    mounting.mount(whole, [])
    found: dict[str, Any] = typer.main.get_command(whole).commands  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize(("page", "line"), list(commands()))
def test_commands_in_the_pages_exist(page: str, line: str) -> None:
    known = _known()
    # Usage lines name several commands with `|`, and explain after three spaces.
    for usage in re.split(r" {3,}", line, maxsplit=1)[0].removeprefix("lockstep ").split(" | "):
        words = usage.split()
        if words[0].startswith("-"):
            continue
        assert words[0] in known, f"{page}: {line}"
        command: Any = known[words.pop(0)]
        if hasattr(command, "commands"):  # those of an adapter
            assert words[0] in command.commands, f"{page}: {line}"
            command = command.commands[words.pop(0)]
        options = {name for parameter in command.params for name in parameter.opts}
        for word in words:
            option = word.strip("[]").partition("=")[0]
            if option == "--":
                break
            assert not option.startswith("--") or option in options, f"{page}: {line}: {option}"


# Links.


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    plain = _FENCE.sub("", text)
    found = re.findall(r"^#+ (.*)$", plain, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


def links() -> Iterator[tuple[str, str]]:
    for page, text in TEXTS.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", _FENCE.sub("", text)):
            if "://" not in target:
                yield page, target


@pytest.mark.parametrize(("page", "target"), list(links()))
def test_internal_links_lead_somewhere(page: str, target: str) -> None:
    folder = ROOT if page == "README.md" else ROOT / "docs"
    file, _, anchor = target.partition("#")
    path = folder / file if file else folder / page
    assert path.exists(), f"{page}: {target}"
    if anchor:
        assert anchor in anchors(path.read_text()), f"{page}: {target}"


def test_paths_named_in_the_pages_exist() -> None:
    for page, text in TEXTS.items():
        for path in re.findall(r"`((?:core|tests|bench|examples|docs)/[\w./-]+)`", text):
            assert (ROOT / path).exists(), f"{page}: {path}"
