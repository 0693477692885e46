"""Pools of processes whose answers come as they are done: pools.py START_METHOD"""

import multiprocessing as mp
import random
import sys
import time
import uuid
from concurrent.futures import ProcessPoolExecutor, as_completed


def work(number):
    time.sleep(random.random() / 50)
    return number, str(uuid.uuid4())


def main():
    mp.set_start_method(sys.argv[1])
    with mp.Pool(3) as pool:
        print(pool.map(work, range(6)))
        for done in pool.imap_unordered(work, range(6)):
            print(done)
    with ProcessPoolExecutor(3) as pool:
        for done in as_completed([pool.submit(work, number) for number in range(6)]):
            print(done.result())


if __name__ == "__main__":
    main()
