"""The guide for Playwright: its files, code and commands run as printed, in a real browser, with a shop on loopback."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests import guides


@pytest.mark.timeout(400)
def test_the_guide_runs_as_printed(tmp_path: Path, chromium: str) -> None:
    guides.write("playwright.md", tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with subprocess.Popen([sys.executable, "shop.py", str(port)], cwd=tmp_path) as shop:
        try:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port)).close()
                    break
                except ConnectionRefusedError:
                    assert shop.poll() is None
                    time.sleep(0.05)
            shop_at = f"http://127.0.0.1:{port}"
            assert guides.run("playwright.md", tmp_path, SHOP=shop_at, LOCKSTEP_CHROMIUM=chromium) >= 8
        finally:
            shop.kill()
