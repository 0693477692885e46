"""A server outside the program, and the program under `lockstep record` and `lockstep replay`."""

import json
import os
import select
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest
from tests.warm import command

PROGRAMS = Path(__file__).parent / "programs"


class Outside:
    """Counts who comes to a port of this machine, by TCP or UDP, and hangs up."""

    def __enter__(self) -> Self:
        self._tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self._tcp.getsockname()[1]
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", self.port))
        self._end, self._told = os.pipe()
        self.visits = 0
        self._thread = threading.Thread(target=self._count)
        self._thread.start()
        return self

    def _count(self) -> None:
        while True:
            ready, _, _ = select.select([self._tcp, self._udp, self._end], [], [])
            if self._end in ready:
                return
            if self._tcp in ready:
                self._tcp.accept()[0].close()
                self.visits += 1
            if self._udp in ready:
                self._udp.recv(100)
                self.visits += 1

    def __exit__(self, *error: object) -> None:
        os.close(self._told)
        self._thread.join()
        os.close(self._end)
        self._tcp.close()
        self._udp.close()


@pytest.fixture
def outside() -> Iterator[Outside]:
    with Outside() as server:
        yield server


class Runs:
    """Records and replays a program of this folder; what the command said as JSON."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def record(self, program: str, *arguments: object) -> Any:
        command = [sys.executable, str(PROGRAMS / f"{program}.py"), *map(str, arguments)]
        return self.lockstep("record", "--run", "it", "--json", "--", *command)

    def replay(self, *options: str) -> Any:
        return self.lockstep("replay", "it", "--json", *options)

    @staticmethod
    def uncovered(said: Any) -> dict[str, str]:
        """What a report names as not covered: details by source."""
        return {entry["source"]: entry["detail"] for entry in said["coverage"] if entry["how"] == "not covered"}

    def lockstep(self, *words: str) -> Any:
        done = command.run(*words, cwd=self._place)
        self.status, self.said = done.returncode, done.stderr
        assert done.stdout.startswith("{"), done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)
