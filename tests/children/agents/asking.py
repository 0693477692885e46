"""Children that ask a model with the real SDK, and a grandchild that does: asking.py START_METHOD [QUESTION]"""

import multiprocessing as mp
import sys

import openai

QUESTION = sys.argv[2] if len(sys.argv) > 2 else "how much"


def ask(words):
    answer = openai.OpenAI().chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": words}])
    return answer.choices[0].message.content


def child(results, name):
    results.put((name, ask(f"{QUESTION} of {name}")))
    if name == "b":
        grandchild = mp.Process(target=child, args=(results, "below b"))
        grandchild.start()
        grandchild.join()


def main():
    mp.set_start_method(sys.argv[1])
    results = mp.SimpleQueue()
    children = [mp.Process(target=child, args=(results, name)) for name in "ab"]
    for each in children:
        each.start()
    for _ in range(3):
        print(results.get())
    for each in children:
        each.join()
    print(ask("sum up"))


if __name__ == "__main__":
    main()
