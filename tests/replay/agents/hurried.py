"""Threads with limits: a timeout of the client, of a future, of an event and of a queue decides what comes next."""

import queue
import threading
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

from openai import APITimeoutError, OpenAI

LIMIT = 0.08  # seconds; the provider is as often slower as faster


def ask(client: OpenAI, question: str) -> str:
    messages = [{"role": "user", "content": question}]
    return client.chat.completions.create(model="gpt-4o", messages=messages).choices[0].message.content


def in_the_client(client: OpenAI) -> str:
    try:
        return ask(client.with_options(timeout=LIMIT), "by the client's own limit")
    except APITimeoutError as error:
        return f"{error} {error.__cause__!r}: " + ask(client, "again")


def of_a_future(client: OpenAI, pool: ThreadPoolExecutor) -> str:
    asked = pool.submit(ask, client, "a future")
    try:
        return asked.result(LIMIT)
    except TimeoutError:
        return "timed out: " + ask(client, "meanwhile") + " / " + asked.result()


def the_first_of_three(client: OpenAI, pool: ThreadPoolExecutor) -> str:
    racing = [pool.submit(ask, client, f"race {n}") for n in range(3)]
    done, late = wait(racing, return_when=FIRST_COMPLETED)
    won = sorted(racing.index(future) for future in done)
    text = ask(client, f"winner {won}")
    wait(late)
    return f"{won}: {text}"


def of_an_event(client: OpenAI) -> str:
    ready = threading.Event()
    found: list[str] = []

    def work() -> None:
        found.append(ask(client, "an event"))
        ready.set()

    thread = threading.Thread(target=work)
    thread.start()
    in_time = ready.wait(LIMIT)
    text = ask(client, f"in time: {in_time}")
    thread.join()
    return f"{in_time} {text} {found}"


def of_a_queue(client: OpenAI) -> str:
    answers: queue.Queue[str] = queue.Queue()
    threads = [threading.Thread(target=lambda n=n: answers.put(ask(client, f"queued {n}"))) for n in range(3)]
    for thread in threads:
        thread.start()
    got: list[str] = []
    end = time.monotonic() + LIMIT
    while len(got) < 3:
        try:
            got.append(answers.get(timeout=max(0.0, end - time.monotonic())))
        except queue.Empty:
            break
    text = ask(client, f"in time: {len(got)}")
    for thread in threads:
        thread.join()
    return f"{got} {text} {sorted(answers.queue)}"


with OpenAI(max_retries=0) as client, ThreadPoolExecutor(3) as pool:
    for _ in range(2):
        print("in the client:", in_the_client(client))
        print("of a future:", of_a_future(client, pool))
        print("the first of three:", the_first_of_three(client, pool))
        print("of an event:", of_an_event(client))
        print("of a queue:", of_a_queue(client))
