"""What `make demo` shows: a support agent is recorded, and the recording is replayed, proved and read. Then one on
LangGraph, and one that was a Temporal workflow, of whose wrong decisions the causes are found and mended.

Every step says what it expects. The first one that turns out otherwise ends the demonstration with
exit status 1.
"""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

EXAMPLES = Path(__file__).parent
AGENT = EXAMPLES / "support_agent"
GRAPH = "langgraph_support_agent"
TARGET = ("--target", f"{GRAPH}:graph")
WORKFLOW = EXAMPLES / "temporal_refund"
BIN = Path(sys.executable).parent
BOLD, GREEN, RED, PLAIN = ("\x1b[1m", "\x1b[32m", "\x1b[31m", "\x1b[0m") if sys.stdout.isatty() else ("",) * 4


def main() -> None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="lockstep-demo-") as place:
        os.environ["LOCKSTEP_STORE"] = str(Path(place) / "store.db")
        os.environ.setdefault("COLUMNS", "120")
        os.environ["PATH"] = f"{BIN}{os.pathsep}{os.environ['PATH']}"
        show_all()
    title(f"Done in {time.monotonic() - began:.0f} s: everything was as expected.")


def show_all() -> None:
    title("1. Record a support agent on the OpenAI SDK, against a model provider on loopback")
    with model_provider(AGENT / "scripted_model.py") as url:
        os.environ |= {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "sk-demonstration-only"}
        recorded = run("lockstep", "record", "--run", "refund", "--", "python", "support_agent.py", "--ticket", "4711")
    expect("the agent refunded the customer", "Refunded 40.00" in recorded)

    title("2. Stop the provider, and replay: no model, no network, nothing is paid")
    expect("nobody answers at the provider's address any more", not answers(url))
    replayed = run("lockstep", "replay", "refund")
    expect("the replay printed the same, times and ids included", replayed == recorded)

    title("3. Prove it: twenty replays, each in a process of its own")
    run("lockstep", "verify", "refund", "--times", "20")

    title("4. Read it")
    run("lockstep", "runs")
    run("lockstep", "log", "refund")
    run("lockstep", "show", address_of("issue_refund"))

    title("5. Change the agent, and let the recording catch it")
    changed = ("python", "support_agent.py", "--ticket", "4711", "--policy", "generous")
    run("lockstep", "replay", "refund", "--", *changed, status=1, find=("LS101", "messages[0].content", "500.00"))

    with tempfile.TemporaryDirectory(prefix="lockstep-shop-") as place:
        os.environ["SHOP"] = str(Path(place) / "total.json")
        show_a_graph(Path(os.environ["SHOP"]))
        show_a_workflow(Path(os.environ["SHOP"]))


def show_a_graph(shop: Path) -> None:
    title("6. The same job on LangGraph: no `lockstep record`, its checkpointer is Lockstep's. A thread is a run")
    command = ("python", f"{GRAPH}.py", "--ticket")
    script = EXAMPLES / f"{GRAPH}.py"
    with model_provider(script) as url:
        os.environ["OPENAI_BASE_URL"] = f"{url}/v1"
        shop.write_text("4000")
        run(*command, "4711", place=EXAMPLES)
    expect("nobody answers at the provider's address any more", not answers(url))
    run("lockstep", "replay", "langgraph/ticket-4711", *TARGET, place=EXAMPLES)
    run("lockstep", "log", "langgraph/ticket-4711", place=EXAMPLES)
    with model_provider(script) as url:
        os.environ["OPENAI_BASE_URL"] = f"{url}/v1"
        find_the_fault(shop, (*command, "4712"))


