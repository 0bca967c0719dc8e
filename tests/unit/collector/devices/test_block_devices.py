"""Which block devices pass their requests on to others."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_collector.devices.block_devices import is_repeated


def add_disk(sys: Path, name: str, number: str, below: str = "", linked: bool = True) -> None:
    folder = sys / "block" / name
    (folder / "slaves").mkdir(parents=True)
    (folder / "dev").write_text(f"{number}\n")
    if below:
        (folder / "slaves" / below).touch()
    if linked:
        (sys / "dev/block").mkdir(parents=True, exist_ok=True)
        (sys / "dev/block" / number).symlink_to(folder)


def test_a_mapped_device_has_others_below_it(tmp_path: Path) -> None:
    add_disk(tmp_path, "nvme0n1", "259:0")
    add_disk(tmp_path, "dm-0", "252:0", below="nvme0n1")
    assert is_repeated(tmp_path, "252:0")
    assert not is_repeated(tmp_path, "259:0")
    assert not is_repeated(tmp_path, "8:0")
    assert not is_repeated(tmp_path, "")


def test_a_loop_device_repeats_the_disk_of_its_file(tmp_path: Path) -> None:
    add_disk(tmp_path, "loop0", "7:0")
    add_disk(tmp_path, "sda", "8:7")
    assert is_repeated(tmp_path, "7:0")
    assert is_repeated(tmp_path, "7:1")  # a recording without it
    assert not is_repeated(tmp_path, "8:7")
    assert not is_repeated(tmp_path, "70:7")


def test_recorded_hosts_may_have_no_links_by_number(tmp_path: Path) -> None:
    add_disk(tmp_path, "sdb", "8:16", linked=False)
    add_disk(tmp_path, "md0", "9:0", below="sdb", linked=False)
    assert is_repeated(tmp_path, "9:0")
    assert not is_repeated(tmp_path, "8:16")


def add_array(sys: Path, name: str, number: str, level: str, *parts: str) -> None:
    """Add an md array of disks or partitions that exist: ``sda``, or ``sda/sda1``."""
    add_disk(sys, name, number)
    (sys / "block" / name / "md").mkdir()
    (sys / "block" / name / "md/level").write_text(f"{level}\n")
    for part in parts:
        use(sys, name, part)


def use(sys: Path, above: str, part: str) -> None:
    (sys / "block" / above / "slaves" / part.rpartition("/")[2]).touch()
    folder = sys / "block" / part
    if "/" in part:
        folder.mkdir(exist_ok=True)
        (folder / "partition").write_text("1\n")
    (folder / "holders").mkdir(exist_ok=True)
    (folder / "holders" / above).touch()


@pytest.mark.parametrize("level", ["raid4", "raid5", "raid6"])
def test_an_array_with_parity_counts_and_its_disks_do_not(tmp_path: Path, level: str) -> None:
    """Its writes come from a thread of the kernel, not from who writes."""
    for letter, number in zip("abc", ("8:0", "8:16", "8:32"), strict=True):
        add_disk(tmp_path, f"sd{letter}", number)
    add_array(tmp_path, "md0", "9:0", level, "sda", "sdb/sdb1", "sdc")
    add_disk(tmp_path, "dm-0", "252:0")
    use(tmp_path, "dm-0", "md0")
    found = {each: is_repeated(tmp_path, each) for each in ("252:0", "9:0", "8:0", "8:16", "8:32")}
    assert found == {"252:0": True, "9:0": False, "8:0": True, "8:16": True, "8:32": True}


@pytest.mark.parametrize("level", ["raid0", "raid1", "raid10", "linear"])
def test_other_arrays_pass_requests_on_with_their_owner(tmp_path: Path, level: str) -> None:
    add_disk(tmp_path, "sda", "8:0")
    add_array(tmp_path, "md0", "9:0", level, "sda")
    assert (is_repeated(tmp_path, "9:0"), is_repeated(tmp_path, "8:0")) == (True, False)


def test_a_disk_that_is_used_otherwise_too_counts(tmp_path: Path) -> None:
    """Then the writes of the array are not known, as its reads would count twice."""
    add_disk(tmp_path, "sda", "8:0")
    add_disk(tmp_path, "sdb", "8:16")
    add_array(tmp_path, "md0", "9:0", "raid5", "sda/sda2", "sdb")
    other = tmp_path / "block/sda/sda1"
    other.mkdir()
    (other / "partition").write_text("1\n")
    assert is_repeated(tmp_path, "9:0")
    assert not is_repeated(tmp_path, "8:0")


def test_encrypted_disks_below_an_array_are_its_disks(tmp_path: Path) -> None:
    add_disk(tmp_path, "sda", "8:0")
    add_disk(tmp_path, "dm-1", "252:1")
    use(tmp_path, "dm-1", "sda")
    add_array(tmp_path, "md0", "9:0", "raid6", "dm-1")
    add_array(tmp_path, "md1", "9:1", "raid0", "md0")
    found = {each: is_repeated(tmp_path, each) for each in ("9:1", "9:0", "252:1", "8:0")}
    assert found == {"9:1": True, "9:0": False, "252:1": True, "8:0": True}


def test_devices_that_hold_each_other_end(tmp_path: Path) -> None:
    add_disk(tmp_path, "sda", "8:0")
    for name in ("a", "b"):
        (tmp_path / "block" / name / "holders").mkdir(parents=True)
    (tmp_path / "block/a/holders/b").touch()
    (tmp_path / "block/b/holders/a").touch()
    use(tmp_path, "sda", "sda")
    (tmp_path / "block/sda/slaves/sda").unlink()
    (tmp_path / "block/sda/holders/a").touch()
    assert not is_repeated(tmp_path, "8:0")
