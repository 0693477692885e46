"""The classes of real calls, as a recorded program's `lockstep log --json` has them."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.warm import command

from lockstep.testing import Provider

AGENT = """
import asyncio, json, subprocess, sys, urllib.request

import aiohttp, httpx, openai

import lockstep

MCP = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
base = sys.argv[1]


@lockstep.tool(effect="mutating")
def refund(order):
    return httpx.post(base + "/inner", content=b"x").status_code


async def others():
    async with aiohttp.ClientSession() as session:
        async with session.put(base + "/put", data=b"x") as answer:
            await answer.read()


input()
httpx.get(base + "/get")
httpx.post(base + "/post", content=b"x")
httpx.post(base + "/search", content=b"x")
httpx.post(base + "/mcp", headers=MCP, json={"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
httpx.post(base + "/mcp", headers=MCP, json={"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {}})
urllib.request.urlopen(urllib.request.Request(base + "/delete", method="DELETE")).read()
asyncio.run(others())
openai.OpenAI().chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "hi"}])
refund(4)
subprocess.run(["true"])
subprocess.run([sys.executable, "worker.py"], cwd="inner", check=True)
"""

WORKER = """
import lockstep


@lockstep.tool
def paint(what):
    return what


paint("fence")
"""

RULES = """
[tool.lockstep.effects]
"POST http://127.0.0.1*/search" = "read"
"paint" = "mutating"
"""


class _Anything(BaseHTTPRequestHandler):
    def _answer(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.send_response(200)
        self.send_header("content-length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - as they are looked up

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Anything) as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_address[1]}"
        running.shutdown()


def _lockstep(place: Path, *words: str, **options: Any) -> str:
    done = command.run(*words, cwd=place, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_kind_of_call_has_its_class_also_in_a_child_that_stands_elsewhere(
    tmp_path: Path, server: str, provider: Provider
) -> None:
    (tmp_path / "agent.py").write_text(AGENT)
    inner = tmp_path / "inner"
    inner.mkdir()
    (inner / "worker.py").write_text(WORKER)
    (inner / "pyproject.toml").write_text("")  # the rules are those of the run, wherever a process of it stands
    (tmp_path / "pyproject.toml").write_text(RULES)
    env = {**os.environ, "OPENAI_BASE_URL": f"{provider.url}/v1", "OPENAI_API_KEY": "test"}
    command = ("record", "--run", "r", "--", sys.executable, "agent.py", server)
    _lockstep(tmp_path, *command, env=env, input="go\n")
    steps = json.loads(_lockstep(tmp_path, "log", "r", "--json"))["steps"]
    host = server.partition("://")[2]
    found = [(each["name"].replace(host, ""), each["class"]) for step in steps for each in step["effects"]]
    assert sorted(found) == sorted([
        ("stdin", "read"), ("GET /get", "read"), ("POST /post", "unknown"), ("POST /search", "read"),
        ("POST /mcp", "read"), ("POST /mcp", "unknown"), ("DELETE /delete", "mutating"), ("PUT /put", "mutating"),
        ("gpt-4o", "inference"), ("refund", "mutating"), ("true", "unknown"), ("python", "unknown"),
        ("paint", "mutating"),
    ])  # fmt: skip
    refund = next(each for step in steps for each in step["effects"] if each["name"] == "refund")
    shown = json.loads(_lockstep(tmp_path, "show", refund["address"], "--json"))
    assert (shown["class"], [each["class"] for each in shown["effects"]]) == ("mutating", ["unknown"])
    assert "mutating" in _lockstep(tmp_path, "show", refund["address"])
    replayed = json.loads(_lockstep(tmp_path, "replay", "r", "--json", env=env, stdin=subprocess.DEVNULL))
    assert replayed["identical"] is True
