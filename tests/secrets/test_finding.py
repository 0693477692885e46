"""What is recognised as a credential in a text, and what is not."""

from __future__ import annotations

import pytest
from kinds import IN_TEXT, NEIGHBOURS, TOKENS

from lockstep.log import redact
from lockstep.log.hiding import Hiding
from lockstep.log.names import Judge, Rules, Says
from lockstep.log.redact import Hit, scan

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


def _hits(hiding: Hiding, text: bytes) -> list[bytes]:
    return [text[hit.start : hit.end] for hit in hiding.hits(text, Says.NOTHING, "")]


@pytest.mark.parametrize("text", [*TOKENS.values(), *(text for text, _ in IN_TEXT.values())])
@pytest.mark.parametrize(
    "prose", ["Where is my order? It should have come. ", "Qk9PTQ" * 8, '{"id": "a1", "max_tokens": 7}, ']
)
def test_what_a_text_shares_with_one_before_hides_no_credential(text: str, prose: str) -> None:
    before = (prose * 60).encode()
    for at in range(len(text) + 1):
        hiding = Hiding(Judge(), lambda value, kind: b"", lambda data, partial: ())
        assert _hits(hiding, before) == []
        _hits(hiding, before + text[:at].encode())
        whole = before + text.encode() + b" " + before
        assert _hits(hiding, whole) == [whole[hit.start : hit.end] for hit in scan(whole, Judge())]


def test_a_text_that_goes_on_is_searched_from_where_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []

    def counted(data: bytes, judge: Judge, partial: bool = False) -> list[Hit]:
        searched.append(len(data))
        return scan(data, judge, partial)

    monkeypatch.setattr(redact, "scan", counted)
    hiding = Hiding(Judge(), lambda value, kind: b"", lambda data, partial: ())
    chat, token = b"Where is my order? " * 4000, TOKENS["openai"].encode()
    assert _hits(hiding, chat) == []
    assert _hits(hiding, chat + token) == [token]
    assert searched[0] == len(chat)
    assert searched[1] < 1000
