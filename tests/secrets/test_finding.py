"""What is recognised as a credential in a text, and what is not."""

from __future__ import annotations

import pytest
from kinds import IN_TEXT, NEIGHBOURS, TOKENS

from lockstep.log.names import Judge, Rules, Says
from lockstep.log.redact import scan

JUDGE = Judge()


def found(text: str, judge: Judge = JUDGE) -> list[str]:
    data = text.encode()
    return [data[hit.start : hit.end].decode() for hit in scan(data, judge)]


@pytest.mark.parametrize("kind", TOKENS)
def test_a_token_is_known_by_its_shape(kind: str) -> None:
    token = TOKENS[kind]
    for text in (f"before {token} after", f'{{"text": "{token}"}}', f"x\\n{token}\\n", f"({token})"):
        assert found(text) == [token]


@pytest.mark.parametrize("kind", IN_TEXT)
def test_a_credential_is_known_by_what_stands_before_it(kind: str) -> None:
    text, secret = IN_TEXT[kind]
    assert any(secret in hit for hit in found(text))


@pytest.mark.parametrize("text", NEIGHBOURS)
def test_harmless_neighbours_are_kept(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "object", "properties": {"password": {"type": "string"}}, "required": ["password"]}',
        "def connect(password=password, token=None, api_key=self.key): ...",
        "api_key = os.environ['X']",
        'headers = {"Authorization": f"Bearer ${TOKEN}"}',
        "password: ${DB_PASSWORD}",
        "Enter your password: ",
        "the token: next",
        "http://localhost:8080/path@2",
        "task-management-system-for-everybody-at-once",
        "6f1c8a52-38b1-4a1d-9c3e-0f1de2a3b4c5",
    ],
)
def test_code_schemas_templates_and_prose_are_no_credentials(text: str) -> None:
    assert found(text) == []


def test_json_within_json_is_read_at_its_level() -> None:
    assert found('{"a": "{\\"password\\": \\"x\\\\\\"y\\", \\"n\\": 1}"}') == ['x\\\\\\"y']
    assert found('{"password": "ends with a backslash \\\\", "n": "1"}') == ["ends with a backslash \\\\"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("apiKey", Says.SECRET), ("X-API-Key", Says.SECRET), ("OPENAI_API_KEY", Says.SECRET),
        ("api_key_2", Says.SECRET), ("clientSecret", Says.SECRET), ("db_password", Says.SECRET),
        ("refresh_token", Says.SECRET),
        ("authorization", Says.AUTHORIZATION), ("Cookie", Says.COOKIES), ("token", Says.MAYBE), ("sig", Says.QUERY),
        ("max_tokens", Says.NOTHING), ("nextPageToken", Says.NOTHING), ("public_key", Says.NOTHING),
        ("password_policy", Says.NOTHING), ("has_password", Says.NOTHING), ("author", Says.NOTHING),
        ("keyboard", Says.NOTHING), ("session_id", Says.NOTHING), ("SSH_AUTH_SOCK", Says.NOTHING),
    ],
)  # fmt: skip
def test_names_are_judged_by_their_words(name: str, says: Says) -> None:
    assert JUDGE.says(name) is says


@pytest.mark.parametrize("name", ["DB_PASSWORD", "GH_TOKEN", "TOKEN", "SOME_KEY", "AWS_SECRET_ACCESS_KEY", "API_KEYS"])
def test_variables_are_judged_by_their_names(name: str) -> None:
    assert JUDGE.variable(name)


@pytest.mark.parametrize("name", ["PATH", "PWD", "OLDPWD", "MAX_TOKENS", "SSH_AUTH_SOCK", "PUBLIC_KEY", "KEYBOARD"])
def test_variables_of_other_names_are_kept(name: str) -> None:
    assert not JUDGE.variable(name)


def test_a_project_hides_and_keeps_names_of_its_own() -> None:
    judge = Judge(Rules(hide=("session_id", "X-Tenant"), keep=("csrf_token",)))
    assert found('{"session_id": "abc", "X-Tenant": "t", "csrf_token": "c"}', judge) == ["abc", "t"]


def test_the_end_of_a_text_may_cut_a_credential_off() -> None:
    for text in ('{"password": "hun', "see sk-proj-abc", "-----BEGIN PRIVATE KEY-----\nMII", "postgres://app:pw"):
        hits = scan(text.encode(), JUDGE, partial=True)
        assert [hit.end for hit in hits] == [len(text)]
        assert hits[0].open