def find_the_fault(shop: Path, command: Sequence[str]) -> None:
    title("7. A thread that went wrong: for an hour the shop's system said 400.00 for an order of 25.00")
    shop.write_text("40000")
    run(*command, status=1, place=EXAMPLES)
    shop.write_text("2500")

    title("8. Bisect it: which answer made it bad? (This shop is a toy, so probes may pay)")
    thread = "langgraph/ticket-4712"
    culprit = address_of("get_order", thread)
    run("lockstep", "bisect", thread, "--live", "issue_refund", *TARGET, find=("culprit", culprit), place=EXAMPLES)

    title("9. Fork it with that answer mended: the agent decides right, and the refund is not fired")
    step, effect = culprit.rpartition(".")[0], culprit.partition(":")[2]
    mended = ("lockstep", "fork", step, "--set", f"{effect}:total=2500", "--branch", "mended", *TARGET)
    run(*mended, status=1, find=("LS301", "cents=2500", "--live issue_refund"), place=EXAMPLES)
    run("lockstep", "log", thread, place=EXAMPLES)


def show_a_workflow(shop: Path) -> None:
    title("10. A Temporal workflow overpaid in production. All that there is of it is its history, without a server")
    workflow, target = "temporal/ticket-4712", ("--target", "refund_workflow")
    run("lockstep", "import", "overpaid.json", place=WORKFLOW)
    run("lockstep", "log", workflow, place=WORKFLOW)
    run("lockstep", "replay", workflow, *target, place=WORKFLOW)

    title("11. Bisect it, and fork it with the answer mended, five minutes of waiting included")
    shop.write_text("2500")
    with model_provider(WORKFLOW / "shop_model.py") as url:
        os.environ["OPENAI_BASE_URL"] = f"{url}/v1"
        culprit = address_of("get_order", workflow)
        run("lockstep", "bisect", workflow, "--live", "issue_refund", *target, find=(culprit,), place=WORKFLOW)
        step, effect = culprit.rpartition(".")[0], culprit.partition(":")[2]
        mended = ("--set", f"{effect}:total=2500", "--branch", "mended", "--live", "issue_refund")
        run("lockstep", "fork", step, *mended, *target, find=("complete",), place=WORKFLOW)
    run("lockstep", "log", f"{workflow}@mended", place=WORKFLOW)


@contextmanager
def model_provider(script: Path) -> Iterator[str]:
    """The address of a provider in a process of its own."""
    command = (sys.executable, "-m", "lockstep.testing.provider", "--script", f"{script}:answer")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def answers(url: str) -> bool:
    address = urlsplit(url)
    with socket.socket() as probe:
        return probe.connect_ex((address.hostname, address.port)) == 0


def run(*command: str, status: int = 0, find: Sequence[str] = (), place: Path = AGENT) -> str:
    """Shows a command and what it prints; it must end with `status` and its report must have the words
    in `find`. Returns its stdout."""
    print(f"\n{BOLD}$ {' '.join(command)}{PLAIN}", flush=True)
    said = ""
    # Lockstep's words go straight to the terminal, where they can show progress, unless they are to be read here.
    with (
        tempfile.TemporaryFile("w+") as report,
        subprocess.Popen(
            command, cwd=place, stdout=subprocess.PIPE, stderr=report if find else None, text=True
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            said += line
            print(line, end="", flush=True)
        process.wait()
        report.seek(0)
        words = report.read()
    print(words, end="", flush=True)
    expect(f"exit status {status}", process.returncode == status, quiet=status == 0)
    for part in find:
        expect(f"the report says {part}", part in words)
    return said


def address_of(name: str, recording: str = "refund") -> str:
    """Where the recording has the effect of that name."""
    command = ("lockstep", "log", recording, "--json")
    log = subprocess.run(command, cwd=EXAMPLES, capture_output=True, text=True, check=True)
    for step in json.loads(log.stdout)["steps"]:
        for effect in step["effects"]:
            if effect["name"] == name:
                return str(effect["address"])
    expect(f"the recording has {name}", False)
    raise AssertionError


def title(text: str) -> None:
    print(f"\n{BOLD}{text}{PLAIN}", flush=True)


def expect(what: str, held: bool, quiet: bool = False) -> None:
    if not held:
        print(f"{RED}✗ expected: {what}{PLAIN}", flush=True)
        sys.exit(1)
    if not quiet:
        print(f"{GREEN}✓ {what}{PLAIN}", flush=True)


if __name__ == "__main__":
    main()
