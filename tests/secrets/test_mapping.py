"""What stands for a secret, in the log and in a replay."""

from __future__ import annotations

import random
import re
from typing import Any

from lockstep.log import frames
from lockstep.log.placeholders import Placeholder
from lockstep.session.following import Following
from lockstep.session.pieces import Pieces
from lockstep.session.secrets import Secrets

LEGAL = re.compile(r"[A-Za-z0-9._-]+")
TEXT = (
    b'HTTP {"access_token": "abc-tok en!1", "x": "sk-proj-abcdefghijk1234567890zz", "k": "-----BEGIN RSA PRIVATE '
    b'KEY-----\nMIIabcdefgh\n-----END RSA PRIVATE KEY-----", "e": "envsecret-123456789", "u": "p%40ss%2Fw0rd",'
    b' "again": "sk-proj-abcdefghijk1234567890zz"} Cookie: sid=bcd; e=f\nlockstep-secret. lockstep-secret.x-1. end'
)
VALUES: dict[str, Any] = {
    "headers": [["Authorization", "Bearer sk-live-xyz1234567890abcd"], ["Accept", "*/*"]],
    "body": b'{"password": "hun\\"ter2", "note": "p4ss!word", "max_tokens": 3}',
    "url": "https://u:p%40ss@host/p?token=abc&page=2",
    "argv": ["x", "--api-key", "k", "-u", "me:pw", "--password=zz"],
    "cookies": [{"name": "sid", "value": "abcd"}],
    "field": {"name": "password", "value": "zz"},
    "env": {"ODD_KEY": "odd-value", "PATH": "/bin"},
    "own": "lockstep-secret. lockstep-secret.x-1. lockstep-secret-literal.",
    "deep": [{"a": [{"client_secret": "s3cr3t-value"}]}],
    "tuple": [1, 2.5, None, True, b"\xff\xfe"],
    "dsn": "postgres://u:p4ss!word@h/d",
}


def known() -> Secrets:
    secrets = Secrets()
    secrets.know_environment({"MY_API_KEY": "sk-live-xyz1234567890abcd", "DSN": "postgres://u:p4ss!word@h/d", "N": "1"})
    return secrets


def replaying(recorded: Secrets, environ: dict[str, str] | None = None) -> Secrets:
    secrets = Secrets(replay=True)
    secrets.know_environment(environ or {})
    secrets.know({name: value for name in recorded.names() if (value := recorded.value(name)) is not None})
    return secrets


def test_what_was_hidden_is_revealed_to_the_byte() -> None:
    secrets = known()
    hidden = secrets.hide(VALUES)
    assert hidden != VALUES
    assert replaying(secrets).reveal(hidden) == VALUES
    assert "sk-live" not in str(hidden)
    assert hidden["body"].startswith(b'{"password": "lockstep-secret')
    assert b'"max_tokens": 3' in hidden["body"]


def test_a_value_without_secrets_stays_the_same_object() -> None:
    plain: Any = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 3, "body": b"nothing of the kind"}
    assert Secrets().hide(plain) is plain
    assert Secrets().reveal(plain) is plain


def test_placeholders_are_legal_everywhere_and_say_nothing_of_the_value() -> None:
    one, other = Secrets().hide({"password": "first-value-1"}), Secrets().hide({"password": "second-value-2"})
    assert one == other == {"password": "lockstep-secret.password-1."}
    assert LEGAL.fullmatch(one["password"])


def test_a_known_value_is_hidden_wherever_it_appears_later() -> None:
    secrets = Secrets()
    secrets.hide({"password": "Tr0ub4dor&3"})
    hidden = secrets.hide(["see Tr0ub4dor&3!", "https://h/Tr0ub4dor%263/x", '{"q": "Tr0ub4dor&3"}'])
    assert not [text for text in hidden if "Tr0ub" in text]


def test_a_common_word_is_hidden_only_where_its_name_says_so() -> None:
    secrets = Secrets()
    assert secrets.hide([{"password": "postgres"}, "the postgres server"])[1] == "the postgres server"


def test_equal_secrets_have_one_placeholder_and_different_ones_two() -> None:
    hidden = Secrets().hide([{"password": "aaa-111-bbb"}, {"secret": "aaa-111-bbb"}, {"password": "ccc-222-ddd"}])
    assert hidden[0]["password"] == hidden[1]["secret"] != hidden[2]["password"]


