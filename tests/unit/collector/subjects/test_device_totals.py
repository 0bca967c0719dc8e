"""I/O of a cgroup: devices come and go, and each request counts once."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.native import load
from reveal_collector.readers.plan import FileScan, SumPlan, TextForm
from reveal_collector.readers.raw_slice import MISSING
from reveal_collector.readers.reference_reader import Mismatch
from reveal_collector.subjects.device_totals import DeviceTotals
from support.property_tests import examples

IO_STAT = SumPlan((b"rbytes", b"wbytes"), TextForm(blanks=b"="))
BLKIO = SumPlan((b"Read", b"Write"))


def nothing_repeated(number: str) -> bool:
    return False


def text(devices: Mapping[str, int | None]) -> bytes:
    """None: a line that is cut off after the name of its device."""
    return joined(devices, "\n")


def joined(devices: Mapping[str, int | None], end: str) -> bytes:
    """Return the text with this end of the lines without numbers."""
    return "".join(
        f"{device} " + (end if read is None else f"rbytes={read} wbytes=5\n")
        for device, read in devices.items()
    ).encode()


def test_a_line_without_numbers_changes_nothing() -> None:
    totals = DeviceTotals(IO_STAT, nothing_repeated)
    assert list(totals(text({"259:0": 5_000, "252:0": 900_000_000}))) == [900_005_000, 10]
    assert list(totals(text({"259:0": 5_004, "252:0": None}))) == [900_005_004, 10]
    assert list(totals(text({"259:0": 5_008, "252:0": 900_000_001}))) == [900_005_009, 10]


def test_the_first_line_of_a_device_is_its_first_io() -> None:
    totals = DeviceTotals(IO_STAT, nothing_repeated)
    assert list(totals(b"")) == [0, 0]
    assert list(totals(text({"8:0": 4096}))) == [4096, 5]
    assert list(totals(text({"8:16": 100, "8:0": 4096}))) == [4196, 10]


def test_a_device_that_starts_again_does_not_hide_the_others() -> None:
    totals = DeviceTotals(IO_STAT, nothing_repeated)
    totals(text({"8:0": 4096, "8:16": 10}))
    assert list(totals(text({"8:0": 7, "8:16": 30}))) == [4126, 10]
    assert list(totals(text({"8:0": 9, "8:16": 30}))) == [4128, 10]


def test_a_request_through_a_mapped_device_counts_once() -> None:
    totals = DeviceTotals(IO_STAT, lambda number: number == "252:0")
    assert list(totals(text({"252:0": 1_449_984, "259:0": 1_449_984}))) == [1_449_984, 5]
    assert list(totals(text({"252:0": 1_450_000, "259:0": 1_450_000}))) == [1_450_000, 5]


def test_the_paths_of_nvme_multipath_count_once() -> None:
    totals = DeviceTotals(IO_STAT, nothing_repeated)
    assert list(totals(text({"(unknown)": 4096, "259:13": 4096}))) == [4096, 5]


def test_rows_of_version_1_count_once() -> None:
    totals = DeviceTotals(BLKIO, lambda number: number == "253:1")
    lines = b"8:16 Read 7\n8:16 Write 2\n8:16 Total 9\n253:1 Read 7\n253:1 Write 2\nTotal 18\n"
    assert list(totals(lines)) == [7, 2]


ODD_LINES = [
    b"8:0 rbytes=", b"8:0 rbytes=x wbytes=1", b"8:0 rbytes", b"8:0 rbytes=-9223372036854775808",
    b"8:0 rbytes=99999999999999999999", b"sda rbytes=7 wbytes=1", b"rbytes=7 wbytes=1",
    b"8:0 rbytes=1\x1b[2J wbytes=1", b"8:0\xff rbytes=1",
]  # fmt: skip


@pytest.mark.parametrize("odd", ODD_LINES)
def test_an_odd_line_is_noted_and_the_others_count(odd: bytes) -> None:
    totals = DeviceTotals(IO_STAT, nothing_repeated)
    totals(text({"8:0": 10, "8:16": 1}))
    for read in (2, 3):
        assert list(totals(odd + b"\n" + text({"8:16": read}))) == [10 + read, 10]
        assert len(totals.unfit) == 1
        totals.plan(odd + b"\n" + text({"8:16": read}), (0, 1))
    assert list(totals(text({"8:0": 10, "8:16": 5}))) == [15, 10]
    assert not totals.unfit


def test_without_any_line_that_fits_the_sums_are_unknown() -> None:
    totals = DeviceTotals(IO_STAT, nothing_repeated)
    totals(text({"8:0": 10}))
    for broken in (b"8:0 rbytes=", b"8:0 rbytes=x wbytes=1\n", b"8:0 rbytes\n"):
        with pytest.raises(Mismatch):
            totals(broken)
        assert totals.unfit == (broken.decode().strip(),)
    assert list(totals(text({"8:0": 12}))) == [12, 5]


def test_odd_lines_from_the_start_hide_no_device() -> None:
    totals = DeviceTotals(IO_STAT, nothing_repeated)
    assert list(totals(b"8:0 rbytes=\n" + text({"8:16": 7}))) == [7, 5]
    assert totals.unfit == ("8:0 rbytes=",)


def test_a_device_without_numbers_may_begin_the_line_of_the_next() -> None:
    totals = DeviceTotals(IO_STAT, lambda number: number.startswith("7:"))
    assert list(totals(b"7:7 7:6 8:16 " + text({"8:0": 900}) + b"8:32 ")) == [900, 5]
    assert list(totals(b"7:7 rbytes=5 wbytes=5\n7:6 8:16 " + text({"8:0": 901}))) == [901, 5]
    assert list(totals(b"7:7 7:6 8:16 rbytes=2 wbytes=1\n" + text({"8:0": 902}))) == [904, 6]
    assert not totals.unfit


DEVICES = ("8:0", "8:16", "253:0")
SECONDS = st.lists(
    st.tuples(*[st.tuples(st.integers(0, 1000), st.sampled_from(["", "off", "torn"]))] * 3),
    min_size=2, max_size=10,
)  # fmt: skip
ENDS = st.sampled_from(["\n", ""])  # of a line without numbers; Linux 5.15 has none
Seconds = list[tuple[tuple[int, str], ...]]


def texts_and_totals(seconds: Seconds, end: str = "\n") -> list[tuple[bytes, int]]:
    """The text of each second, and what all devices counted until each was last read."""
    counted, read, found = [10**9, 5, 0], [0, 0, 0], []
    for second in seconds:
        lines: dict[str, int | None] = {}
        for index, (step, state) in enumerate(second):
            counted[index] += step
            if state != "off":
                lines[DEVICES[index]] = None if state else counted[index]
            if not state:
                read[index] = counted[index]
        found.append((joined(lines, end), sum(read)))
    return found


@examples(200)
@given(seconds=SECONDS, end=ENDS)
def test_sums_are_what_every_device_counted_until_it_was_last_read(
    seconds: Seconds, end: str
) -> None:
    totals = DeviceTotals(IO_STAT, nothing_repeated)
    for data, expected in texts_and_totals(seconds, end):
        assert totals(data)[0] == expected


@pytest.mark.skipif(load().library is None, reason=load().unavailable or "loaded")
@examples(200)
@given(seconds=SECONDS, end=ENDS, by_scanner=st.lists(st.booleans(), min_size=10, max_size=10))
def test_a_change_of_the_reader_adds_nothing(
    tmp_path_factory: pytest.TempPathFactory, seconds: Seconds, end: str, by_scanner: list[bool]
) -> None:
    """The scanner reads some seconds; where its plan fails, and else, Python does.

    An increment is never more than the devices counted since their last reading.
    """
    from support.native_scan_pass import start_scan_pass

    path = tmp_path_factory.mktemp("cgroup") / "io.stat"
    totals, runner, data = DeviceTotals(IO_STAT, nothing_repeated), None, b""
    rows: list[tuple[int, int]] = []
    with path.open("w+b") as file:
        for number, (data, expected) in enumerate(texts_and_totals(seconds, end)):
            path.write_bytes(data)
            row = runner.tick(number) if runner is not None else [MISSING]
            if row[0] == MISSING or not by_scanner[number]:
                row = [value or 0 for value in totals(data)]
                if runner is not None:
                    runner.__exit__()
                plan = totals.plan(data, (0, 1))
                runner = start_scan_pass([FileScan(plan, file.fileno(), 4096)])
            rows.append((row[0], expected))
    if runner is not None:
        runner.__exit__()
    for (before, known_before), (after, known) in pairwise(rows):
        assert after - before <= known - known_before
