"""An agent with much to do: model calls, tools, streams and threads, each followed by a step.

What it has been told is safe goes to the file named by ACKNOWLEDGED: a line for each step, once `lockstep.step`
has returned, and a line for each place where a test may want to end it.
"""

import asyncio
import json
import os
import random
import sys
import time

import httpx

import lockstep

WHERE = sys.argv[1] if len(sys.argv) > 1 else ""
URL = os.environ["OPENAI_BASE_URL"]
file = os.open(os.environ["ACKNOWLEDGED"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)


def note(line: str) -> None:
    os.write(file, f"{line}\n".encode())


def step(name: str, state: object = None) -> None:
    lockstep.step(name, state)
    note(f"step {name}")


def asked(question: str, stream: bool = False) -> dict[str, object]:
    return {"model": "gpt-4o", "messages": [{"role": "user", "content": question}], "stream": stream}


def text(answer: httpx.Response) -> str:
    return answer.json()["choices"][0]["message"]["content"]


@lockstep.tool(effect="read")
def look_up(turn: int) -> dict[str, object]:
    if WHERE == "in a tool" and turn == 1:
        note("in a tool")
        time.sleep(60)
    time.sleep(random.random() / 100)
    return {"turn": turn, "found": [random.randrange(100) for _ in range(5)], "at": time.time()}


async def ask(client: httpx.AsyncClient, question: str) -> str:
    answer = text(await client.post("/chat/completions", json=asked(question)))
    print(question, "->", answer, flush=True)
    return answer


async def read(client: httpx.AsyncClient, question: str) -> str:
    got = ""
    async with client.stream("POST", "/chat/completions", json=asked(question, stream=True)) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: {"):
                got += json.loads(line[6:])["choices"][0]["delta"].get("content") or ""
                print(question, "so far", got, flush=True)
                if WHERE == "in a stream" and question == "tell 1" and len(got) > 20:
                    note("in a stream")
                    await asyncio.sleep(60)
    return got


def in_a_thread(client: httpx.Client, question: str) -> str:
    return text(client.post("/chat/completions", json=asked(question)))


async def main() -> None:
    note(f"process {os.getpid()}")
    limits = {"base_url": URL, "trust_env": False}
    async with httpx.AsyncClient(**limits) as client:
        with httpx.Client(**limits) as blocking:
            for turn in range(4):
                plan = await ask(client, f"plan {turn}")
                step(f"planned {turn}", {"plan": plan})
                parts = await asyncio.gather(*(ask(client, f"part {turn}.{n}") for n in range(3)))
                step(f"asked {turn}", {"parts": parts})
                step(f"found {turn}", look_up(turn))
                step(f"read {turn}", await read(client, f"tell {turn}"))
                threads = (asyncio.to_thread(in_a_thread, blocking, f"thread {turn}.{n}") for n in range(3))
                step(f"joined {turn}", await asyncio.gather(*threads))
    print("done", flush=True)


asyncio.run(main())
