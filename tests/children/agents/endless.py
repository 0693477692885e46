"""Two producers and a consumer that go on until they are killed; the file `far` says that they are well under way."""

import multiprocessing as mp
import random
import time
from pathlib import Path

fork = mp.get_context("fork")


def produce(queue, name):
    while True:
        time.sleep(random.random() / 200)
        queue.put((name, time.time()))


queue = fork.Queue(10)
for name in "ab":
    fork.Process(target=produce, args=(queue, name)).start()
for turn in range(100_000):
    print(queue.get(), flush=True)
    if turn == 40:
        Path("far").touch()
