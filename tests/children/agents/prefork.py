"""A server that forks its workers before it serves, as gunicorn does, and a client of it in another child.

prefork.py PORT
"""

import json
import os
import random
import signal
import socket
import sys
import time
import urllib.request
import uuid

WORKERS = 2
ASKED = 4


def serve(listener):
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    while True:
        with listener.accept()[0] as client:
            client.recv(1000)
            body = json.dumps({"id": str(uuid.uuid4()), "at": time.time()}).encode()
            client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


def ask(port):
    for _ in range(ASKED):
        time.sleep(random.random() / 100)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/") as answer:
            print(answer.read().decode(), flush=True)


def fork(work, *words):
    pid = os.fork()
    if pid == 0:
        try:
            work(*words)
        finally:
            sys.stdout.flush()
            os._exit(0)
    return pid


listener = socket.create_server(("127.0.0.1", int(sys.argv[1])))
workers = [fork(serve, listener) for _ in range(WORKERS)]
client = fork(ask, listener.getsockname()[1])
print(os.waitstatus_to_exitcode(os.waitpid(client, 0)[1]))
for worker in workers:
    os.kill(worker, signal.SIGTERM)
    print(os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1]))
