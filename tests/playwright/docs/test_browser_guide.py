"""The guide for Playwright: its files, code and commands run as printed, in a real browser, with a shop on loopback."""

from __future__ import annotations

import os
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


def test_the_example_tells_what_it_does(tmp_path: Path, chromium: str) -> None:
    example = Path(__file__).parents[3] / "examples" / "browser_refund.py"
    done = subprocess.run(
        [sys.executable, str(example)], cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "LOCKSTEP_CHROMIUM": chromium},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    recorded, replayed, refused, allowed = done.stdout.splitlines()
    assert recorded == "recorded: Refunded 40000"
    assert replayed == "replayed with the shop gone: Refunded 40000 identical"
    assert refused.endswith('/refund "cents=4000" would run for real')
    assert allowed == "allowed: Refunded 4000"
