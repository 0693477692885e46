"""Takes secrets through every place that a run is recorded from. argv: the server's URL, --api-key SECRET."""

import asyncio
import json
import os
import sys
import threading

import aiohttp
import httpx
import requests

import lockstep

URL = sys.argv[1]
CLIENT = httpx.Client(headers={"Authorization": f"Bearer {os.environ['MY_SERVICE_KEY']}"})
GIVEN = json.loads(requests.get(f"{URL}/kinds", timeout=20).text)


@lockstep.tool
def look(text: str, fields: dict) -> dict:
    """Answers with what it was asked."""
    return {"text": text, **fields}


@lockstep.tool
def fail(text: str) -> None:
    """Raises with a secret in the message."""
    raise ValueError(f"it failed with {text}")


def each(number: int, text: str) -> None:
    """One text through a header, a query, a form, JSON, a tool, an exception, a step and the output."""
    note = {"X-Note": "a block of lines" if text.startswith("block") else text}
    found = CLIENT.post(f"{URL}/echo?n={number}", headers=note, json={"note": text, "deep": [{"of": text}]}).json()
    assert found["note"] == text, "another answer"
    CLIENT.post(f"{URL}/echo", data={"note": text})
    with CLIENT.stream("POST", f"{URL}/cut", content=text.encode()) as answer:
        cut = b"".join(answer.iter_raw()).decode()
    assert cut == text, "another stream"
    assert look(text, {"again": [text]})["again"] == [text]
    try:
        fail(text)
    except ValueError as error:
        print(error)
    lockstep.step(f"step {number}", {"text": text})


def threads() -> None:
    """Several at once, with secrets that each got by itself."""

    def work(name: str) -> None:
        token = requests.post(f"{URL}/login", json={"user": name, "password": f"pass-{name}-1"}, timeout=20).json()
        headers = {"Authorization": f"Bearer {token['access_token']}"}
        found = requests.get(f"{URL}/whoami", headers=headers, timeout=20).json()
        assert found["user"] == name, "somebody else's token"
        results[name] = found["user"]

    results: dict[str, str] = {}
    running = [threading.Thread(target=work, args=(name,)) for name in ("ann", "bob", "cleo")]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    print(sorted(results))


async def tasks() -> None:
    """The same in tasks."""

    async def work(session: aiohttp.ClientSession, name: str) -> str:
        async with session.post(f"{URL}/login", json={"user": name, "password": f"pass-{name}-1"}) as answer:
            token = (await answer.json())["access_token"]
        async with session.get(f"{URL}/whoami", headers={"Authorization": f"Bearer {token}"}) as answer:
            return str((await answer.json())["user"])

    async with aiohttp.ClientSession() as session:
        print(await asyncio.gather(*(work(session, name) for name in ("dan", "eve", "finn"))))


for index, item in enumerate(GIVEN):
    each(index, item)
threads()
asyncio.run(tasks())
print("argv", sys.argv[2:], "env", os.environ["MY_SERVICE_KEY"], os.environ["DATABASE_URL"])
