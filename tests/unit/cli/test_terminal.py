"""Output on a terminal and in a file: width, colors and characters."""

from __future__ import annotations

import io
import sys

import pytest
from rich.table import Column
from rich.text import Text

from reveal_cli.stderr_lines import note
from reveal_cli.terminal import grid, plain_text, show, table
from support.terminal_stream import TerminalStream


def output_of(stream: io.StringIO, monkeypatch: pytest.MonkeyPatch, columns: int = 60) -> str:
    """Return what ``show`` writes of a colored line that is too long for 60 columns."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys, "stdout", stream)
    show(Text("word " * 30, style="red"))
    return stream.getvalue()


def test_a_terminal_gets_colors_and_its_own_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    text = output_of(TerminalStream(), monkeypatch)
    assert "\x1b[31m" in text
    assert text.count("\n") == 3


def test_no_color_is_honored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in output_of(TerminalStream(), monkeypatch)


def test_a_file_gets_plain_text_of_a_fixed_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    texts = {output_of(io.StringIO(), monkeypatch, columns) for columns in (40, 60, 200)}
    assert texts == {"word " * 23 + "word\n" + "word " * 5 + "word\n"}


def test_lines_of_a_table_have_no_trailing_spaces() -> None:
    rows = table("NAME", "VALUE")
    rows.add_row("a", "1")
    rows.add_row("longer", "")
    assert plain_text(rows).splitlines() == ["NAME    VALUE", "─" * 13, "a       1", "longer"]


def test_an_encoding_without_lines_gets_ascii() -> None:
    rows = table("NAME", Column("VALUE"))
    rows.add_row("a", "1")
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    assert plain_text(rows, stream=stream).isascii()


def test_a_grid_wraps_texts_beside_their_labels() -> None:
    assert plain_text(grid([("a", "x y z"), ("bb", "[w]")], indent=1), width=8) == (
        " a   x y\n     z\n bb  [w]\n"
    )


def test_names_of_strangers_cannot_control_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """As columns of a table, and hosts in it, which anybody may have written."""
    evil = "\x1b]0;title\x07\x1b[2Jn1\u202e"
    rows = table("HOST", Column("CLAIM", ratio=1), expand=True)
    rows.add_row(evil, Text(f"busy: {evil}", style="red"))
    for stream in (TerminalStream(), io.StringIO()):
        monkeypatch.setenv("TERM", "xterm-256color")
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setattr(sys, "stdout", stream)
        show(f"first {evil}\nsecond", rows)
        text = stream.getvalue()
        assert not {"\x07", "\u202e"} & set(text)
        assert "\x1b[2J" not in text and "\x1b]" not in text
        assert "\\x1b[2Jn1\\u202e" in text
        assert "second" in text.splitlines()[1]


def test_a_line_on_stderr_is_inert(capsys: pytest.CaptureFixture[str]) -> None:
    note("\x1b[2Ja\nb")
    assert capsys.readouterr().err == "reveal: \\x1b[2Ja\nb\n"
