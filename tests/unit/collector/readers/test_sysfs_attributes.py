"""Device files kept open: files that appear, disappear, are invalid or stay constant."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.readers.sysfs_attributes import (
    AttributeFile,
    AttributeSource,
    Snapshot,
    SnapshotSource,
    entries,
    in_lane,
    single_column,
)
from reveal_collector.readers.textfile import channel
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane


def counters(folder: Path, quiet_period: int = 1) -> AttributeSource:
    def files() -> Iterator[AttributeFile]:
        for name in entries(folder)[0]:
            yield single_column(folder / name, channel("network.nic.rx_errs", name))

    absent = Unsupported("nothing there")
    return AttributeSource("test", Lane.SLOW, files, lambda: entries(folder), absent, quiet_period)


def write(folder: Path, **numbers: object) -> None:
    for name, number in numbers.items():
        (folder / name).write_text(f"{number}\n")


def test_columns_are_in_the_lane_of_the_source(tmp_path: Path) -> None:
    write(tmp_path, a=1, b=2)
    source = counters(tmp_path)
    source.open()
    assert [each.lane for each in source.channels] == [Lane.SLOW] * 2
    assert list(source.read()) == [1, 2]
    source.close()


def test_a_missing_device_has_a_reason(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="nothing there"):
        counters(tmp_path).open()


def test_added_and_removed_devices_do_not_affect_others(tmp_path: Path) -> None:
    write(tmp_path, a=1, b=2)
    source = counters(tmp_path)
    source.open()
    write(tmp_path, c=3)
    with pytest.raises(LayoutChanged):
        source.read()
    assert list(source.read()) == [1, 2, 3]
    (tmp_path / "a").unlink()
    with pytest.raises(LayoutChanged):
        source.read()
    assert [each.instance for each in source.channels] == ["b", "c"]
    assert list(source.read()) == [2, 3]
    source.close()


def test_garbled_text_costs_its_own_column(tmp_path: Path) -> None:
    write(tmp_path, a=1, b=2)
    source = counters(tmp_path)
    source.open()
    write(tmp_path, a="no number")
    assert list(source.read()) == [None, 2]
    write(tmp_path, a=7)
    assert list(source.read()) == [7, 2]
    source.close()


def test_quiet_files_are_read_in_turn_until_they_change(tmp_path: Path) -> None:
    write(tmp_path, a=0, b=0)
    source = counters(tmp_path, quiet_period=4)
    source.open()
    write(tmp_path, a=5, b=6)
    rows = [tuple(source.read()) for _ in range(5)]
    assert rows[-1] == (5, 6)
    assert {turn for turn, _ in rows} == {0, 5}  # each at a turn of its own
    write(tmp_path, a=8)
    assert next(iter(source.read())) == 8  # it moved lately: read each time again
    source.close()


def test_every_quiet_file_is_read_within_its_period(tmp_path: Path) -> None:
    names = [f"f{number}" for number in range(7)]
    write(tmp_path, **dict.fromkeys(names, 0))
    source = counters(tmp_path, quiet_period=3)
    source.open()
    write(tmp_path, **dict.fromkeys(names, 1))
    for _ in range(3):
        last = list(source.read())
    assert last == [1] * 7
    source.close()


def test_a_file_that_moves_is_read_each_time_until_it_rests(tmp_path: Path) -> None:
    write(tmp_path, a=0)
    source = counters(tmp_path, quiet_period=3)
    source.open()
    write(tmp_path, a=1)
    while next(iter(source.read())) != 1:
        pass
    for number in range(2, 9):
        write(tmp_path, a=number)
        assert list(source.read()) == [number]
    source.close()


def ip(*words: str) -> None:
    subprocess.run(["ip", "link", *words], check=True, capture_output=True)


@pytest.fixture
def interface() -> Iterator[str]:
    name = "rvtest0"
    if os.geteuid():
        pytest.skip("making an interface needs root")
    try:
        ip("add", name, "mtu", "1400", "type", "dummy")
    except (OSError, subprocess.CalledProcessError):
        try:
            ip("add", name, "mtu", "1400", "type", "veth", "peer", "name", "rvtest1")
        except (OSError, subprocess.CalledProcessError) as error:
            pytest.skip(f"no interface can be made here: {error}")
    yield name
    subprocess.run(["ip", "link", "del", name], check=False, capture_output=True)


@pytest.mark.root
def test_a_recreated_device_is_not_mistaken_for_the_old_device(interface: str) -> None:
    path = Path("/sys/class/net") / interface / "mtu"

    def files() -> list[AttributeFile]:
        return [single_column(path, channel("network.nic.mtu", interface))]

    source = AttributeSource("test", Lane.SLOW, files, lambda: "the same", Unsupported("gone"))
    source.open()
    assert list(source.read()) == [1400]
    ip("del", interface)
    ip("add", interface, "mtu", "1300", "type", "veth", "peer", "name", "rvtest1")
    assert list(source.read()) == [None]  # ENODEV: the kept descriptor is of the old device
    assert list(source.read()) == [1300]
    source.close()


def test_files_with_numbers_in_another_form_are_stated_as_long_as_they_are_there(
    tmp_path: Path,
) -> None:
    write(tmp_path, a=1, b="0x1f", c="<unknown>")
    source = counters(tmp_path)
    source.open()
    assert list(source.read()) == [1, None, None]
    assert source.degraded == (
        f"test: numbers are missing, because 1 file cannot be read: {tmp_path}/b",
    )
    write(tmp_path, b=2)
    assert list(source.read()) == [1, 2, None]
    assert not source.degraded
    source.close()


def test_a_snapshot_follows_what_there_is() -> None:
    there: dict[Channel, int | None] = {channel("memory.swap.used", "a"): 1}
    source = SnapshotSource("test", lambda: Snapshot(dict(there)))
    source.open()
    assert list(source.read()) == [1]
    there[channel("memory.swap.used", "b")] = None
    with pytest.raises(LayoutChanged):
        source.read()
    assert list(source.read()) == [1, None]
    assert {each.lane for each in source.channels} == {Lane.RARE}


def test_a_snapshot_of_nothing_waits_by_default() -> None:
    waiting = SnapshotSource("test", lambda: Snapshot({}))
    waiting.open()
    assert waiting.channels == ()
    with pytest.raises(Unsupported, match="nothing"):
        SnapshotSource("test", lambda: Snapshot({}), Unsupported("nothing")).open()


def test_a_snapshot_of_a_missing_file_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "swaps"
    source = SnapshotSource("test", lambda: Snapshot({}, [path.read_text()]))
    with pytest.raises(Unsupported, match="swaps"):
        source.open()


def test_channels_of_another_lane_move_to_the_lane_of_the_source() -> None:
    given = channel("network.infiniband.rx_bytes", "mlx5_0/1", 4.0)
    (moved,) = in_lane([given], Lane.SLOW)
    assert (moved.lane, moved.scale, moved.kind) == (Lane.SLOW, 4.0, given.kind)