def test_pieces_in_any_cut_come_back_as_they_were_and_never_hold_a_secret() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        secrets = Secrets()
        secrets.know_environment({"MY_TOKEN": "envsecret-123456789"})
        pieces, cuts, at = Pieces(secrets, framed=seed % 2 == 0), [], 0
        while at < len(TEXT):
            size = rng.choice([1, 3, 17, 60, 300])
            cuts.append(TEXT[at : at + size])
            at += size
        hidden = [pieces.hide(cut) for cut in cuts]
        assert [replaying(secrets).reveal(each) for each in hidden] == cuts, seed
        whole = b"".join(hidden)
        for secret in (b"abc-tok en!1", b"abcdefghijk1234567890zz", b"MIIabcdefgh", b"envsecret-123456789"):
            assert secret not in whole, seed


def test_a_rotated_key_takes_the_place_of_the_recorded_one() -> None:
    recorded = known()
    hidden = recorded.hide(VALUES)
    now = replaying(recorded, {"MY_API_KEY": "another-0987", "DSN": "postgres://u:rotated-1@h/d"})
    revealed: Any = now.reveal(hidden)
    assert revealed["headers"][0][1] == "Bearer another-0987"
    assert revealed["dsn"] == "postgres://u:rotated-1@h/d"
    assert now.hide(revealed)["headers"] == hidden["headers"]
    assert now.key("http", "x", now.hide(revealed)) == recorded.key("http", "x", hidden)


def test_a_secret_that_nobody_knows_is_its_placeholder_and_hides_as_itself() -> None:
    recorded = Secrets()
    hidden = recorded.hide({"headers": [["X-Api-Key", "some-key-12345"]], "text": "see some-key-12345"})
    now = Secrets(replay=True)
    revealed = now.reveal(hidden)
    assert revealed == hidden
    assert now.hide(revealed) == hidden
    assert now.stood_in == {"x-api-key-1"}


def test_an_unknown_value_takes_the_name_that_the_recording_has_in_its_place() -> None:
    recorded, now = Secrets(), Secrets(replay=True)
    before: Any = {"url": "https://h/login", "body": b'{"user": "bob", "password": "first-value-1"}'}
    after: Any = {"url": "https://h/login", "body": b'{"user": "bob", "password": "second-value-2"}'}
    hidden = recorded.hide(before)
    laid = Following(now)
    assert laid.lay(hidden, after)
    assert laid.hide(after) == hidden
    laid.accept()
    assert now.hide({"password": "second-value-2"}) == {"password": "lockstep-secret.password-1."}


def test_one_value_does_not_take_two_names() -> None:
    recorded, now = Secrets(), Secrets(replay=True)
    hidden = recorded.hide([{"password": "first-value-1"}, {"password": "other-value-2"}])
    laid = Following(now)
    assert not laid.lay(hidden, [{"password": "same-value-3"}, {"password": "same-value-3"}])


def test_another_text_around_a_secret_is_another_request() -> None:
    recorded, now = Secrets(), Secrets(replay=True)
    hidden = recorded.hide({"body": b'{"user": "bob", "password": "first-value-1"}'})
    assert not Following(now).lay(hidden, {"body": b'{"user": "eve", "password": "first-value-1"}'})


def test_the_counts_of_an_answer_are_made_to_fit_what_stands_in_it() -> None:
    secret = b"token-0123456789"
    plain = b"HTTP/1.1 200 OK\r\nContent-Length: 42\r\n\r\n" + b'{"access_token": "' + secret + b'", "n": 1}'.ljust(8)
    body = plain.partition(b"\r\n\r\n")[2]
    plain = plain.replace(b"42", str(len(body)).encode())
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    for answer, framed in ((plain, False), (chunked, True)):
        hidden = Pieces(Secrets(), framed=True).hide(answer)
        assert secret not in hidden
        [same] = frames.refit([{"raw": [hidden]}], lambda piece: secret[piece.start : piece.stop])
        assert same == {"raw": [answer]}
        [other] = frames.refit([{"raw": [hidden]}], lambda piece: b"a-much-longer-value-than-before-was")
        raw = other["raw"][0]  # type: ignore[index, call-overload]
        count = int(raw.split(b"\r\n\r\n")[1].split(b"\r\n")[0], 16) if framed else int(raw.split(b": ")[1].split()[0])
        assert count == len(body) - len(secret) + len(b"a-much-longer-value-than-before-was")


def test_what_looks_like_a_placeholder_is_read_as_one() -> None:
    for piece in (Placeholder("a-1"), Placeholder("MY__KEY"), Placeholder("b-2", "url"), Placeholder("c-3", "", 4, 9)):
        assert LEGAL.fullmatch(piece.text().decode())
