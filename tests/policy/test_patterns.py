"""Which calls a pattern of `--live` or of a rule means."""

from typing import Any

import pytest

from lockstep.session.patterns import matches


def _http(pattern: str, method: str, url: str, kind: str = "http", body: bytes = b"") -> bool:
    host = url.partition("://")[2].partition("?")[0]
    return matches(pattern, kind, f"{method} {host}", {"method": method, "url": url, "body": body, "headers": []})


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [("issue_refund", True), ("issue_*", True), ("tool issue_refund", True), ("tool *", True), ("*", True),
     ("process issue_refund", False), ("issue", False), ("Issue_refund", False), ("http *", False)],
)  # fmt: skip
def test_a_tool_is_meant_by_its_name_and_kind(pattern: str, fits: bool) -> None:
    assert matches(pattern, "tool", "issue_refund", {"arguments": {}}) is fits


@pytest.mark.parametrize(
    ("pattern", "fits"),
    [
        ("POST https://api.stripe.com/*", True),
        ("POST api.stripe.com/v1/charges", True),  # as `lockstep log` has it
        ("POST https://api.stripe.com/v1/charges", True),
        ("https://api.stripe.com/v1/charges", True),
        ("api.stripe.com/*", True),
        ("*.stripe.com/*", True),
        ("POST *", True),
        ("http *", True),
        ("http POST *.stripe.com/v1/*", True),
        ("POST https://API.stripe.com/*", True),  # a host's case does not count
        ("GET https://api.stripe.com/*", False),
        ("http://api.stripe.com/*", False),
        ("api.stripe.com/v2/*", False),
        ("api.stripe.com", False),  # could be a tool's name
        ("POST api.stripe.com", False),  # that is its front page
        ("charges", False),
        ("stripe.com/*", False),
    ],
)
def test_a_request_is_meant_by_method_and_address(pattern: str, fits: bool) -> None:
    assert _http(pattern, "POST", "https://api.stripe.com/v1/charges") is fits


def test_a_star_for_a_host_does_not_reach_into_the_path() -> None:
    for pattern in ("https://*.example.com/*", "POST *.example.com/*", "POST https://*.example.com/*"):
        assert _http(pattern, "POST", "https://a.example.com/x")
        assert not _http(pattern, "POST", "https://elsewhere.net/x.example.com/")
        assert not _http(pattern, "POST", "https://elsewhere.net?x.example.com/")
        assert not _http(pattern, "POST", "https://a.example.com@elsewhere.net/")
        assert not _http(pattern, "POST", "https://elsewhere.net#.example.com/")


def test_the_query_counts_where_the_pattern_has_one() -> None:
    url = "https://a.example.com/jobs?do=start"
    assert _http("GET https://a.example.com/jobs", "GET", url)
    assert _http("GET https://a.example.com/jobs?do=start", "GET", url)
    assert not _http("GET https://a.example.com/jobs?do=list", "GET", url)


def test_a_host_without_a_name_is_meant_as_it_is_written() -> None:
    assert _http("POST [::1]:8000/x", "POST", "http://[::1]:8000/x")


def test_a_model_is_meant_by_its_name_and_an_mcp_tool_by_its() -> None:
    chat = "https://api.openai.com/v1/chat/completions"
    assert _http("gpt-4*", "POST", chat, "model", b'{"model": "gpt-4o"}')
    assert _http("model gpt-4o", "POST", chat, "model", b'{"model": "gpt-4o"}')
    assert not _http("gpt-4*", "POST", chat, "model", b'{"model": "o3"}')
    call = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "issue_refund"}}'
    asked = {"method": "POST", "url": "https://m.example/mcp", "body": call, "headers": [["mcp-session-id", "1"]]}
    assert matches("issue_*", "http", "POST m.example/mcp", asked)
    assert not matches("issue_*", "http", "POST m.example/mcp", {**asked, "headers": []})


@pytest.mark.parametrize(
    ("pattern", "request_", "fits"),
    [
        ("git", {"argv": ["/usr/bin/git", "push"]}, True),
        ("git push*", {"argv": ["/usr/bin/git", "push", "origin"]}, True),
        ("process git *", {"argv": ["git", "push"]}, True),
        ("git status*", {"argv": ["git", "push"]}, False),
        # What a shell is asked to do may go on after what looks harmless.
        ("git status*", {"shell": "git status; git push"}, False),
        ("sh -c 'git status*", {"shell": "git status; git push"}, True),
        ("sh", {"shell": "git status"}, True),
    ],
)
def test_a_process_is_meant_by_its_words(pattern: str, request_: Any, fits: bool) -> None:
    assert matches(pattern, "process", "sh" if "shell" in request_ else "git", request_) is fits
