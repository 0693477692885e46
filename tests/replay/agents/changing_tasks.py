"""Concurrent tasks that do one thing differently when an argument says so. Tests find its lines by the marks."""

import asyncio
import sys

from openai import AsyncOpenAI

CHANGE = sys.argv[1] if len(sys.argv) > 1 else ""
COLD = "cold" in sys.argv  # the client looks at its platform in threads, so that it is a race who asks first


async def ask(client: AsyncOpenAI, question: str) -> str:
    messages = [{"role": "user", "content": question}]
    answer = await client.chat.completions.create(model="gpt-4o", messages=messages)  # mark: ask
    return answer.choices[0].message.content


async def lasting(client: AsyncOpenAI) -> str:
    messages = [{"role": "user", "content": "slow: think hard"}]
    answer = await client.chat.completions.create(model="gpt-4o", messages=messages)  # mark: lasting
    return answer.choices[0].message.content


async def prompt(client: AsyncOpenAI) -> str:
    messages = [{"role": "user", "content": "be prompt"}]
    answer = await client.chat.completions.create(model="gpt-4o", messages=messages)  # mark: prompt
    return answer.choices[0].message.content


async def read(client: AsyncOpenAI, pieces: int) -> list[str]:
    messages = [{"role": "user", "content": "tell me more"}]
    stream = await client.chat.completions.create(model="gpt-4o", messages=messages, stream=True)
    got: list[str] = []
    async for chunk in stream:  # mark: chunks
        got.append(chunk.choices[0].delta.content or "")
        if len(got) == pieces:
            break
    await stream.close()  # mark: closed
    return got


async def main() -> None:
    async with AsyncOpenAI(max_retries=0) as client:
        if not COLD:
            print(await ask(client, "hello"))
        questions = [f"question {n}" for n in range(3)]
        if CHANGE in ("question of a task", "swallowed by gather"):
            questions[1] = "another question"
        if CHANGE == "tasks in another order":
            questions.reverse()
        if CHANGE == "one task more":
            questions.append("one more question")
        if CHANGE == "one task fewer":
            questions.pop()
        swallow = CHANGE == "swallowed by gather"
        asked = [ask(client, each) for each in questions]
        print(await asyncio.gather(*asked, return_exceptions=swallow))  # mark: tasks

        task = asyncio.create_task(lasting(client))
        await asyncio.sleep(0.05)
        if CHANGE != "cancelled no more":
            task.cancel()
        print(await asyncio.gather(task, return_exceptions=True))

        task = asyncio.create_task(prompt(client))
        await asyncio.sleep(0)
        if CHANGE == "cancelled now":
            task.cancel()
        print(await asyncio.gather(task, return_exceptions=True))

        print(await read(client, {"stream read on": 5, "stream read less": 2}.get(CHANGE, 3)))


asyncio.run(main())
