"""Six model calls at once by `asyncio.gather`, plain or streamed. Each line says who got what, in the order it came."""

import asyncio
import random
import sys
import time

from openai import AsyncOpenAI

STREAMED = "streamed" in sys.argv
came: list[int] = []


async def ask(client: AsyncOpenAI, n: int, question: str) -> str:
    await asyncio.sleep(random.random() / 200)
    messages = [{"role": "user", "content": question}]
    if not STREAMED:
        answer = await client.chat.completions.create(model="gpt-4o", messages=messages)
        text = answer.choices[0].message.content
    else:
        text = ""
        async for chunk in await client.chat.completions.create(model="gpt-4o", messages=messages, stream=True):
            piece = chunk.choices[0].delta.content
            text += piece or ""
            print(n, repr(piece), round(time.monotonic(), 6))
    came.append(n)
    print(n, "got", text, "as number", len(came))
    return text


async def main() -> None:
    same = "same" in sys.argv
    async with AsyncOpenAI(max_retries=0) as client:
        asked = [ask(client, n, "the same for all" if same else f"question {n}") for n in range(6)]
        for n, text in enumerate(await asyncio.gather(*asked)):
            print("result", n, text)
        last = await ask(client, 6, f"in the order {came}")
        print("then", last, random.random())


asyncio.run(main())
