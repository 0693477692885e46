"""What the guard names, and what it leaves alone."""

import platform
import socket
import subprocess
import sys
from typing import Any


def _processor() -> Any:
    platform._uname_cache = None  # type: ignore[attr-defined]
    return platform.uname().processor


def _listening() -> tuple[socket.socket, Any]:
    server = socket.create_server(("127.0.0.1", 0))
    return server, server.getsockname()


def test_a_socket_of_the_program_is_named_and_a_recorded_process_is_not(session: Any) -> None:
    server, address = _listening()
    with server:

        def program() -> None:
            subprocess.run(["true"], check=True)
            socket.create_connection(address).close()

        report = session.record(program)
    assert {(item.source, item.detail.partition(" (")[0]) for item in report.coverage} == {
        ("socket", f"127.0.0.1:{address[1]}"),
    }


def test_what_python_itself_asks_of_the_machine_is_not(session: Any) -> None:
    """Every SDK that tells its platform runs `uname -p`: no run would be identical."""
    called: set[str] = set()
    sys.setprofile(lambda frame, *_: called.add(frame.f_code.co_qualname))
    try:
        report = session.record(_processor)
    finally:
        sys.setprofile(None)
    assert "Popen._execute_child" in called
    assert report.coverage == ()
