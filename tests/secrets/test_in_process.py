"""Secrets of a session in the running process: tasks at once, pieces of a generator, results, steps."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from secret_runs import stored

import lockstep

KEY = "svc-0123456789abcdef"
WORDS = ("see sk-proj-abcd", "efgh1234567890 and", " more ", "password: hun", "ter2aa! x")


@lockstep.tool
async def login(user: str) -> dict[str, str]:
    await asyncio.sleep(0.001 * len(user))
    return {"access_token": f"tok-{user}-0123456789abc"}


@lockstep.tool
async def call(headers: dict[str, str], user: str) -> dict[str, str]:
    await asyncio.sleep(0.001 * len(user))
    return {"user": headers["Authorization"].split("-")[1]}


@lockstep.tool
async def words() -> AsyncIterator[str]:
    for word in WORDS:
        yield word


async def agent() -> Any:
    async def work(user: str) -> dict[str, str]:
        token = (await login(user))["access_token"]
        return await call({"Authorization": f"Bearer {token}", "X-Key": os.environ["SVC_TOKEN"]}, user)

    users = await asyncio.gather(*(work(user) for user in ("ann", "bo", "christoph")))
    said = "".join([word async for word in words()])
    lockstep.step("done", {"api_key": "key-of-the-code-1", "said": said})
    return {"users": users, "token": os.environ["SVC_TOKEN"]}


def test_secrets_of_tasks_at_once_replay_also_with_another_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "store.db"
    monkeypatch.setenv("SVC_TOKEN", KEY)
    with lockstep.record("a", store=store):
        result = asyncio.run(agent())
    assert [each["user"] for each in result["users"]] == ["ann", "bo", "christoph"]
    everything = stored(store, "a")
    for secret in (KEY, "tok-bo-0123456789abc", "efgh1234567890", "ter2aa!", "key-of-the-code-1"):
        assert secret.encode() not in everything

    same = lockstep.replay("a", agent, store=store)
    assert same.identical, same.divergence
    assert same.result == result
    monkeypatch.setenv("SVC_TOKEN", "rotated-1")
    rotated = lockstep.replay("a", agent, store=store)
    assert rotated.identical, rotated.divergence
    assert rotated.result["token"] == "rotated-1"


def test_what_a_function_returned_is_compared_without_its_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "store.db"
    monkeypatch.setenv("SVC_TOKEN", KEY)
    result = asyncio.run(lockstep.record("a", store=store)(agent)())
    assert KEY.encode() not in stored(store, "a")
    shutil.rmtree(tmp_path / "store.db.vault")
    monkeypatch.setenv("SVC_TOKEN", "rotated-1")
    without = lockstep.replay("a", agent, store=store)
    assert without.identical, without.divergence
    assert without.result["token"] == "rotated-1" != result["token"]
    assert {"access_token-1", "access_token-2", "access_token-3"} <= set(without.report.redacted)
