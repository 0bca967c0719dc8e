"""Lines of interrupts that are sums of others, or have the same name."""

from __future__ import annotations

from array import array
from pathlib import Path

import pytest

from reveal_collector.native import load
from reveal_collector.readers.plan import scans_of
from reveal_collector.readers.raw_slice import gather
from reveal_collector.readers.source import Roots, Source
from reveal_collector.sources import interrupts

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


def opened(tmp_path: Path, text: str) -> Source:
    (tmp_path / "interrupts").write_text(text)
    (source,) = interrupts.sources(Roots(tmp_path, tmp_path, tmp_path))
    source.open()
    return source


def read(source: Source) -> dict[str, int | None]:
    return {
        channel.label: value for channel, value in zip(source.channels, source.read(), strict=True)
    }


def test_a_line_that_is_the_sum_of_others_does_not_add_to_the_cpus(tmp_path: Path) -> None:
    source = opened(tmp_path, S390)
    found = read(source)
    assert found["cpu.interrupts.irq{EXT}"] == 144
    assert (found["cpu.interrupts{0}"], found["cpu.interrupts{1}"]) == (120, 37)
    (tmp_path / "interrupts").write_text(S390.replace(" 111 ", " 121 ").replace(" 100 ", " 110 "))
    found = read(source)
    assert found["cpu.interrupts.irq{EXT}"] == 154
    assert (found["cpu.interrupts{0}"], found["cpu.interrupts{1}"]) == (130, 37)


def test_lines_with_the_same_name_are_added(tmp_path: Path) -> None:
    found = read(opened(tmp_path, POWER))
    assert found["cpu.interrupts.irq{LOC}"] == 131
    assert (found["cpu.interrupts{0}"], found["cpu.interrupts{1}"]) == (120, 11)


@pytest.mark.skipif(load().library is None, reason=load().unavailable or "loaded")
@pytest.mark.parametrize("text", [S390, POWER], ids=["s390", "power"])
def test_the_scanner_gives_the_same_row(text: str, tmp_path: Path) -> None:
    from support.native_scan_pass import start_scan_pass

    source = opened(tmp_path, text)
    with start_scan_pass(scans_of(source) or ()) as runner:
        for tick, changed in enumerate((text, text.replace(" 100 ", " 105 "))):
            (tmp_path / "interrupts").write_text(changed)
            expected = array("q")
            gather(expected, source.read())
            assert runner.tick(tick) == list(expected)
        assert runner.flags == b"\0"
