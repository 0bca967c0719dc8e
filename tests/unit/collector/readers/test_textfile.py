"""Text files kept open: layouts, names that must stay, and invalid numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_collector.kernel_interfaces.errors import LayoutChanged, ParseError, Unsupported
from reveal_collector.readers.plan import PLAIN, TextForm
from reveal_collector.readers.textfile import (
    UNFIT,
    Layout,
    OpenFile,
    TokenSource,
    channel,
    is_number,
    rows,
)
from reveal_contract.channels import Channel
from reveal_contract.metric import Kind, Lane


def learn(text: str) -> Layout:
    return [
        (start + 1, channel("memory.vm.pgfault", tokens[0]))
        for start, tokens in rows(text)
        if len(tokens) == 2 and is_number(tokens[1])
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "counts"
    file.write_text("a 1\nb 2\n")
    return file


@pytest.fixture
def source(path: Path) -> TokenSource:
    result = TokenSource("counts", Lane.FAST, path, learn)
    result.open()
    return result


def labels(source: TokenSource) -> list[str]:
    return [each.instance for each in source.channels]


def test_reads_what_changed(source: TokenSource, path: Path) -> None:
    assert list(source.read()) == [1, 2]
    path.write_text("a 5\nb -7\n")
    assert list(source.read()) == [5, -7]


def test_a_line_in_another_form_is_stated_as_long_as_it_is_there(path: Path) -> None:
    def learn_or_state(text: str) -> Layout:
        unfit = [(start, UNFIT) for start, tokens in rows(text) if len(tokens) != 2]
        return [*learn(text), *unfit]

    source = TokenSource("counts", Lane.FAST, path, learn_or_state)
    source.open()
    assert not source.degraded
    path.write_text("a 1\nb 2\n" + "odd 3 4\n" * 5)
    assert list(source.read()) == [1, 2]
    assert source.degraded == (
        f"counts: numbers are missing, because 5 lines of {path} cannot be read: odd, odd, odd",
    )
    path.write_text("a 1\nb 2\n")
    source.read()
    assert not source.degraded


def test_a_form_may_depend_on_the_text(path: Path) -> None:
    def form_of(data: bytes) -> TextForm:
        return TextForm(blanks=b":") if b":" in data else PLAIN

    source = TokenSource("counts", Lane.FAST, path, learn, form=form_of)
    source.open()
    path.write_text("a:1\nb:22222\n")
    assert list(source.read()) == [1, 22222]
    path.write_text("a 3\nb 4\n")
    assert list(source.read()) == [3, 4]


def test_kind_and_lane_are_the_catalogues() -> None:
    assert channel("memory.mem_free").kind is Kind.GAUGE
    assert channel("network.ip6.in_receives").lane is Lane.SLOW


def test_a_row_more_is_a_new_layout(source: TokenSource, path: Path) -> None:
    path.write_text("a 1\nnew 3\nb 2\n")
    with pytest.raises(LayoutChanged):
        source.read()
    assert labels(source) == ["a", "new", "b"]
    assert list(source.read()) == [1, 3, 2]


def test_swapped_names_never_shift_values(source: TokenSource, path: Path) -> None:
    path.write_text("b 2\na 1\n")
    with pytest.raises(LayoutChanged):
        source.read()
    assert dict(zip(labels(source), source.read(), strict=True)) == {"a": 1, "b": 2}


def test_a_name_that_becomes_a_number_is_a_new_layout(source: TokenSource, path: Path) -> None:
    path.write_text("a 1\n7 2\n")
    with pytest.raises(LayoutChanged):
        source.read()


def test_a_number_that_is_none_costs_its_own_channel(source: TokenSource, path: Path) -> None:
    for text, left in (("a x\nb 2\n", {"b": 2}), ("a 3\nb 2\n", {"a": 3, "b": 2})):
        path.write_text(text)
        with pytest.raises(LayoutChanged):
            source.read()
        assert dict(zip(labels(source), source.read(), strict=True)) == left


def test_an_invalid_number_in_every_layout_is_an_error(path: Path) -> None:
    path.write_text("5")
    source = TokenSource("clock", Lane.FAST, path, lambda _: [(0, channel("cpu.run_time"))])
    source.open()
    path.write_text("x")
    with pytest.raises(ParseError, match=r"counts: .*x"):
        source.read()
    path.write_text("6")
    assert list(source.read()) == [6]


def test_watched_tokens_make_a_new_layout(path: Path) -> None:
    def idle_until_used(text: str) -> list[tuple[int, Channel | None]]:
        return [
            (index, None if token == "0" else channel("cpu.run_time", str(index)))
            for index, token in enumerate(text.split())
        ]

    path.write_text("5 0")
    source = TokenSource("clock", Lane.FAST, path, idle_until_used)
    source.open()
    assert list(source.read()) == [5]
    path.write_text("6 1")
    with pytest.raises(LayoutChanged):
        source.read()
    assert list(source.read()) == [6, 1]


def test_numbers_of_a_repeated_name_are_added(path: Path) -> None:
    path.write_text("a 1\na 2\n")
    source = TokenSource("counts", Lane.FAST, path, learn)
    source.open()
    assert labels(source) == ["a"]
    assert list(source.read()) == [3]


@pytest.mark.parametrize("blank", ["\x1c", "\x1f", "\x85", "\xa0", "\u2003"])
def test_odd_blanks_do_not_shift_tokens(path: Path, blank: str) -> None:
    path.write_bytes(f"a{blank}z 1\nb 2\n".encode())
    source = TokenSource("counts", Lane.FAST, path, learn)
    source.open()
    assert list(source.read()) == [1, 2]


def test_files_of_several_pages_are_read_whole(path: Path) -> None:
    text = "".join(f"key_{number} {number}\n" for number in range(20_000))
    path.write_text(text)
    file = OpenFile(path)
    file.open()
    assert file.read() == text.encode()
    file.close()


def test_a_missing_file_has_a_remedy(tmp_path: Path) -> None:
    source = TokenSource("gone", Lane.FAST, tmp_path / "gone", learn, "load the module")
    with pytest.raises(Unsupported, match="gone does not exist") as caught:
        source.open()
    assert caught.value.remedy == "load the module"


def test_a_file_without_numbers_is_not_supported(path: Path) -> None:
    path.write_text("nothing here\n")
    source = TokenSource("counts", Lane.FAST, path, learn)
    with pytest.raises(Unsupported, match="no known number"):
        source.open()


def test_opening_again_learns_the_layout_again(source: TokenSource, path: Path) -> None:
    path.write_text("c 9\n")
    source.open()
    assert labels(source) == ["c"]
    assert list(source.read()) == [9]


@pytest.mark.parametrize(
    ("token", "number"), [("12", True), ("-1", True), ("²", False), ("", False), ("0x1", False)]
)
def test_is_number(token: str, number: bool) -> None:
    assert is_number(token) is number
