"""A support agent that does one thing differently when an argument says so. Tests find its lines by the marks."""

import contextlib
import os
import random
import sys
import threading
import time

import httpx

import lockstep

CHANGE = sys.argv[1] if len(sys.argv) > 1 else ""
client = httpx.Client(base_url=os.environ["OPENAI_BASE_URL"], trust_env=False)


@lockstep.tool(effect="read")
def get_order(order: int, currency: str) -> dict[str, object]:
    return {"order": order, "cents": 4000, "currency": currency}


@lockstep.tool(effect="read")
def get_policy(topic: str) -> str:
    return f"{topic}: up to 50.00 without asking"


@lockstep.tool(effect="mutating")
def refund(order: int, cents: int, note: str) -> dict[str, object]:
    return {"refunded": cents, "order": order, "note": note}


def asked(question: str, temperature: float = 0.2) -> dict[str, object]:
    messages = [{"role": "system", "content": "You are brief."}, {"role": "user", "content": question}]
    return {"json": {"model": "gpt-4o", "messages": messages, "temperature": temperature}}


def text(answer: httpx.Response) -> str:
    return answer.json()["choices"][0]["message"]["content"]


def main() -> None:
    category = text(client.post("/chat/completions", **asked("What is ticket 4711 about?")))
    print("category:", category)

    calls = [lambda: get_order(452, "EUR"), lambda: get_policy("refunds")]  # mark: tools
    if CHANGE == "order of calls":
        calls.reverse()
    if CHANGE == "tool argument":
        calls[0] = lambda: get_order(453, "EUR")  # mark: other tool argument
    if CHANGE == "other tool":
        calls[0] = lambda: get_policy("order 452")  # mark: other tool
    if CHANGE == "first call left out":
        del calls[0]
    if CHANGE == "call put in":
        calls.insert(1, lambda: get_order(1, "EUR"))  # mark: call put in
    found = [call() for call in calls]

    if CHANGE != "fewer clock reads":
        time.monotonic()
    if CHANGE == "more clock reads":
        time.monotonic()  # mark: more clock reads
    if CHANGE != "fewer random draws":
        random.random()
    if CHANGE == "more random draws":
        random.random()
    question = f"Refund {found} at {time.time():.3f}?"
    if CHANGE == "prompt":
        question = "Please, " + question
    temperature = 0.7 if CHANGE == "temperature" else 0.2
    decision = text(client.post("/chat/completions", **asked(question, temperature)))  # mark: decision

    state = {"category": category, "decision": decision, "cents": 4100 if CHANGE == "state" else 4000}
    lockstep.step("triage" if CHANGE == "name of a step" else "triaged", state)  # mark: step

    query = {"ticket": 4712 if CHANGE == "query" else 4711}
    method = "DELETE" if CHANGE == "method" else "GET"
    audit = client.request(method, "/audit", params=query).json()  # mark: audit

    if CHANGE == "swallowed as Exception":
        with contextlib.suppress(Exception):
            refund(452, 4500, "goodwill")  # mark: swallowed as Exception
    elif CHANGE == "swallowed as BaseException":
        try:
            refund(452, 4500, "goodwill")  # mark: swallowed as BaseException
        except BaseException as error:
            print("never mind", type(error).__name__)
    else:
        refund(452, 4000, "goodwill")

    def work() -> None:
        topic = "Anything else?" if CHANGE != "prompt in a thread" else "Anything more?"
        client.post("/chat/completions", **asked(topic))  # mark: thread
        if CHANGE == "call put in in a thread":
            get_policy("late")  # mark: call put in in a thread

    worker = threading.Thread(target=work)
    if CHANGE != "thread left out":
        worker.start()
        worker.join()

    print("audited", audit["path"], "loudly" if CHANGE == "output" else "quietly")  # mark: output
    if CHANGE != "output left out":
        print("done with", category)
    if CHANGE != "last call left out":
        client.post("/chat/completions", **asked("Thank you."))  # mark: last
    if CHANGE == "call at the end":
        get_policy("farewell")  # mark: call at the end
    if CHANGE == "output at the end":
        print("and again")  # mark: output at the end
    if CHANGE == "clock read at the end":
        time.monotonic()  # mark: clock read at the end
    if CHANGE == "exit status":
        sys.exit(3)
    if CHANGE == "exception":
        raise ValueError("changed")  # mark: exception


main()
