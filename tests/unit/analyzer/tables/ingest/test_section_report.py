"""Reports in sections: what belongs to a time, to a device, and to a day."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.tables.ingest.open import TableFileError
from reveal_analyzer.tables.ingest.reader import Dataset, ReadOptions, read
from reveal_analyzer.tables.ingest.time_texts import DayOrder
from support.table_files import Write, lone

SECOND = 1_000_000_000
EPOCH = 1_795_255_200
LINUX = "Linux 6.1.0 (node17) \t{} \t_x86_64_\t(2 CPU)\n\n"


def columns(data: Dataset) -> dict[str, list[float]]:
    table = lone(data)
    return dict(zip(table.names, table.values.T.tolist(), strict=True))


def test_sections_of_the_same_time_are_a_sample(write: Write) -> None:
    second = (
        "10:00:0{0} AM     CPU     %user     %idle\n10:00:0{1} AM     all      {1}.00     90.00\n\n"
        "10:00:0{0} AM     IFACE   rxpck/s   txpck/s\n10:00:0{1} AM      lo      7.00      {1}.00\n"
        "10:00:0{1} AM    eth0      8.00      9.00\n\n"
    )
    data = read(
        write(LINUX.format("11/21/2026") + "".join(second.format(n, n + 1) for n in range(4)))
    )
    assert columns(data) == {
        "%user": [1, 2, 3, 4], "%idle": [90] * 4,
        "rxpck/s{lo}": [7] * 4, "txpck/s{lo}": [1, 2, 3, 4],
        "rxpck/s{eth0}": [8] * 4, "txpck/s{eth0}": [9] * 4,
    }  # fmt: skip
    assert data.nodes[0].node == "node17"
    assert data.clock.show(int(data.times_ns[0])) == "2026-11-21T10:00:01Z"


def test_a_clock_goes_on_after_midnight_in_each_section(write: Write) -> None:
    def section(names: str, value: int) -> str:
        rows = "".join(
            f"{clock}     {value}.00\n" for clock in ("23:59:58", "23:59:59", "00:00:00")
        )
        return f"23:59:57     {names}\n{rows}\n"

    text = LINUX.format("2026-11-21") + section("%user", 1) + section("kbmemfree", 2)
    data = read(write(text))
    assert np.diff(data.times_ns).tolist() == [SECOND, SECOND]
    assert data.clock.show(int(data.times_ns[-1])) == "2026-11-22T00:00:00Z"
    assert columns(data) == {"%user": [1] * 3, "kbmemfree": [2] * 3}


@pytest.mark.parametrize(
    ("day", "expected"), [("11/21/26", "2026-11-21"), ("21.11.2026", "2026-11-21"),
                          ("21/11/26", "2026-11-21"), ("06/06/26", "2026-06-06")],
)  # fmt: skip
def test_a_day_that_exists_in_a_single_order_is_read(write: Write, day: str, expected: str) -> None:
    rows = "".join(f"10:00:0{n}     {n}.00\n" for n in range(5))
    data = read(write(f"{LINUX.format(day)}09:59:59     %user\n{rows}"))
    assert data.clock.show(int(data.times_ns[0])).startswith(expected)


def test_a_day_in_doubt_needs_a_flag(write: Write) -> None:
    rows = "".join(f"10:00:0{n}     {n}.00\n" for n in range(5))
    path = write(f"{LINUX.format('05/06/26')}09:59:59     %user\n{rows}")
    with pytest.raises(TableFileError, match="--day-first or --month-first"):
        read(path)
    data = read(path, ReadOptions(order=DayOrder.DAY_FIRST))
    assert data.clock.show(int(data.times_ns[0])).startswith("2026-06-05")


def test_samples_without_times_begin_with_their_first_section(write: Write) -> None:
    sample = (
        "avg-cpu:  %user   %idle\n           {0}.00   90.00\n\n"
        "Device  tps\nsda  {0}.00\nsdb  2.00\n\n"
    )
    data = read(write(LINUX.format("11/21/26") + "".join(sample.format(n) for n in range(5))))
    assert columns(data)["%user"] == [0, 1, 2, 3, 4]
    assert columns(data)["tps{sda}"] == [0, 1, 2, 3, 4]
    assert any("`iostat -t` writes the times" in note for note in data.notes)


def test_lines_without_a_row_are_counted_or_refused(write: Write) -> None:
    rows = "".join(f"10:00:{n:02d}     {n}.00\n" for n in range(40))
    text = f"{LINUX.format('2026-11-21')}09:59:59     %user\n{rows}"
    restart = "10:00:41       LINUX RESTART\t(2 CPU)\n"
    assert "skipped 1 line without a row" in read(write(text + restart)).notes
    with pytest.raises(TableFileError, match="3 of 43 lines are no rows of sar"):
        read(write(text + 3 * restart))


def test_a_name_that_repeats_in_a_section_is_a_column_of_its_own(write: Write) -> None:
    rows = "".join(f" {EPOCH + n}  1000  42  {n}.50  {n}.25  train\n" for n in range(4))
    header = "# Time        UID       PID   PID    %usr  Command\n"
    data = read(write(LINUX.format("11/21/2026") + header + rows))
    assert columns(data) == {"PID#2": [0.5, 1.5, 2.5, 3.5], "%usr": [0.25, 1.25, 2.25, 3.25]}


def test_a_header_without_names_is_refused(write: Write) -> None:
    text = "avg-cpu:  %user   %idle\n  1.00  99.00\n\navg-cpu: \n  1.00  99.00\n"
    with pytest.raises(TableFileError, match="1 of 2 lines are no rows of iostat"):
        read(write(text))


def test_rows_that_replace_others_are_refused(write: Write) -> None:
    rows = "".join(f"10:00:{n:02d}     {n}.00\n" for n in range(20))
    text = f"{LINUX.format('2026-11-21')}09:59:59     %user\n{rows}"
    with pytest.raises(TableFileError, match="20 values have the time and the name of another"):
        read(write(text + rows))


def test_rows_of_several_hosts_are_refused(write: Write) -> None:
    head = "# hostname;interval;timestamp;%user\n"
    rows = "".join(f"n{n % 2};1;2026-11-21 10:00:{n:02d} UTC;5.0\n" for n in range(20))
    with pytest.raises(TableFileError, match="rows of 2 hosts"):
        read(write(head + rows))


def test_a_report_without_rows_is_refused(write: Write) -> None:
    with pytest.raises(TableFileError, match="holds no rows of sar"):
        read(write(f"{LINUX.format('2026-11-21')}09:59:59     %user     %idle\n"))
