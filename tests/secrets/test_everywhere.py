"""Secrets of every kind through every place that is recorded: absent from the log, and the runs replay."""

from __future__ import annotations

import gzip
import json
import shutil
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from kinds import IN_TEXT, NEIGHBOURS, TOKENS
from secret_runs import ENVIRONMENT, HERE, OTHER, lockstep, replayed, stored

PROGRAM = str(HERE / "programs" / "places.py")
GIVEN = "cliSecret0123456789"
SECRETS = {
    **TOKENS,
    **{kind: secret for kind, (_, secret) in IN_TEXT.items()},
    "argv": GIVEN,
    "environment": ENVIRONMENT["MY_SERVICE_KEY"],
    "database url in the environment": "dbPass9876543",
    "given by a login": "token-of-ann-0123456789",
    "given by a login to a task": "token-of-eve-0123456789",
    "cookie set": "cookie-0123456789abcdef",
    "password sent": "pass-bob-1",
}


@pytest.mark.parametrize("encoding", ["", "gzip"])
def test_no_secret_is_in_the_store_and_the_run_replays(
    encoding: str, server: Callable[..., str], tmp_path: Path
) -> None:
    url = server("12" if encoding else "0", encoding)
    done = lockstep(
        "record", "--run", "places", "--", sys.executable, PROGRAM, url, "--api-key", GIVEN, environment=ENVIRONMENT
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    store = tmp_path / "store.db"

    everything = stored(store, "places")
    raw = b"".join(path.read_bytes() for path in tmp_path.glob("store.db*") if path.is_file())
    for kind, secret in SECRETS.items():
        for line in secret.splitlines():
            assert line.encode() not in everything, kind
            assert line.encode() not in raw, kind
    assert not [kind for kind, secret in SECRETS.items() if _in_gzip(secret.encode(), everything)]
    for text in () if encoding else NEIGHBOURS:
        assert text.encode() in everything, text

    # With the same key, with another one, and without the values.
    same = replayed("places", ENVIRONMENT)
    assert same["identical"], same["divergence"]
    assert not same["redacted"]
    none = replayed("places")
    assert none["identical"], none["divergence"]
    assert not none["redacted"]  # the vault has them
    other = replayed("places", OTHER)
    assert other["identical"], other["divergence"]
    assert not other["redacted"]
    shutil.rmtree(tmp_path / "store.db.vault")
    without = replayed("places", OTHER)
    assert without["identical"], without["divergence"]
    assert "access_token-1" in without["redacted"]
    neither = replayed("places")
    assert neither["identical"], neither["divergence"]
    assert {"MY_SERVICE_KEY", "DATABASE_URL--1"} <= set(neither["redacted"])
    assert len({one["digest"] for one in (same, none, other, without, neither)}) == 1

    # What is shown of an answer that was encoded, or counted in bytes, is its text.
    shown = json.loads(lockstep("show", "places:1", "--json").stdout)
    assert len(shown["outcome"]["body"]) > 10
    assert shown["outcome"]["body"][0] == "before lockstep-secret.openai-key-1. after"


def _in_gzip(secret: bytes, everything: bytes) -> bool:
    """Whether an encoded answer was stored from which the secret can be read."""
    at = everything.find(b"\x1f\x8b")
    while at >= 0:
        inflate = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            if secret in inflate.decompress(everything[at : at + 100_000]):
                return True
        except zlib.error:
            pass
        at = everything.find(b"\x1f\x8b", at + 2)
    return False


def test_the_scan_of_encoded_answers_finds_what_is_there() -> None:
    assert _in_gzip(b"needle", b"before" + gzip.compress(b"hay needle hay") + b"after")
    assert not _in_gzip(b"needle", b"before" + gzip.compress(b"hay") + b"after")
