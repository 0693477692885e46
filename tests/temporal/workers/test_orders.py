"""What a bisect and its workers tell each other, on a worker of one's own."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from live_server import Server, unique, working
from probe_site import GRAPHS, Site, until
from temporalio.client import Client

import lockstep
from lockstep.debugger import elsewhere, orders
from lockstep.debugger.branches import lived
from lockstep.debugger.cuts import Cut
from lockstep.debugger.orders import Order
from lockstep.debugger.probes import Made
from lockstep.errors import Code, TargetError
from lockstep.log.model import RunState
from lockstep.log.store import open_store
from lockstep_temporal import probe_client, probe_messages, probe_parts
from lockstep_temporal.probe_client import Place, place
from lockstep_temporal.probe_messages import same, sources
from lockstep_temporal.probes import WORKFLOWS, Maker, Program


def test_a_worker_of_ones_own_makes_probes_and_refuses_what_another_version_or_program_wants(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in site.env(TAKES="0.1").items():
        monkeypatch.setenv(name, value)
    said: list[str] = []

    async def whole() -> None:
        program = Program(command=site.agent, targets=(GRAPHS,), directory=str(site.folder))
        maker = Maker(program, str(tmp_path / "kept"))
        async with working(site.server, workflows=WORKFLOWS, activities=[maker.make_probe]) as work:
            await asyncio.to_thread(asked, Place(work.task_queue, site.server.address))
        await maker.close()

    def asked(where: Place) -> None:
        order = Order("refund", Cut("60", 60), "own", command=site.agent, directory=str(site.folder))
        with elsewhere.hired(where, site.store, said.append) as crew:
            crew.begin(1, order)
            number, made = crew.next()
            assert number == 1 and isinstance(made, Made)
            assert (made.branch, made.live, crew.made_by.total()) == ("own", 4, 1)
            # One that nobody wants any more is ended; what it did is told.
            before = site.made
            crew.begin(2, msgspec.structs.replace(order, cut=Cut("7", 7), branch="needless"))
            until(lambda: site.made > before)
            crew.end(2)
            assert crew.next() == (2, None)
            calls = site.made - before
            with open_store(site.store) as opened:
                left = opened.run("refund", "needless")
                assert 0 < calls - 1 <= lived(left) <= calls + 1 < 57  # one may be between here and there
                assert left.info.state is RunState.INTERRUPTED
            # In Python the target is said by its name.
            monkeypatch.chdir(site.folder)
            monkeypatch.syspath_prepend(site.folder)
            found = lockstep.bisect("langgraph/own", GRAPHS, workers=where)
            assert (found.verdict, found.task) == ("culprit", "n5")
            # It runs nothing that is recorded: that is what an order without a command means, where it is trusted.
            bare = msgspec.structs.replace(order, branch="bare", command=(), trust=True)
            with pytest.raises(TargetError, match="is bisected with") as refused:
                crew.begin(3, bare)
                crew.next()
            assert refused.value.code is Code.BAD_TARGET
        monkeypatch.setattr(probe_messages, "here", lambda: "0.0.1")
        sent = probe_messages.encode(probe_messages.Sent(1, "0.0.2", orders.encode(order), (), {}))
        with pytest.raises(TargetError, match=r"LS413 worker me has lockstep 0.0.1, and the bisect lockstep 0.0.2"):
            probe_messages.read(sent, "me")

    asyncio.run(whole())
    assert not said


def test_where_nobody_works_that_is_said_and_then_waited_for_no_more(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe_client, "_LOOKS", 0.1)
    monkeypatch.setattr(probe_client, "_SOON", 0.2)
    monkeypatch.setattr(probe_client, "_PATIENCE", 0.5)
    said: list[str] = []
    where = f"{site.server.namespace}@{site.server.address}/{unique('nobody')}"
    order = Order("refund", Cut("7", 7), "never", command=site.agent, directory=str(site.folder))
    with elsewhere.hired(where, site.store, said.append) as crew, pytest.raises(TargetError) as ended:
        crew.begin(1, order)
        crew.next()
    assert ended.value.code is Code.WORKERS and "lockstep temporal worker nobody" in ended.value.message
    assert len(said) == 1 and said[0].endswith("waiting for one")


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> bytes:
    """What takes three parts, and the most that may be."""
    monkeypatch.setattr(probe_parts, "MOST", 3)
    return bytes(range(256)) * (probe_parts.SIZE * 5 // 2 // 256)


def test_what_is_too_large_for_a_message_lies_with_the_server_once(temporal_server: Server, large: bytes) -> None:
    async def whole() -> None:
        client = await Client.connect(temporal_server.address)
        queue = unique("parts")
        first = await probe_parts.put(client, queue, large, "it")
        assert (first.held, len(first.parts)) == (b"", 3)
        assert await probe_parts.put(client, queue, large, "it") == first
        assert await probe_parts.get(client, first) == large
        small = await probe_parts.put(client, queue, b"small", "it")
        assert small.held == await probe_parts.get(client, small) == b"small"
        with pytest.raises(TargetError, match=r"it is 2.5 MB, and at most 1.5 MB") as refused:
            await probe_parts.put(client, queue, large * 2, "it")
        assert refused.value.code is Code.WORKERS
        with pytest.raises(TargetError, match=r"LS413 workflow lockstep-part-0+ holds"):
            await probe_parts.get(client, probe_parts.Content(b"", ("0" * 32,)))

    asyncio.run(whole())


def test_a_worker_without_a_program_makes_none(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match="LS401 a worker runs its own program"):
        Maker(Program(), str(tmp_path))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("probes", Place("probes")),
        ("team/probes", Place("team/probes")),
        ("127.0.0.1:7233/team/probes", Place("team/probes", "127.0.0.1:7233")),
        ("prod@127.0.0.1:7233/probes", Place("probes", "127.0.0.1:7233", "prod")),
    ],
)
def test_a_place_is_a_queue_or_a_servers(text: str, found: Place) -> None:
    assert place(text) == found


@pytest.mark.parametrize(
    ("mine", "theirs", "are"),
    [
        ("python agent.py 64", "python agent.py 64", True),
        ("/usr/bin/python3 agent.py", "/home/venv/bin/python agent.py", True),
        ("python /srv/agent.py", "python /home/agent.py", True),
        ("python agent.py --key=abc", "python agent.py --key=lockstep-secret.api-key.", True),
        ("python agent.py 64", "python agent.py 65", False),
        ("python agent.py", "python other.py", False),
        ("python agent.py", "sh agent.py", False),
        ("python a/agent.py", "python b/agent.py", False),
        ("python agent.py", "python", False),
    ],
)
def test_the_same_command_on_two_machines(mine: str, theirs: str, are: bool) -> None:
    assert same(mine.split(), theirs.split()) is are


def test_the_files_that_are_compared_are_those_that_a_command_or_target_names(tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    for name in ("agent.py", "pack/__init__.py", "pack/__main__.py", "data.json"):
        (tmp_path / name).write_text(name)
    there = str(tmp_path)
    assert set(sources(["python", "agent.py", "data.json", "no.txt"], "", there)) == {"1", "2"}
    assert set(sources(["python", "-m", "pack"], "", there)) == {"pack package", "pack main"}
    assert set(sources([], "agent:main", there)) == {"agent module"}
    before = sources([], "agent:main", there)
    (tmp_path / "agent.py").write_text("changed")
    assert sources([], "agent:main", there) != before
