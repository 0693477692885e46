"""Actions on a page in `log`, `show` and `diff`: read from inert data, without the framework that wrote them."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.log import native_runs

import lockstep
from lockstep.debugger import listing, render_native
from lockstep.debugger.lines import plain
from lockstep.log.model import Kind, Value
from lockstep.log.store import open_store
from lockstep.log.timeline import resolve

PNG = b"\x89PNG\r\n\x1a\n picture"
BEFORE = '- heading "Shop"\n- textbox'
BEHIND = '- heading "Shop"\n- textbox: shoes'


@pytest.fixture
def store(tmp_path: Path) -> str:
    path = str(tmp_path / "store.db")
    open_store(path, create=True).close()
    return path


def action(
    run: native_runs.Thread, name: str, api: str, arguments: dict[str, Value], dom: tuple[str, str], **more: Any
) -> int:
    """The step of an action on the first page. `more`: result or error, url, texts and pictures that are kept of it."""
    kept = {kind: more.pop(kind) for kind in ("aria", "dom_text", "screenshot") if kind in more}
    url = more.pop("url", ("http://shop/", "http://shop/"))
    body: Value = {
        "channels": {}, "whole": True, "url": [*url], "dom": [*dom], "storage": ["s", "s"], "seconds": 0.25,
        "action": {"api": api, "arguments": arguments, "source": "shop.py:12 in buy", **(more or {"result": None})},
    }  # fmt: skip
    key = json.dumps([name, dom[1]]).encode().ljust(32)[:32]
    pos = run.event(Kind.STEP, "main/page-1", what="action", name=name, key=key, body=body)
    for kind, content in kept.items():
        called = "dom" if kind == "dom_text" else kind
        run.event(Kind.WRITES, "main/page-1", what="attachment", name=called, of=pos, body={"content": content})
    return pos


def shopping(store: str, run: str, typed: str = "shoes") -> str:
    """A run in which something is typed and a button is clicked that is not there."""
    with open_store(store) as opened:
        made = native_runs.open_thread(opened, f"playwright/{run}")
        turn = made.turn("context")
        made.event(Kind.STEP, what="input", name="new context", key=b"i" * 32, body={"channels": {}, "whole": True})
        action(
            made, "goto http://shop/", "Page.goto", {"url": "http://shop/"}, ("", "d0"), aria=BEFORE,
            url=("about:blank", "http://shop/"), result={"status": 200, "url": "http://shop/"},
            dom_text='<input id="q">',
        )  # fmt: skip
        made.call("main/page-1/read", "browser", "title", {"api": "Page.title", "arguments": {}}, "Shop")
        action(
            made, f'fill "#q" = "{typed}"', "Page.fill", {"selector": "#q", "value": typed}, ("d0", f"d-{typed}"),
            aria=BEHIND, screenshot=PNG, dom_text=f'<input id="q" :value="{typed}">',
        )  # fmt: skip
        failed = {"name": "TimeoutError", "message": "Page.click: Timeout 50ms exceeded."}
        action(made, 'click "#nope"', "Page.click", {"selector": "#nope"}, (f"d-{typed}",) * 2, error=failed)
        made.end(turn)
    return f"playwright/{run}"


def lines(store: str, address: str) -> list[str]:
    with open_store(store) as opened:
        found = listing.show(resolve(opened, address))
        assert isinstance(found, listing.Acted)
        return [plain(line) for line in render_native.shown(found, 0)]


def lockstep_says(store: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "lockstep", *arguments, "--store", store]
    return subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, "COLUMNS": "200"})


def test_log_has_an_action_a_line_with_what_came_of_it(store: str) -> None:
    run = shopping(store, "shop")
    with open_store(store) as opened:
        timeline = resolve(opened, run).timeline
        rows = render_native.log_rows(timeline, timeline.steps)
    said = ["  ".join(plain([cell]) for cell in row if plain([cell])) for row in rows]
    assert said[0].startswith("turn 1  context")
    assert said[1:] == [
        '3  ● click "#nope"  TimeoutError: Page.click: Timeout 50ms exceeded.  page-1  0.25 s',
        '2  ● fill "#q" = "shoes"  page-1  0.25 s',
        '.1    browser  title   → "Shop"  1 ms',
        "1  ● goto http://shop/  → 200  page-1  0.25 s",
        "0  ○ input",
    ]


def test_show_says_what_was_done_and_how_the_page_looked_then(store: str) -> None:
    assert lines(store, f"{shopping(store, 'shop')}:2") == [
        'playwright/shop:2  fill "#q" = "shoes"  lane main/page-1  shop.py:12 in buy  0.25 s',
        "call       Page.fill",
        "           selector  #q",
        "           value  shoes",
        "at         http://shop/",
        "changed    page",
        'page         - heading "Shop"',
        "           - - textbox",
        "           + - textbox: shoes",
        "effect     playwright/shop:2.1  browser title  unknown  lane main/page-1/read",
    ]


def test_show_says_why_an_action_failed(store: str) -> None:
    found = lines(store, f"{shopping(store, 'shop')}:3")
    assert "error      TimeoutError: Page.click: Timeout 50ms exceeded." in found


def test_show_writes_the_picture_beside_the_store_and_says_where(store: str) -> None:
    run = shopping(store, "shop")
    said = lockstep_says(store, "show", f"{run}:2")
    written = Path(store).parent / "pictures" / "playwright-shop-2.png"
    assert written.read_bytes() == PNG
    assert any(
        line.startswith("picture") and line.endswith("playwright-shop-2.png") for line in said.stdout.splitlines()
    )


def test_show_writes_the_picture_where_it_is_told(store: str, tmp_path: Path) -> None:
    run, target = shopping(store, "shop"), tmp_path / "mine.png"
    said = lockstep_says(store, "show", f"{run}:2", "--picture", str(target), "--json")
    assert target.read_bytes() == PNG
    told = json.loads(said.stdout)
    assert told["request"] == {"selector": "#q", "value": "shoes"} and told["changed"] == ["page"]
    assert told["attachments"]["aria"] == BEHIND and Path(told["picture"]).name == "mine.png"
    assert not (tmp_path / "pictures").exists()


@pytest.mark.parametrize(("step", "why"), [(3, "has no picture"), (0, "no action on a page")])
def test_a_picture_that_was_not_kept_is_an_error_where_it_is_asked_for(store: str, step: int, why: str) -> None:
    said = lockstep_says(store, "show", f"{shopping(store, 'shop')}:{step}", "--picture", "x.png")
    assert said.returncode == 2 and "LS206" in said.stderr and why in said.stderr


def test_diff_names_the_line_of_the_page_that_differs(store: str) -> None:
    one, other = shopping(store, "one"), shopping(store, "two", typed="socks")
    found = lockstep.diff(one, other, store=store)
    assert found.first is not None and (found.first.address_a, found.first.address_b) == (f"{one}:2", f"{other}:2")
    changed = {change.path: (change.a, change.b) for change in found.first.changes}
    assert changed["arguments.value"] == ('"shoes"', '"socks"')
    assert changed["page[0]"] == (r'"<input id=\"q\" :value=\"shoes\">"', r'"<input id=\"q\" :value=\"socks\">"')
    assert lockstep.diff(one, shopping(store, "three"), store=store).same
