"""Processes of multiprocessing that meet in a queue, a pipe, a lock, an event and a shared number.

meeting.py START_METHOD
"""

import multiprocessing as mp
import random
import sys
import time
import uuid


def produce(queue, total, name):
    for number in range(3):
        time.sleep(random.random() / 100)
        with total.get_lock():
            total.value += 1
            seen = total.value
        queue.put((name, number, seen, str(uuid.uuid4())))


def answer(pipe, ready):
    ready.wait()
    while (asked := pipe.recv()) is not None:
        time.sleep(random.random() / 100)
        pipe.send((asked, time.time()))
    sys.exit(3)


def main():
    mp.set_start_method(sys.argv[1])
    queue, total, ready = mp.Queue(), mp.Value("i", 0), mp.Event()
    producers = [mp.Process(target=produce, args=(queue, total, name)) for name in "abc"]
    ours, theirs = mp.Pipe()
    talker = mp.Process(target=answer, args=(theirs, ready))
    for process in (*producers, talker):
        process.start()
    ready.set()
    for turn in range(3):
        ours.send(turn)
        while not ours.poll(0.002):
            print("waiting")
        print("answered", ours.recv())
    ours.send(None)
    for _ in range(9):
        print("got", queue.get())
    for process in (*producers, talker):
        process.join()
        print(process.exitcode, process.is_alive())


if __name__ == "__main__":
    main()
