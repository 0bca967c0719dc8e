"""Which block devices pass their requests on to others."""

from __future__ import annotations

from pathlib import Path

from reveal_collector.devices.block_devices import is_stacked


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
    assert is_stacked(tmp_path, "252:0")
    assert not is_stacked(tmp_path, "259:0")
    assert not is_stacked(tmp_path, "8:0")
    assert not is_stacked(tmp_path, "")


def test_a_loop_device_repeats_the_disk_of_its_file(tmp_path: Path) -> None:
    add_disk(tmp_path, "loop0", "7:0")
    add_disk(tmp_path, "sda", "8:7")
    assert is_stacked(tmp_path, "7:0")
    assert is_stacked(tmp_path, "7:1")  # a recording without it
    assert not is_stacked(tmp_path, "8:7")
    assert not is_stacked(tmp_path, "70:7")


def test_recorded_hosts_may_have_no_links_by_number(tmp_path: Path) -> None:
    add_disk(tmp_path, "sdb", "8:16", linked=False)
    add_disk(tmp_path, "md0", "9:0", below="sdb", linked=False)
    assert is_stacked(tmp_path, "9:0")
    assert not is_stacked(tmp_path, "8:16")
