"""Six model calls at once in threads that share a client, plain or streamed, with and without a pool."""

import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, as_completed

from openai import OpenAI

STREAMED = "streamed" in sys.argv
SAME = "same" in sys.argv
lock = threading.Lock()
came: list[int] = []


def say(*words: object) -> None:
    with lock:
        print(*words)


def ask(client: OpenAI, n: int) -> str:
    time.sleep(random.random() / 200)
    messages = [{"role": "user", "content": "the same for all" if SAME else f"question {n}"}]
    if not STREAMED:
        text = client.chat.completions.create(model="gpt-4o", messages=messages).choices[0].message.content
    else:
        text = ""
        for chunk in client.chat.completions.create(model="gpt-4o", messages=messages, stream=True):
            piece = chunk.choices[0].delta.content
            text += piece or ""
            say(n, repr(piece), round(time.monotonic(), 6))
    with lock:
        came.append(n)
        print(n, "got", text, "as number", len(came))
    return text


client = OpenAI(max_retries=0)
with client, ThreadPoolExecutor(4) as pool:
    asked = {pool.submit(ask, client, n): n for n in range(6)}
    for done in as_completed(asked):
        say("result", asked[done], done.result())

    own = [threading.Thread(target=ask, args=(client, n)) for n in range(6, 9)]
    for thread in own:
        thread.start()
    for thread in own:
        thread.join()
    messages = [{"role": "user", "content": f"in the order {came}"}]
    print("then", client.chat.completions.create(model="gpt-4o", messages=messages).choices[0].message.content)
