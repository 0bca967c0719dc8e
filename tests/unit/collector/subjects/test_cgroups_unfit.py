"""Lines of devices in an unknown form: stated for the cgroups that have them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reveal_collector.readers.plan import BACK_OFF
from reveal_collector.readers.source import Roots, Source, degraded_of
from reveal_collector.subjects import cgroups

GOOD = "8:0 rbytes=5 wbytes=7 rios=1 wios=2\n"


def add(root: Path, name: str) -> Path:
    folder = root / name
    folder.mkdir(parents=True)
    (root / "cgroup.controllers").write_text("io\n")
    (folder / "cgroup.procs").write_text("42\n")
    (folder / "io.stat").write_text(GOOD)
    return folder / "io.stat"


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    return [add(tmp_path, name) for name in ("a.service", "b.service")]


@pytest.fixture
def source(tmp_path: Path, files: list[Path]) -> Iterator[Source]:
    found = cgroups.sources(Roots(tmp_path, tmp_path, tmp_path))
    use = next(each for each in found if each.name == "cgroups")
    use.open()
    yield use
    use.close()


def last_values(source: Source) -> list[int | None]:
    """Return values that were read after the last change of a file."""
    return [list(source.read()) for _ in range(BACK_OFF)][-1]


def test_an_odd_line_is_stated_and_the_other_devices_count(
    source: Source, files: list[Path]
) -> None:
    assert last_values(source) == [5, 7, 1, 2] * 2
    assert not degraded_of(source)
    files[0].write_text(f"{GOOD}8:48 rbytes=? wbytes=1\n\x1b[2J\n")
    assert last_values(source) == [5, 7, 1, 2] * 2
    (phrase,) = degraded_of(source)
    assert phrase.endswith(f"1 line of {files[0]} cannot be read: 8:48 rbytes=? wbytes=1")
    files[1].write_text("nvme0n1 rbytes=9\n")
    assert last_values(source) == [5, 7, 1, 2, None, None, None, None]
    (phrase,) = degraded_of(source)
    assert "2 files" in phrase
    for file in files:
        file.write_text(GOOD)
    assert last_values(source) == [5, 7, 1, 2] * 2
    assert not degraded_of(source)
