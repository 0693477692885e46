"""What a call may do to the outside: who says so, and who is believed."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lockstep.errors import Code, TargetError
from lockstep.session import mcp, rules
from lockstep.session.policy import Declared, EffectRules, classify, judge

MCP = [["accept", "application/json, text/event-stream"], ["mcp-protocol-version", "2025-06-18"]]


def _http(method: str, url: str = "https://api.example.com/v1/x", body: Any = b"", headers: Any = ()) -> dict[str, Any]:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return {"method": method, "url": url, "body": data, "headers": [list(pair) for pair in headers]}


@pytest.mark.parametrize(
    ("method", "expected"),
    [("GET", "read"), ("HEAD", "read"), ("OPTIONS", "read"), ("TRACE", "read"), ("POST", "unknown"),
     ("PUT", "mutating"), ("PATCH", "mutating"), ("DELETE", "mutating"), ("REFUND", "unknown"), ("get", "unknown"),
     ("CONNECT", "read")],
)  # fmt: skip
def test_an_http_request_is_what_its_method_says(method: str, expected: str) -> None:
    assert classify("http", f"{method} api.example.com/v1/x", _http(method)) == expected


def test_a_get_that_opens_a_websocket_does_not_only_read() -> None:
    asked = _http("GET", headers=[("Connection", "Upgrade"), ("Upgrade", "websocket")])
    assert classify("http", "GET api.example.com/v1/x", asked) == "unknown"
    assert (
        classify("http", "GET api.example.com/", _http("GET", headers=[("Upgrade-Insecure-Requests", "1")])) == "read"
    )


def test_a_call_to_a_model_is_inference_unless_its_provider_is_to_run_tools() -> None:
    url = "https://api.openai.com/v1/responses"
    plain = {"model": "gpt-4o", "input": "hi", "tools": [{"type": "function", "name": "f"}]}
    for body in (plain, b"--b\r\nContent-Disposition: form-data\r\n\r\n", b""):
        assert classify("model", "POST api.openai.com/v1/responses", _http("POST", url, body)) == "inference"
    for more in ({"tools": [{"type": "mcp", "server_url": "https://x"}]}, {"background": True}, {"mcp_servers": [{}]}):
        assert classify("model", "POST api.openai.com/v1/responses", _http("POST", url, plain | more)) == "unknown"
    assert classify("model", "gpt-4o", None) == "inference"  # an adapter's: there is no body to look at


def test_a_process_may_do_anything_and_asking_a_person_changes_nothing() -> None:
    assert classify("process", "git", {"argv": ["git", "status"]}) == "unknown"
    assert classify("human", "stdin", {"read": "some"}) == "read"
    assert classify("tool", "issue_refund", {"arguments": {}}) == "unknown"
    assert classify("of another kind", "x", None) == "unknown"


def test_a_declaration_is_believed_before_the_request_and_a_rule_before_both() -> None:
    declared = Declared("read", "declared in agent.py:3")
    post = _http("POST", "https://api.example.com/search")
    name = "POST api.example.com/search"
    given = EffectRules((("POST https://api.example.com/*", "mutating"),), "pyproject.toml")
    assert judge("http", name, post, None, EffectRules()) == Declared("unknown", "a POST may change something")
    assert judge("http", name, post, declared, EffectRules()) is declared
    found = judge("http", name, post, declared, given)
    assert found == Declared("mutating", 'by the rule "POST https://api.example.com/*" in pyproject.toml')
    assert judge("tool", "search", {"arguments": {}}, declared, given) is declared


def test_of_several_rules_the_first_that_fits_decides() -> None:
    given = EffectRules((("refund_status", "read"), ("refund_*", "mutating")))
    assert classify("tool", "refund_status", None, None, given) == "read"
    assert classify("tool", "refund_all", None, None, given) == "mutating"


@pytest.mark.parametrize(
    ("body", "headers", "expected"),
    [
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, MCP, "read"),
        ({"jsonrpc": "2.0", "method": "notifications/initialized"}, MCP, "read"),
        ({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
         MCP[:1], "read"),
        ([{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}],
         MCP, "read"),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "refund"}}, MCP, "unknown"),
        ([{"jsonrpc": "2.0", "id": 1, "method": "ping"},
          {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "refund"}}], MCP, "unknown"),
        # Of a server without sessions, from a client that names no version of the protocol.
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, MCP[:1], "read"),
        ({"jsonrpc": "2.0", "id": 1, "method": "message/send"}, MCP[:1], "unknown"),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping"}, MCP[:1], "unknown"),
        # Another protocol's JSON-RPC, which may mean anything by these names.
        ({"jsonrpc": "2.0", "id": 1, "method": "initialize"}, [], "unknown"),
        ({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, [], "unknown"),
        ({"jsonrpc": "1.0", "id": 1, "method": "tools/list"}, MCP, "unknown"),
        (b'{"jsonrpc": "2.0", "method": ', MCP, "unknown"),
        (b'{"jsonrpc": "2.0", "method": 3}', MCP, "unknown"),
        ([], MCP, "unknown"),
    ],
)  # fmt: skip
def test_an_mcp_request_that_only_looks_is_known_by_itself(body: Any, headers: Any, expected: str) -> None:
    assert classify("http", "POST mcp.example.com/mcp", _http("POST", body=body, headers=headers)) == expected


def test_a_client_that_ends_its_own_mcp_session_changes_nothing_else() -> None:
    mine = _http("DELETE", headers=[["Mcp-Session-Id", "s1"]])
    assert classify("http", "DELETE mcp.example.com/mcp", mine) == "read"


@pytest.mark.parametrize(
    ("hints", "expected"),
    [
        ({"readOnlyHint": True}, "read"),
        ({"readOnlyHint": True, "destructiveHint": True}, "read"),  # which means nothing for a tool that only reads
        ({"readOnlyHint": False}, "mutating"),
        ({"destructiveHint": True}, "mutating"),
        ({"destructiveHint": False}, "mutating"),
        ({"idempotentHint": True}, "mutating"),
        ({"readOnlyHint": None, "openWorldHint": False, "title": "Refund"}, None),
        ({"readOnlyHint": "yes"}, None),
        ({}, None),
    ],
)
def test_the_annotations_of_a_tool_say_whether_it_changes_something(hints: Any, expected: str | None) -> None:
    assert mcp.annotated(hints) == expected
    assert mcp.annotated(SimpleNamespace(**hints)) == expected


def test_annotations_may_be_written_as_python_does_or_be_absent() -> None:
    assert mcp.annotated(SimpleNamespace(read_only_hint=True)) == "read"
    assert mcp.annotated(None) is None


# The rules of a project.


def _project(text: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> rules.Project:
    (directory / "pyproject.toml").write_text(text)
    inner = directory / "agent"
    inner.mkdir(exist_ok=True)
    monkeypatch.chdir(inner)
    return rules.here()


def test_rules_are_found_above_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = '[tool.lockstep.effects]\n"issue_refund" = "mutating"\n"POST https://search.example.com/*" = "read"\n'
    given = _project(text, tmp_path, monkeypatch).effects
    assert given.rules == (("issue_refund", "mutating"), ("POST https://search.example.com/*", "read"))
    found = given.find("tool", "issue_refund", None)
    assert found is not None
    assert found.where == f'by the rule "issue_refund" in {Path("..", "pyproject.toml")}'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[tool.lockstep.effects]\nissue_refund = "writes"\n', "must be one of inference, read, mutating, unknown"),
        ("[tool.lockstep.effects]\nissue_refund = 3\n", "must be one of"),
        ('[tool.lockstep.effects]\nissue_refund = ["read"]\n', "must be one of"),
        ('[tool.lockstep.effects]\napi.example = "read"\n', "stands in quotes"),
        ('[tool.lockstep.effects]\n" " = "read"\n', "names nothing"),
        ('[tool.lockstep]\neffects = "read"\n', "must be a table"),
        ('[tool.lockstep.effect]\nissue_refund = "mutating"\n', "has no effect: it has effects"),
        ('[[tool.lockstep]]\nhide = ["x"]\n', "must be a table"),
    ],
)
def test_rules_that_make_no_sense_are_said(
    text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(TargetError, match=said) as caught:
        _project(text, tmp_path, monkeypatch)
    assert caught.value.code is Code.BAD_TARGET


def test_a_project_without_rules_needs_none_of_what_reads_them() -> None:
    # What a program's start pays for; `fnmatch` and `shlex` are for patterns, `tomllib` for a table.
    code = (
        "import sys; import lockstep.session.policy; sys.exit(str({'fnmatch', 'shlex', 'tomllib'} & set(sys.modules)))"
    )
    import subprocess

    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False,
                          env={"PYTHONPATH": ":".join(path for path in sys.path if path)})  # fmt: skip
    assert done.stderr.strip() == "set()"
