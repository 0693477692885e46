"""One way for each source that no tap covers, by name: `python ways.py PORT NAME…`.

Each one that goes to a server goes to the one on loopback at PORT, which answers nothing that makes sense
to it and hangs up: that it was reached is what counts.
"""

import importlib
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path


def raw_socket(port: int) -> None:
    import socket

    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"hello\n")
        client.recv(100)


def asyncio_stream(port: int) -> None:
    import asyncio

    async def talk() -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()

    asyncio.run(talk())


def datagram(port: int) -> None:
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(b"hello", ("127.0.0.1", port))


def stubborn(port: int) -> None:
    """Hides every exception there is, tries again, in threads and tasks, and once more when it is over."""
    import asyncio
    import atexit
    import socket
    import threading

    def knock() -> None:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except BaseException:
            return

    async def dial() -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()

    async def both() -> None:
        await asyncio.gather(dial(), dial(), return_exceptions=True)

    atexit.register(knock)
    knock()
    thread = threading.Thread(target=knock)
    thread.start()
    thread.join()
    with suppress(BaseException):
        asyncio.run(both())
    threading.Thread(target=lambda: [knock() for _ in range(1000)], daemon=True).start()


def grpc(port: int) -> None:
    import grpc

    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        with suppress(grpc.RpcError):
            channel.unary_unary("/demo.Demo/Say", _registered_method=False)(b"hello", timeout=5)


def grpc_aio(port: int) -> None:
    import asyncio

    import grpc.aio

    async def talk() -> None:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            with suppress(grpc.RpcError):
                await channel.unary_unary("/demo.Demo/Say")(b"hello", timeout=5)

    asyncio.run(talk())


def uvloop(port: int) -> None:
    import asyncio

    import uvloop

    async def talk() -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()

    uvloop.run(talk())


def uvloop_quiet(port: int) -> None:
    import asyncio

    import uvloop

    uvloop.run(asyncio.sleep(0))


def psycopg(port: int) -> None:
    import psycopg

    with suppress(psycopg.OperationalError):
        psycopg.connect(f"host=127.0.0.1 port={port} user=u password=secret dbname=d connect_timeout=5")


def pycurl(port: int) -> None:
    from pycurl import Curl, error

    curl = Curl()
    curl.setopt(curl.URL, f"http://u:secret@127.0.0.1:{port}/path?key=secret")
    curl.setopt(curl.TIMEOUT, 5)
    with suppress(error):
        curl.perform()


def curl_cffi(port: int) -> None:
    from curl_cffi import requests

    with suppress(requests.exceptions.RequestException):
        requests.get(f"http://127.0.0.1:{port}/", timeout=5)


def primp(port: int) -> None:
    import primp

    with suppress(Exception):
        primp.Client(timeout=5).get(f"http://127.0.0.1:{port}/")


def ctypes_connect(port: int) -> None:
    """What a C extension with a connection of its own does."""
    import ctypes
    import socket
    import struct

    libc = ctypes.CDLL(None)
    fd = libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
    address = struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", port, socket.inet_aton("127.0.0.1"))
    libc.connect(fd, address, len(address))


def unknown_extension(port: int) -> None:
    """Code in C that nobody knows, and that keeps its connection open: the descriptor is all there is to see."""
    import ctypes
    import socket
    import struct

    from lockstep.session import lanes

    def connect() -> None:
        libc = ctypes.CDLL(None)
        fd = libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
        address = struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", port, socket.inet_aton("127.0.0.1"))
        libc.connect(fd, address, len(address))

    lanes.ours(connect)()  # hides the use of ctypes


def websocket(port: int) -> None:
    from websockets.sync.client import connect

    with suppress(OSError, EOFError, Exception):
        connect(f"ws://127.0.0.1:{port}/chat?token=secret", open_timeout=5)


def websocket_aio(port: int) -> None:
    import asyncio

    from websockets.asyncio.client import connect

    async def talk() -> None:
        with suppress(OSError, EOFError, Exception):
            async with connect(f"ws://127.0.0.1:{port}/chat", open_timeout=5):
                pass

    asyncio.run(talk())


def websocket_client(port: int) -> None:
    import websocket

    with suppress(OSError, websocket.WebSocketException):
        websocket.create_connection(f"ws://127.0.0.1:{port}/chat", timeout=5)


def shell(port: int) -> None:
    import os

    os.system(f"{sys.executable} -I -c \"import socket; socket.create_connection(('127.0.0.1', {port}))\"")


def spawned(port: int) -> None:
    import os

    code = f"import socket; socket.create_connection(('127.0.0.1', {port}))"
    os.waitpid(os.posix_spawn(sys.executable, [sys.executable, "-I", "-c", code], {}), 0)


def becomes_another(port: int) -> None:
    import os

    code = f"import socket; socket.create_connection(('127.0.0.1', {port}))"
    os.execv(sys.executable, [sys.executable, "-I", "-c", code])


def host_name(port: int) -> None:
    import socket

    with suppress(OSError):
        socket.getaddrinfo("lockstep.invalid", port)


def duckdb(port: int) -> None:
    import duckdb

    duckdb.connect(":memory:").execute("select random()").fetchall()


def bcrypt(port: int) -> None:
    import bcrypt

    bcrypt.gensalt()


def ctypes_random(port: int) -> None:
    import ctypes

    ctypes.CDLL(None).getrandom(ctypes.create_string_buffer(8), 8, 0)


def own_library(port: int) -> None:
    import ctypes

    ctypes.CDLL("libc.so.6")


def loaded(port: int) -> None:
    for name in ("duckdb", "grpc", "primp", "psycopg", "pycurl", "uvloop", "websockets.sync.client"):
        importlib.import_module(name)


def unwatchable(port: int) -> None:
    """Stand-ins for a client that has no Python surface, and for a version that has another one."""
    with tempfile.TemporaryDirectory() as place:
        sys.path.insert(0, place)
        for name in ("rnet", "lancedb"):
            Path(place, f"{name}.py").write_text("")
            importlib.import_module(name)


def trio(port: int) -> None:
    import trio

    trio.run(trio.sleep, 0)


def unchanged(port: int) -> None:
    """Classes stay classes, functions keep their names, and what they make is what it was."""
    import inspect
    import pickle

    import duckdb
    import psycopg
    import pycurl
    import uvloop

    curl = pycurl.Curl()
    assert isinstance(curl, pycurl.Curl) and type(curl).__name__ == "Curl"
    assert not hasattr(curl, "__lockstep__")
    assert inspect.iscoroutinefunction(psycopg.AsyncConnection.connect)
    assert inspect.ismethod(psycopg.Connection.connect)
    assert pickle.loads(pickle.dumps(duckdb.connect)) is duckdb.connect
    assert type(uvloop.new_event_loop()) is uvloop.Loop
    assert duckdb.connect.__doc__


WAYS: dict[str, Callable[[int], None]] = {
    name: found for name, found in list(globals().items()) if callable(found) and found.__module__ == __name__
}

if __name__ == "__main__":
    for name in sys.argv[2:]:
        print(name)
        try:
            WAYS[name](int(sys.argv[1]))
        except OSError as error:
            print(type(error).__name__)
