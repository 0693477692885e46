"""Programs that talk to themselves, by name: `python itself.py NAME [PORT]`. The last two talk to others too."""

import asyncio
import multiprocessing
import os
import socket
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any


def threads(port: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_echo, args=(server,))
        thread.start()
        with socket.create_connection(server.getsockname()) as client:
            client.sendall(b"hello")
            print(client.recv(100))
        thread.join()


def _echo(server: socket.socket) -> None:
    with server.accept()[0] as client:
        client.sendall(client.recv(100))


def tasks(port: int) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readline())
        writer.close()

    async def talk() -> None:
        server = await asyncio.start_server(answer, "localhost", 0, family=socket.AF_INET)
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"hello\n")
            print(await reader.readline())
            writer.close()

    asyncio.run(talk())


def local_socket(port: int) -> None:
    with tempfile.TemporaryDirectory() as place, socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.join(place, "socket"))
        server.listen()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(os.path.join(place, "socket"))
            print("connected")


def datagrams(port: int) -> None:
    kind = socket.AF_INET, socket.SOCK_DGRAM
    with socket.socket(*kind) as one, socket.socket(*kind) as two:
        one.bind(("127.0.0.1", 0))
        two.sendto(b"hello", one.getsockname())
        print(one.recv(100))


def spawned_server(port: int) -> None:
    _child("spawn")


def forkserver_server(port: int) -> None:
    _child("forkserver")


def _child(method: str) -> None:
    """The server is a Python process of the same run."""
    context: Any = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    child = context.Process(target=_serve_once, args=(theirs,))
    child.start()
    with socket.create_connection(("127.0.0.1", ours.recv())) as client:
        client.sendall(b"hello")
        print(client.recv(100))
    child.join()
    print(child.exitcode)


def _serve_once(told: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        told.send(server.getsockname()[1])
        _echo(server)


def taken_over(port: int) -> None:
    """The listening socket is wrapped anew, as a socket that was passed on is: only the kernel knows it."""
    import _socket

    server = _socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    server.bind(("127.0.0.1", 0))
    server.listen()
    with socket.create_connection(server.getsockname()):
        print("connected")
    server.close()


def serves(port: int) -> None:
    """Tells a process that Lockstep does not know where to connect to."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *arguments: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        with open(os.environ["TELL"], "w") as told:
            told.write(str(server.server_address[1]))
        server.handle_request()
    print("served")


def answers_datagrams(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", port))


if __name__ == "__main__":
    globals()[sys.argv[1]](int(sys.argv[2]))
