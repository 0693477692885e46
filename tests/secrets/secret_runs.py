"""What the tests of secrets run, and everything that is stored of a run as bytes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from tests.warm import command

from lockstep.log.store import open_store

HERE = Path(__file__).parent
ENVIRONMENT = {"MY_SERVICE_KEY": "env-key-0123456789abcdef", "DATABASE_URL": "postgres://app:dbPass9876543@db/shop"}
OTHER = {"MY_SERVICE_KEY": "another-9999", "DATABASE_URL": "postgres://app:other1234567@db/shop"}


def lockstep(*words: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Runs the command line as a user does."""
    surroundings = {name: value for name, value in os.environ.items() if name not in ENVIRONMENT}
    return command.run(*words, env={**surroundings, **(environment or {})}, timeout=120)


def replayed(run: str, environment: dict[str, str] | None = None) -> dict[str, Any]:
    """The verdict on one replay."""
    done = lockstep("replay", run, "--json", environment=environment)
    assert done.stdout, done.stderr
    verdict: dict[str, Any] = json.loads(done.stdout)
    return verdict


def stored(store: Path, run: str) -> bytes:
    """Everything that the log has of a run, unpacked: meta, names and bodies of all events, all blobs."""
    pieces: list[bytes] = []
    with open_store(str(store)) as opened:
        reader = opened.run(run)
        pieces.append(_bytes(reader.meta))
        for stream in reader.streams:
            for event in reader.events(stream.id):
                pieces += [event.name.encode(), event.what.encode(), event.lane.encode(), _bytes(event.body)]
            for row in reader.rows(stream.id):
                assert not isinstance(row, Exception)
                pieces += [*row.bodies, *row.blobs]
    return b"\n".join(pieces)


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, dict):
        return b"\n".join(_bytes(each) for pair in value.items() for each in pair)
    if isinstance(value, list):
        return b"\n".join(map(_bytes, value))
    return str(value).encode("utf-8", "surrogatepass")
