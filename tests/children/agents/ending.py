"""How children end: ending.py killed | outlives | daemon | exec | changed"""

import multiprocessing as mp
import os
import signal
import sys
import time


def told(pipe):
    pipe.send(time.time())
    time.sleep(60)


def killed():
    ours, theirs = mp.Pipe()
    child = mp.get_context("fork").Process(target=told, args=(theirs,))
    child.start()
    print(ours.recv())
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    print(child.exitcode)


def outlives():
    sys.stdout.flush()
    if os.fork() == 0:
        for turn in range(5):
            time.sleep(0.1)
            print(turn, time.time(), flush=True)
        os._exit(0)
    print("parent", time.time())


def daemon():
    ours, theirs = mp.Pipe()
    mp.get_context("fork").Process(target=told, args=(theirs,), daemon=True).start()
    print(ours.recv())


def image():
    code = "import time, uuid; print(time.time(), uuid.uuid4())"
    print(os.spawnv(os.P_WAIT, sys.executable, [sys.executable, "-c", code]))


def more():
    image()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


{"killed": killed, "outlives": outlives, "daemon": daemon, "exec": image, "more": more}[sys.argv[1]]()
