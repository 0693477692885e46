import io

import pytest

from lockstep.cli import terminal
from lockstep.debugger.lines import cells, cut, safe


@pytest.mark.parametrize(
    ("recorded", "shown"),
    [
        ("plain [bold]text[/bold]", "plain [bold]text[/bold]"),
        ("two\nlines\tand\r", "two\\nlines\\tand\\r"),
        ("\x1b]0;owned\x07\x1b[31mred", "\\x1b]0;owned\\x07\\x1b[31mred"),
        ("\x9b31m", "\\x9b31m"),
        ("abc\u202egnp.exe", "abc\\u202egnp.exe"),
        ("line\u2028break", "line\\u2028break"),
        ("half \ud800", "half \\ud800"),
        ("naïve 東京 🙂", "naïve 東京 🙂"),
    ],
)
def test_what_a_terminal_would_act_on_is_written_out(recorded: str, shown: str) -> None:
    assert safe(recorded) == shown


@pytest.mark.parametrize("width", [2, 3, 7, 10, 40])
@pytest.mark.parametrize("text", ["short", "a" * 50, "東京都" * 20, "e\u0301" * 40, "a東" * 30])
def test_wide_content_loses_its_middle_and_fits(text: str, width: int) -> None:
    fitted = cut(text, width)
    assert cells(fitted) <= width
    if cells(text) <= width:
        assert fitted == text
    else:
        head, tail = fitted.split("…")
        assert text.startswith(head) and text.endswith(tail)
        assert width < 5 or (head and tail)


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_colour_is_for_terminals_that_want_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    line = [("✓ ", "good"), "identical"]

    def said(stream: io.StringIO) -> str:
        terminal.say(line, to=stream)
        return stream.getvalue()

    assert said(Terminal()) == "\x1b[32m✓ \x1b[0midentical\n"
    assert said(io.StringIO()) == "✓ identical\n"
    monkeypatch.setenv("NO_COLOR", "1")
    assert said(Terminal()) == "✓ identical\n"
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert said(Terminal()) == "✓ identical\n"


def test_a_stream_that_cannot_show_a_character_gets_its_escape() -> None:
    class Ascii(io.StringIO):
        encoding = "ascii"

    stream = Ascii()
    terminal.say("✓ identical", to=stream)
    assert stream.getvalue() == "\\u2713 identical\n"


def test_a_table_is_aligned_and_only_its_flexible_column_gives_way(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    columns = [("RUN", "left"), ("STEPS", "right"), ("WHAT", "left")]
    rows = [[("refund", "strong"), "14", "x" * 30 + "END"], ["a", "3", "short"]]
    terminal.table(columns, rows, flexible=2)
    assert capsys.readouterr().out.splitlines() == [
        "RUN     STEPS  WHAT",
        "refund     14  " + "x" * 30 + "END",
        "a           3  short",
    ]
    monkeypatch.setattr(terminal, "width", lambda _stream: 30)
    terminal.table(columns, rows, flexible=2)
    cut_row = capsys.readouterr().out.splitlines()[1]
    assert len(cut_row) <= 30
    assert cut_row.startswith("refund     14  xxxx") and cut_row.endswith("END")
