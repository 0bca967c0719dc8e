"""Interfaces of ``/proc/net/dev`` with and without a blank after the colon: one reader for both."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.kernel_interfaces.errors import LayoutChanged
from reveal_collector.native import load
from reveal_collector.readers.netdev import FIELDS, form_of, interfaces
from reveal_collector.readers.plan import PLAIN, scans_of
from reveal_collector.readers.source import Roots
from reveal_collector.readers.textfile import TokenSource
from reveal_collector.sources import netdev
from reveal_collector.subjects.network import parse_dev

HEADER = (
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n"
)
NAMES = st.from_regex(r"\A[a-z][a-z0-9_.@|-]{0,13}\Z")
COUNTERS = st.lists(st.integers(0, 2**64 - 1), min_size=len(FIELDS), max_size=len(FIELDS))


def line(name: str, counters: list[int], blank: str = "") -> str:
    """A line of kernels before 2.6.33: ``%6s:%8lu``; later ones print a blank."""
    return f"{name:>6}:{blank}" + " ".join(f"{counter:8d}" for counter in counters)


@given(st.dictionaries(NAMES, COUNTERS, min_size=1, max_size=4), st.sampled_from(["", " "]))
def test_a_width_that_is_used_up_changes_nothing(hosts: dict[str, list[int]], blank: str) -> None:
    text = HEADER + "\n".join(line(*host, blank) for host in hosts.items()) + "\n"
    data = text.encode()
    shaped = form_of(data).apply(data).decode()
    found = {each.name: list(map(int, each.values)) for each in interfaces(shaped)}
    assert found == hosts
    for each in interfaces(shaped):
        assert shaped.split()[each.start + 1 : each.start + 17] == each.values
    received = FIELDS.index("rx_bytes")
    others = {name: counters[received] for name, counters in hosts.items() if name != "lo"}
    assert {name: traffic[0] for name, traffic in parse_dev(data).items()} == others


def test_an_alias_has_a_colon_of_its_own() -> None:
    text = HEADER + line("eth0:1", [1] * 16, " ") + "\n"
    assert form_of(text.encode()) is PLAIN
    assert [each.name for each in interfaces(text)] == ["eth0:1"]


@pytest.fixture
def source(tmp_path: Path) -> TokenSource:
    (tmp_path / "proc/1/net").mkdir(parents=True)
    write(tmp_path, line("lo", [1] * 16), line("eth0", [99_999_990] * 16))
    [source] = netdev.sources(Roots(tmp_path / "proc", tmp_path / "sys"))
    source.open()
    assert isinstance(source, TokenSource)
    return source


def write(root: Path, *lines: str) -> None:
    (root / "proc/1/net/dev").write_text(HEADER + "\n".join(lines) + "\n")


def received(source: TokenSource) -> int | None:
    for _ in range(2):
        try:
            row = source.read()
        except LayoutChanged:
            continue
        return dict(zip([each.label for each in source.channels], row, strict=True))[
            "network.nic.rx_bytes{eth0}"
        ]
    raise AssertionError("the layout changes at each reading")


def test_an_interface_is_read_before_and_after_its_ninth_digit(
    source: TokenSource, tmp_path: Path
) -> None:
    for count in (12, 99_999_995, 100_000_000, 7):
        write(tmp_path, line("lo", [1] * 16), line("eth0", [count] * 16))
        assert received(source) == count
        assert not source.degraded


@pytest.mark.skipif(load().library is None, reason=load().unavailable or "loaded")
def test_the_scanner_in_c_reads_the_same(source: TokenSource, tmp_path: Path) -> None:
    from support.native_scan_pass import start_scan_pass

    with start_scan_pass(scans_of(source) or ()) as runner:
        for tick, count in enumerate((99_999_995, 100_000_000, 99_999_999_999)):
            write(tmp_path, line("lo", [1] * 16), line("eth0", [count] * 16))
            assert runner.tick(tick) == list(source.read())
            assert runner.flags == b"\0"


def test_a_line_with_other_columns_is_stated(source: TokenSource, tmp_path: Path) -> None:
    write(tmp_path, line("lo", [1] * 16), line("eth0", [5] * 16), line("odd", [1] * 15))
    assert received(source) == 5
    [phrase] = source.degraded
    assert phrase.startswith("netdev: numbers are missing, because 1 line of")
    assert "odd" in phrase
