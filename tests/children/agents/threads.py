"""Threads that each start a process, in any order, and a grandchild."""

import multiprocessing as mp
import random
import threading
import time

fork = mp.get_context("fork")


def below(out, name):
    out.put((name, "below", time.time()))


def work(out, name):
    time.sleep(random.random() / 100)
    out.put((name, time.time()))
    child = fork.Process(target=below, args=(out, name))
    child.start()
    child.join()


def start(out, name):
    child = fork.Process(target=work, args=(out, name))
    child.start()
    child.join()
    out.put((name, child.exitcode))


def main():
    out = fork.Queue()
    threads = [threading.Thread(target=start, args=(out, name)) for name in "abc"]
    for thread in threads:
        thread.start()
    for _ in range(9):
        print(out.get())
    for thread in threads:
        thread.join()
    print(mp.active_children())


main()
