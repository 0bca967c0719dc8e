"""Lines of ``/proc/interrupts`` as architectures print them; columns have a width, not a blank."""

from __future__ import annotations

from array import array
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.kernel_interfaces.errors import LayoutChanged
from reveal_collector.native import load
from reveal_collector.readers.plan import scans_of
from reveal_collector.readers.raw_slice import gather
from reveal_collector.readers.source import Roots, Source
from reveal_collector.sources import interrupts
from reveal_collector.sources.interrupts import Interrupts, parse, sources

# as on an s390: EXT and IOS are the sums of the lines that name them
S390 = """\
           CPU0       CPU1
EXT:        111         33
IOS:          8          4
CLK:        100         30   [EXT] Clock Comparator
EXC:         11          3   [EXT] External Call
DAS:          8          4   [IOS] DASD
NMI:          1          0   [NMI] Machine Check
"""
# as on POWER: two kinds of timer interrupts
POWER = """\
           CPU0       CPU1
LOC:        100         10   Local timer interrupts for timer event device
LOC:         20          1   Local timer interrupts for others
"""
COUNTS = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=8)


def arm(counts: list[int], name: str = "IPI0", rest: str = "      Rescheduling interrupts") -> str:
    """A line of arch_show_interrupts of Arm: ``%*s%u:`` and ``%10u `` for each CPU."""
    return f"{name}:" + "".join(f"{count:10d} " for count in counts) + rest


@given(COUNTS)
def test_a_count_that_fills_its_width_follows_the_colon(counts: list[int]) -> None:
    row = parse(arm(counts).encode())
    assert (row.name, row.counts) == ("IPI0", counts)


@given(
    COUNTS, st.sampled_from(["", "   GICv3  27 Level     arch_timer", " PCI-MSI 81920-edge eth0"])
)
def test_a_blank_before_every_count_gives_the_same(counts: list[int], rest: str) -> None:
    row = parse((" 10:" + "".join(f" {count:10d}" for count in counts) + rest).encode())
    assert row.counts == counts


@pytest.mark.parametrize(
    ("line", "name", "counts"),
    [
        (b"IPI0:2768808080 2844211768       Rescheduling interrupts", "IPI0", 2),
        (b"IPI0: 2768808080 2844211768       Rescheduling interrupts", "IPI0", 2),
        (b"I/O:    1831143    2098595 ", "I/O", 2),
        (b"Err:          0", "Err", 1),
        (b"FIQ:              usb_fiq", "", 0),
        (b"IPI0:12ab 3 Rescheduling interrupts", "", 0),
    ],
)
def test_lines_of_other_architectures(line: bytes, name: str, counts: int) -> None:
    row = parse(line)
    assert (row.name, len(row.counts)) == (name, counts)


class Host:
    """The interrupts of a host of two CPUs."""

    def __init__(self, proc: Path) -> None:
        self._file = proc / "interrupts"

    def write(self, *lines: str) -> None:
        self._file.write_text("\n".join(["           CPU0       CPU1       ", *lines, ""]))

    def open(self) -> Interrupts:
        [source] = sources(Roots(self._file.parent, self._file.parent / "sys"))
        source.open()
        assert isinstance(source, Interrupts)
        return source


def values(source: Interrupts) -> dict[str, int | None]:
    return dict(zip([each.label for each in source.channels], source.read(), strict=True))


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def test_a_count_gets_its_tenth_digit_while_it_is_read(host: Host) -> None:
    host.write(arm([999_999_990, 50]), "Err:          0")
    source = host.open()
    for count in (999_999_995, 1_000_000_000, 2_844_211_768):
        host.write(arm([count, 50]), "Err:          0")
        found = values(source)
        assert found["cpu.interrupts.irq{IPI0}"] == count + 50
        assert found["cpu.interrupts{0}"] == count
    source.close()


@pytest.mark.skipif(load().library is None, reason=load().unavailable or "loaded")
@given(st.lists(st.tuples(*[st.integers(0, 2**32 - 1)] * 2), min_size=2, max_size=6))
def test_the_scanner_in_c_reads_the_same_widths(
    tmp_path_factory: pytest.TempPathFactory, readings: list[tuple[int, int]]
) -> None:
    from support.native_scan_pass import start_scan_pass

    host = Host(tmp_path_factory.mktemp("proc"))
    host.write(arm([*readings[0]]), "Err:          0")
    source = host.open()
    with start_scan_pass(scans_of(source) or ()) as runner:
        for number, reading in enumerate(readings):
            host.write(arm([*reading]), "Err:          0")
            assert runner.tick(number) == list(source.read())
            assert runner.flags == b"\0"
    source.close()


def test_a_line_that_cannot_be_read_is_stated(host: Host) -> None:
    host.write(arm([1, 2]), "FIQ:              usb_fiq")
    source = host.open()
    assert not source.degraded
    host.write(arm([1, 2]), "FIQ:              usb_fiq", "IPI 7:  3  4  Odd interrupts")
    with pytest.raises(LayoutChanged):
        source.read()
    [phrase] = source.degraded
    assert "interrupts: numbers are missing, because 1 line of" in phrase
    assert "IPI 7:  3  4" in phrase
    source.close()


def opened_with(tmp_path: Path, text: str) -> Source:
    (tmp_path / "interrupts").write_text(text)
    (source,) = interrupts.sources(Roots(tmp_path, tmp_path, tmp_path))
    source.open()
    return source


def read(source: Source) -> dict[str, int | None]:
    return {
        channel.label: value for channel, value in zip(source.channels, source.read(), strict=True)
    }


def test_a_line_that_is_the_sum_of_others_does_not_add_to_the_cpus(tmp_path: Path) -> None:
    source = opened_with(tmp_path, S390)
    found = read(source)
    assert found["cpu.interrupts.irq{EXT}"] == 144
    assert (found["cpu.interrupts{0}"], found["cpu.interrupts{1}"]) == (120, 37)
    (tmp_path / "interrupts").write_text(S390.replace(" 111 ", " 121 ").replace(" 100 ", " 110 "))
    found = read(source)
    assert found["cpu.interrupts.irq{EXT}"] == 154
    assert (found["cpu.interrupts{0}"], found["cpu.interrupts{1}"]) == (130, 37)


def test_lines_with_the_same_name_are_added(tmp_path: Path) -> None:
    found = read(opened_with(tmp_path, POWER))
    assert found["cpu.interrupts.irq{LOC}"] == 131
    assert (found["cpu.interrupts{0}"], found["cpu.interrupts{1}"]) == (120, 11)


@pytest.mark.skipif(load().library is None, reason=load().unavailable or "loaded")
@pytest.mark.parametrize("text", [S390, POWER], ids=["s390", "power"])
def test_the_scanner_gives_the_same_row(text: str, tmp_path: Path) -> None:
    from support.native_scan_pass import start_scan_pass

    source = opened_with(tmp_path, text)
    with start_scan_pass(scans_of(source) or ()) as runner:
        for tick, changed in enumerate((text, text.replace(" 100 ", " 105 "))):
            (tmp_path / "interrupts").write_text(changed)
            expected = array("q")
            gather(expected, source.read())
            assert runner.tick(tick) == list(expected)
        assert runner.flags == b"\0"
