"""A provider in the recorded process is no part of what is recorded."""

from concurrent.futures import ThreadPoolExecutor

import httpx

import lockstep
from lockstep.testing import Provider


def said(client: httpx.Client, question: str) -> str:
    body = {"model": "m", "messages": [{"role": "user", "content": question}]}
    return client.post("/v1/chat/completions", json=body).json()["choices"][0]["message"]["content"]


def conversation(url: str) -> list[str]:
    with httpx.Client(base_url=url) as client, ThreadPoolExecutor(3) as pool:
        return [said(client, "alone"), *pool.map(lambda n: said(client, f"with others {n}"), range(3))]


def test_with_its_threads_running_the_recording_replays_without_it(tmp_path):
    store = tmp_path / "store.db"
    with Provider(jitter=(0.0, 0.01)) as provider:
        with lockstep.record("talk", store=store) as session:
            recorded = conversation(provider.url)
    assert session.report.uncovered == ()
    assert session.report.faults == ()
    assert session.report.counts == {"model": 4}
    replayed = lockstep.replay("talk", lambda: conversation(provider.url), store=store)
    assert replayed.divergence is None
    assert replayed.identical
    assert replayed.result == recorded
    assert provider.requests == 4


def test_started_inside_the_recording_it_takes_no_lane(tmp_path):
    def lanes(program) -> int:
        with lockstep.record("talk", store=tmp_path / "store.db") as session:
            program()
        assert session.report.uncovered == ()
        return session.report.lanes

    def with_provider() -> None:
        with Provider() as provider:
            conversation(provider.url)

    with Provider() as outside:
        assert lanes(with_provider) == lanes(lambda: conversation(outside.url))
