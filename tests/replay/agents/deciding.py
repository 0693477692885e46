"""Timeouts and cancelled calls, each of which decides what the agent asks next."""

import asyncio
import random

from openai import APITimeoutError, AsyncOpenAI

LIMIT = 0.08  # seconds; the provider is as often slower as faster


async def ask(client: AsyncOpenAI, question: str) -> str:
    messages = [{"role": "user", "content": question}]
    answer = await client.chat.completions.create(model="gpt-4o", messages=messages)
    return answer.choices[0].message.content


async def read(client: AsyncOpenAI, question: str, pieces: list[str]) -> None:
    messages = [{"role": "user", "content": question}]
    async for chunk in await client.chat.completions.create(model="gpt-4o", messages=messages, stream=True):
        pieces.append(chunk.choices[0].delta.content or "")


async def waited_for(client: AsyncOpenAI) -> str:
    try:
        return await asyncio.wait_for(ask(client, "quick?"), LIMIT)
    except TimeoutError:
        return "timed out: " + await ask(client, "never mind")


async def under_a_timeout(client: AsyncOpenAI) -> str:
    pieces: list[str] = []
    try:
        async with asyncio.timeout(LIMIT * 2):
            await read(client, "tell me all", pieces)
    except TimeoutError:
        return f"timed out with {pieces}: " + await ask(client, f"go on after {''.join(pieces)}")
    return "".join(pieces)


async def the_first_of_three(client: AsyncOpenAI) -> str:
    racing = [asyncio.create_task(ask(client, f"race {n}")) for n in range(3)]
    done, late = await asyncio.wait(racing, return_when=asyncio.FIRST_COMPLETED)
    for task in late:
        task.cancel()
    lost = await asyncio.gather(*late, return_exceptions=True)
    won = [racing.index(task) for task in done]
    return f"{won} won, {[type(error).__name__ for error in lost]}: " + await ask(client, f"winner {won}")


async def with_clean_up(client: AsyncOpenAI) -> str:
    async def patient() -> str:
        try:
            return await ask(client, "take your time")
        except asyncio.CancelledError:
            print("cleaned up:", await ask(client, "clean up"))
            raise

    task = asyncio.create_task(patient())
    await asyncio.sleep(random.random() * LIMIT)
    task.cancel("too late")
    try:
        return await task
    except asyncio.CancelledError as error:
        return f"cancelled {error.args}: " + await ask(client, "without it")


async def hedged(client: AsyncOpenAI) -> str:
    first = asyncio.create_task(ask(client, "hedge"))
    done, _ = await asyncio.wait({first}, timeout=LIMIT)
    if done:
        return "no second: " + first.result()
    second = asyncio.create_task(ask(client, "hedge"))
    for got in asyncio.as_completed([first, second]):
        text = await got
        break
    for task in (first, second):
        task.cancel()
    return f"second: {text}"


async def in_the_client(client: AsyncOpenAI) -> str:
    try:
        return await ask(client.with_options(timeout=LIMIT), "by the client's own limit")
    except APITimeoutError as error:
        return f"{error} {error.__cause__!r}: " + await ask(client, "again")


async def main() -> None:
    async with AsyncOpenAI(max_retries=0) as client:
        ways = (waited_for, under_a_timeout, the_first_of_three, with_clean_up, hedged, in_the_client)
        for way in ways:
            print(way.__name__, await way(client))
        for way, text in zip(ways, await asyncio.gather(*(way(client) for way in ways)), strict=True):
            print("at once", way.__name__, text)


asyncio.run(main())
