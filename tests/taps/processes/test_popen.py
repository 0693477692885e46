"""Processes started through `subprocess`: recorded by what they deliver, and served without running."""

import os
import select
import selectors
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import lockstep
from lockstep.errors import Code

NOW = "date +%N"  # prints something else each time


def test_a_finished_command_gives_the_same_output_and_status(session: Any) -> None:
    def program() -> tuple[Any, ...]:
        done = subprocess.run(f"{NOW}; echo oops >&2; exit 3", shell=True, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    assert session.same(program)[::2] == (3, "oops\n")


def test_nothing_of_it_runs_in_a_replay(session: Any, tmp_path: Path) -> None:
    trace = tmp_path / "trace"

    def program() -> int:
        # By the shell itself, so that it is no file of the program's.
        return subprocess.run(["sh", "-c", f"echo ran >> {trace}"], check=True).returncode

    session.same(program)
    assert trace.read_text() == "ran\n"


@pytest.mark.parametrize("command", ["exit 0", "exit 200", "kill -9 $$", "kill -SEGV $$"])
def test_every_way_to_end_is_the_recorded_one(session: Any, command: str) -> None:
    session.same(lambda: subprocess.run(command, shell=True, check=False).returncode)


def test_lines_come_as_they_came(session: Any) -> None:
    def program() -> list[str]:
        command = f"for i in 1 2 3; do echo $i $({NOW}); done; exit 4"
        with subprocess.Popen(command, shell=True, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            lines = list(process.stdout)
        return [*lines, str(process.returncode)]

    assert [line[:2] for line in session.same(program)] == ["1 ", "2 ", "3 ", "4"]


def test_the_end_of_its_output_may_be_read_after_it_was_waited_for(session: Any) -> None:
    def program() -> tuple[int, bytes]:
        with subprocess.Popen(["date", "+%N"], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            return process.wait(), process.stdout.read()

    session.same(program)


def test_a_conversation_goes_as_it_went(session: Any) -> None:
    def program() -> list[str]:
        command = f"while read line; do echo got $line $({NOW}); done"
        streams: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
        with subprocess.Popen(command, shell=True, **streams) as process:
            said = []
            for word in ("one", "two"):
                process.stdin.write(f"{word}\n")  # type: ignore[union-attr]
                said.append(process.stdout.readline())  # type: ignore[union-attr]
            process.stdin.close()  # type: ignore[union-attr]
        return said

    assert [line.split()[:2] for line in session.same(program, held=True)] == [["got", "one"], ["got", "two"]]


def test_much_input_is_taken(session: Any) -> None:
    def program() -> bytes:
        return subprocess.run(["md5sum"], input=b"x" * 300_000, stdout=subprocess.PIPE, check=True).stdout

    assert session.same(program).startswith(b"d408ed46")


def test_other_input_is_a_difference(session: Any) -> None:
    said = ["first"]

    def program() -> bytes:
        return subprocess.run(["cat"], input=said[0].encode(), stdout=subprocess.PIPE, check=True).stdout

    session.record(program)
    said[0] = "other"
    found = session.replay(program).difference
    assert (found.code, found.kind, found.expected, found.actual) == (Code.OUTPUT, "process", "first", "other")


def test_less_input_is_a_difference(session: Any) -> None:
    said = ["first second"]

    def program() -> bytes:
        return subprocess.run(["cat"], input=said[0].encode(), stdout=subprocess.PIPE, check=True).stdout

    session.record(program)
    said[0] = "first"
    found = session.replay(program).difference
    assert (found.code, found.expected, found.actual) == (Code.OUTPUT, "first second", "(closed)")


def test_another_command_is_named_by_the_word_that_differs(session: Any) -> None:
    words = ["echo", "one"]

    def program() -> None:
        subprocess.run(words, stdout=subprocess.DEVNULL, check=True)

    session.record(program)
    words[1] = "two"
    found = session.replay(program).difference
    assert (found.code, found.path, found.expected, found.actual) == (Code.REQUEST, "argv[1]", '"one"', '"two"')


@pytest.mark.parametrize(("recorded", "now", "code"), [(1, 2, Code.EXTRA), (2, 1, Code.MISSING)])
def test_one_more_or_fewer_is_a_difference(session: Any, recorded: int, now: int, code: Code) -> None:
    times = [recorded]

    def program() -> None:
        for _ in range(times[0]):
            subprocess.run(["true"], check=True)

    session.record(program)
    times[0] = now
    assert session.replay(program).difference.code == code


def test_the_environment_is_asked_for_by_what_differs_from_the_programs(session: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("WHERE", "/somewhere/far")

    def program() -> bytes:
        env = {**os.environ, "WHERE": f"/nearer:{os.environ['WHERE']}", "LEVEL": level[0]}
        return subprocess.run("echo $WHERE $LEVEL", shell=True, env=env, stdout=subprocess.PIPE, check=True).stdout

    level = ["1"]
    assert session.same(program) == b"/nearer:/somewhere/far 1\n"
    level[0] = "2"
    found = session.replay(program).difference
    assert (found.path, found.expected, found.actual) == ("env.LEVEL", '"1"', '"2"')


def test_a_library_that_copies_the_environment_for_a_process_asks_for_nothing_of_this_machines(
    session: Any, monkeypatch: Any, tmp_path: Path
) -> None:
    """A library gets this machine's PATH in a replay, so that it finds its files."""
    library = tmp_path / "site-packages" / "launcher.py"
    library.parent.mkdir()
    library.write_text(
        "import os, subprocess\ndef launch():\n    return subprocess.check_output(['date'], env=os.environ.copy())"
    )
    monkeypatch.syspath_prepend(str(library.parent))
    launcher = __import__("launcher")
    session.record(launcher.launch)
    monkeypatch.setenv("PATH", f"/elsewhere/bin:{os.environ['PATH']}")
    monkeypatch.setenv("_", "/elsewhere/bin/lockstep")
    assert session.replay(launcher.launch).identical


def test_a_program_that_is_not_there_fails_in_the_same_way(session: Any, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program")

    def program() -> list[tuple[Any, ...]]:
        found = []
        for words, cwd in ((["/nonexistent/program"], None), ([str(plain)], None), (["true"], "/nonexistent")):
            try:
                subprocess.run(words, cwd=cwd, check=False)
            except OSError as error:
                found.append((type(error), error.errno, error.filename, str(error)))
        return found

    kinds = [kind for kind, *_ in session.same(program, held=True)]
    assert kinds == [FileNotFoundError, PermissionError, FileNotFoundError]


def test_a_command_that_takes_too_long_is_given_up_again(session: Any) -> None:
    def program() -> tuple[Any, ...]:
        try:
            subprocess.run(["sh", "-c", "echo some; sleep 10"], capture_output=True, timeout=0.1, check=False)
        except subprocess.TimeoutExpired as expired:
            return str(expired), expired.output
        return ()

    assert session.same(program, held=True)[1] == b"some\n"


def test_waits_that_ran_out_and_polls_that_came_too_early_do_so_again(session: Any) -> None:
    def program() -> list[Any]:
        seen: list[Any] = []
        with subprocess.Popen(["sleep", "0.15"]) as process:
            seen.append(process.poll())
            while process.returncode is None:
                try:
                    process.wait(timeout=0.04)
                except subprocess.TimeoutExpired as expired:
                    seen.append(str(expired))
        with subprocess.Popen(["sleep", "0.05"]) as process:
            while process.poll() is None:
                seen.append("not yet")
                time.sleep(0.01)
        return seen

    seen = session.same(program)
    assert seen[0] is None
    assert "not yet" in seen
    assert any("timed out" in str(each) for each in seen)


def test_one_that_is_killed_ends_by_that_signal(session: Any) -> None:
    def program() -> list[int]:
        first = subprocess.Popen(["sleep", "100"])
        first.kill()
        second = subprocess.Popen(["sleep", "100"], start_new_session=True)
        os.killpg(os.getpgid(second.pid), signal.SIGTERM)
        return [first.wait(), second.wait()]

    assert session.same(program) == [-signal.SIGKILL, -signal.SIGTERM]


def test_a_pipe_that_the_program_closes_kills_who_writes_to_it(session: Any) -> None:
    def program() -> tuple[bytes, int]:
        process = subprocess.Popen(["yes"], stdout=subprocess.PIPE)
        assert process.stdout is not None
        first = process.stdout.readline()
        process.stdout.close()
        return first, process.wait()

    assert session.same(program) == (b"y\n", -signal.SIGPIPE)


def test_a_pipe_that_is_dropped_is_closed_at_once(session: Any) -> None:
    """Nothing of ours keeps it, or its process would wait for a reader."""

    def program() -> int:
        process = subprocess.Popen(["yes"], stdout=subprocess.PIPE)
        process.stdout = None
        return process.wait()

    assert session.same(program) == -signal.SIGPIPE


def test_a_write_that_nobody_takes_fails_again(session: Any) -> None:
    def program() -> list[str]:
        process = subprocess.Popen(["true"], stdin=subprocess.PIPE, bufsize=0)
        process.wait()
        try:
            process.stdin.write(b"too late")  # type: ignore[union-attr]
        except BrokenPipeError as error:
            said = repr(error)
        process.stdin.close()  # type: ignore[union-attr]
        with subprocess.Popen(["head", "-c", "3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as second:
            took, _ = second.communicate(b"y" * 400_000, timeout=60)
        return [said, took.decode()]

    assert session.same(program) == ["BrokenPipeError(32, 'Broken pipe')", "yyy"]


def test_both_streams_in_one_and_output_into_a_file(session: Any, tmp_path: Path) -> None:
    path = tmp_path / "out.txt"

    def program() -> tuple[bytes, str]:
        both = subprocess.run(
            f"echo a; echo b >&2; {NOW}", shell=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True
        )
        with path.open("w") as file:
            file.write("head\n")
            file.flush()
            subprocess.run(f"{NOW}; echo error >&2", shell=True, stdout=file, stderr=subprocess.STDOUT, check=True)
        return both.stdout, path.read_text()

    both, text = session.same(program)
    assert both.startswith(b"a\nb\n")
    assert text.startswith("head\n")
    assert text.endswith("\nerror\n")


def test_a_pipeline_gives_what_its_last_command_gave(session: Any) -> None:
    def program() -> tuple[bytes, int]:
        first = subprocess.Popen(["date", "+%N"], stdout=subprocess.PIPE)
        second = subprocess.Popen(["cat"], stdin=first.stdout, stdout=subprocess.PIPE)
        first.stdout.close()  # type: ignore[union-attr]
        return second.communicate()[0], first.wait()

    session.same(program)


def test_reads_below_the_file_object_are_served_as_well(session: Any) -> None:
    def program() -> list[Any]:
        process = subprocess.Popen(f"{NOW}; {NOW}", shell=True, stdout=subprocess.PIPE, bufsize=0)
        assert process.stdout is not None
        found: list[Any] = [process.stdout.readline()]
        while piece := os.read(process.stdout.fileno(), 4):
            found.append(piece)
        process.stdout.close()
        early = os.waitpid(process.pid, 0)
        return [*found, early == (process.pid, 0), process.wait()]

    assert session.same(program)[-2:] == [True, 0]


@pytest.mark.parametrize("way", ["select", "selectors"])
def test_a_wait_for_several_pipes_finds_what_it_found(session: Any, way: str) -> None:
    def program() -> list[Any]:
        command = f"sleep 0.05; {NOW}; sleep 0.05; {NOW} >&2"
        process = subprocess.Popen(command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0)
        streams: dict[Any, str] = {process.stdout: "out", process.stderr: "err"}
        seen: list[Any] = []
        with selectors.DefaultSelector() as selector:
            for stream in streams:
                selector.register(stream, selectors.EVENT_READ)
            while streams:
                if way == "select":
                    ready = select.select(list(streams), [], [], 0.02)[0]
                else:
                    ready = [key.fileobj for key, _ in selector.select(0.02)]
                if not ready:
                    seen.append("nothing")
                for stream in ready:
                    got = os.read(stream.fileno(), 100)
                    seen.append((streams[stream], got))
                    if not got:
                        selector.unregister(stream)
                        del streams[stream]
                        stream.close()
        return [*seen, process.wait()]

    assert "nothing" in session.same(program)


def test_threads_read_in_the_recorded_order(session: Any) -> None:
    def program() -> list[tuple[str, str]]:
        command = f"for i in 1 2 3 4; do echo $i $({NOW}); echo $i >&2; done"
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(command, shell=True, **pipes)
        seen: list[tuple[str, str]] = []
        guard = threading.Lock()

        def read(stream: Any, name: str) -> None:
            for line in stream:
                with guard:
                    seen.append((name, line))

        threads = [threading.Thread(target=read, args=each) for each in ((process.stdout, "o"), (process.stderr, "e"))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        process.wait()
        process.stdout.close()
        process.stderr.close()
        return seen

    assert len(session.same(program)) == 8


def test_its_number_is_the_recorded_one(session: Any) -> None:
    def program() -> tuple[int, int, int]:
        process = subprocess.Popen(["sleep", "100"], start_new_session=True)
        group = os.getpgid(process.pid)
        os.kill(process.pid, signal.SIGTERM)
        return process.pid, group, process.wait()

    pid, group, status = session.same(program)
    assert (group, status) == (pid, -signal.SIGTERM)


def test_a_process_of_a_tool_belongs_to_the_tool(session: Any) -> None:
    @lockstep.tool
    def now() -> str:
        return subprocess.check_output(["date", "+%N"], text=True)

    session.same(lambda: [now(), subprocess.check_output(["date", "+%N"])])


def test_much_output_at_once_is_kept_whole(session: Any) -> None:
    def program() -> tuple[int, int]:
        got = subprocess.check_output(["head", "-c", "40000000", "/dev/zero"])
        return len(got), got.count(b"\0")

    assert session.same(program) == (40_000_000, 40_000_000)


def test_what_goes_into_a_pipe_of_the_programs_own_is_named_and_not_served(session: Any) -> None:
    def program() -> bytes:
        reading, writing = os.pipe()
        subprocess.run(["date"], stdout=writing, check=True)
        os.close(writing)
        got = os.read(reading, 100)
        os.close(reading)
        return got

    report = session.record(program)
    assert [(item.source, item.how) for item in report.coverage if item.how == "not covered"] == [
        ("process output", "not covered")
    ]
    assert session.replay(program).difference.code == Code.NOT_COVERED


@pytest.mark.parametrize("way", ["dup", "open"])
def test_a_pipe_that_goes_another_way_is_named(session: Any, way: str) -> None:
    def program() -> None:
        with subprocess.Popen(["true"], stdout=subprocess.PIPE) as process:
            fd = process.stdout.fileno()  # type: ignore[union-attr]
            os.close(os.dup(fd)) if way == "dup" else open(fd, closefd=False).close()

    session.record(program)
    report = session.replay(program)
    assert not report.identical
    assert [item.source for item in report.coverage if item.how == "not covered"] == ["process output"]


def test_a_replay_of_a_cut_recording_stops_at_the_cut(session: Any) -> None:
    def program() -> None:
        subprocess.run(["date"], stdout=subprocess.PIPE, check=True)

    session.record(program)

    def longer() -> None:
        program()
        subprocess.run(["touch", "/nonexistent/file"], check=True)

    report = session.replay(longer, interrupted=True)
    assert report.cut
    assert report.difference is None


def test_the_shell_and_posix_spawn_end_as_recorded(session: Any) -> None:
    def program() -> list[Any]:
        first = os.posix_spawn("/bin/sh", ["sh", "-c", "sleep 0.05; exit 7"], dict(os.environ))
        early = os.waitpid(first, os.WNOHANG)
        late = os.waitpid(first, 0)
        second = os.posix_spawnp("sleep", ["sleep", "100"], {**os.environ, "LEVEL": "1"})
        os.kill(second, signal.SIGTERM)
        try:
            os.posix_spawn("/nonexistent", ["x"], {})
        except FileNotFoundError as error:
            failed = repr(error)
        return [os.system("exit 3"), os.system("kill -9 $$"), early, late, os.waitpid(second, 0), failed]

    found = session.same(program)
    assert found[:3] == [3 << 8, signal.SIGKILL, (0, 0)]
    assert found[3][1] == 7 << 8
