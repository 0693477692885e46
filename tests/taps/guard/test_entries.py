"""Clients that are watched where Python enters them: in a process that used them before a session began."""

import sys
import types
from collections.abc import Iterator
from typing import Any

import pytest

from lockstep.taps.guard import clients, entries
from lockstep.taps.guard.clients import Client, Way

MODULE = "lockstep_test_client"
SOURCE = """
class Connection:
    def __init__(self, address="", port=None):
        self.address = address
    @classmethod
    def open(cls, address):
        return cls(address)
    @staticmethod
    def dial(address):
        return address
    async def aopen(self, address):
        return address

def connect(address):
    return Connection.open(address)
"""


@pytest.fixture
def client() -> Iterator[Any]:
    """A client, loaded before anybody watches it."""
    module: Any = types.ModuleType(MODULE)
    exec(SOURCE, module.__dict__)
    module.Connection.__module__ = MODULE
    sys.modules[MODULE] = module
    yield module
    del sys.modules[MODULE]
    for known in (entries._loaded, entries._missing):
        known.pop(MODULE, None)
    entries._early.pop("a client", None)


def watch(module: Any, *ways: Way, late: bool = False) -> None:
    entries.late = late
    entries.attach(Client(MODULE, "a client", ways))(module)
    entries.late = False


def test_a_connection_that_was_open_before_the_session_is_named(session: Any, client: Any) -> None:
    watch(client, Way("__init__", "Connection", (0, "address")), late=True)
    opened = client.Connection("db.example")
    report = session.record(lambda: None)
    assert [(entry.source, entry.detail) for entry in report.uncovered] == [
        ("a client", "Connection (made before the session began)")
    ]
    del opened
    assert session.record(lambda: None).uncovered == ()


def test_a_connection_that_nobody_holds_any_more_is_not_named(session: Any, client: Any) -> None:
    """What is in a circle stays until the collector comes, and that may be long after a test that made it."""
    watch(client, Way("__init__", "Connection", (0, "address")), late=True)
    opened = client.Connection("db.example")
    opened.itself = opened
    del opened
    assert session.record(lambda: None).uncovered == ()


def test_what_was_opened_by_a_function_before_the_session_is_named_too(session: Any, client: Any) -> None:
    watch(client, Way("connect", "", (0, "address")))
    opened = client.connect("db.example")
    assert "made before" in session.record(lambda: opened.address).uncovered[0].detail


def test_methods_of_all_sorts_stay_what_they_are(session: Any, client: Any) -> None:
    watch(client, Way("open dial aopen", "Connection", (0, "address"), clients.NAME))

    def program() -> Any:
        connection = client.Connection.open("one")
        coroutine = connection.aopen("three")
        coroutine.close()
        return connection.address, client.Connection.dial("two"), connection.dial("two")

    report = session.record(program)
    assert session.result == ("one", "two", "two")
    named = {entry.detail.partition(" ")[0]: entry.count for entry in report.uncovered}
    assert named == {"one": 1, "two": 2, "three": 1}
    assert isinstance(vars(client.Connection)["open"], classmethod)
    assert isinstance(vars(client.Connection)["dial"], staticmethod)
    assert client.Connection.open.__qualname__


def test_a_version_without_the_way_in_is_named(session: Any, client: Any) -> None:
    watch(client, Way("connect reconnect", ""))
    report = session.record(lambda: None)
    assert "has no reconnect: its use cannot be seen" in report.uncovered[0].detail


@pytest.mark.parametrize(
    ("address", "told"),
    [
        ("db.example:5432", "db.example:5432"),
        ("postgresql://me:secret@db.example:5432/shop?sslkey=secret", "postgresql://db.example:5432/shop"),
        ("host=db.example port=5432 user=me password=secret", "db.example:5432"),
        ("Driver=x;Server=db.example;UID=me;PWD=secret", "db.example"),
        ("password=secret dbname=shop", ""),
        ("https://api.example/v1#secret", "https://api.example/v1"),
    ],
)
def test_an_address_is_told_without_its_credentials(address: str, told: str) -> None:
    assert entries.bare(address) == told


def test_every_client_in_the_list_is_watched_once() -> None:
    modules = [client.module for client in clients.CLIENTS]
    assert len(modules) == len(set(modules))
    for client in clients.CLIENTS:
        assert all(way.how in (clients.STOP, clients.FAR, clients.NAME, clients.OWN) for way in client.ways)
