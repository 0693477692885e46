import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from browser_site import Site
from native_agents import Shop


@pytest.fixture
def shop(site: Site) -> Shop:
    return Shop(site.url)


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")
