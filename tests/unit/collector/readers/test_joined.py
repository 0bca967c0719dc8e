"""Several readers as one source: parts that come and go while the host runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from reveal_collector.kernel_interfaces.errors import LayoutChanged
from reveal_collector.readers.joined import Joined
from reveal_collector.readers.source import CHECK_EVERY, Source
from reveal_collector.readers.textfile import TokenSource, channel
from reveal_contract.metric import Lane


class Parts:
    """Files ``a``, ``b``, ... of one number each; counts how often they are looked for."""

    def __init__(self, folder: Path, lane: Lane = Lane.SLOW) -> None:
        self.folder, self.looks, self.finds = folder, 0, 0
        self.joined = Joined("test", lane, self.find, "no file", self.names)

    def names(self) -> list[str]:
        self.looks += 1
        return sorted(path.name for path in self.folder.iterdir())

    def find(self) -> Sequence[Source]:
        self.finds += 1
        return [self._part(path) for path in sorted(self.folder.iterdir())]

    def _part(self, path: Path) -> Source:
        column = channel("memory.numa.mem_free", path.name)
        return TokenSource("test", Lane.SLOW, path, lambda text: [(0, column)])

    def instances(self) -> list[str]:
        return [each.instance for each in self.joined.channels]

    def read(self, times: int) -> None:
        for _ in range(times):
            try:
                self.joined.read()
            except LayoutChanged:
                self.joined.read()


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    (tmp_path / "a").write_text("1\n")
    created = Parts(tmp_path)
    created.joined.open()
    yield created
    created.joined.close()


def test_a_part_that_comes_later_is_read(parts: Parts) -> None:
    (parts.folder / "b").write_text("2\n")
    parts.read(2 * CHECK_EVERY)
    assert parts.instances() == ["a", "b"]
    assert parts.joined.read() == [1, 2]


def test_a_part_that_goes_takes_its_columns_along(parts: Parts) -> None:
    (parts.folder / "b").write_text("2\n")
    parts.read(2 * CHECK_EVERY)
    (parts.folder / "a").unlink()
    parts.read(2 * CHECK_EVERY)
    assert parts.instances() == ["b"]


def test_a_part_counts_once_its_files_had_time_to_appear(parts: Parts) -> None:
    """The kernel shows the folder of a device first and then its files."""
    (parts.folder / "b").mkdir()
    parts.read(CHECK_EVERY)
    (parts.folder / "b").rmdir()
    (parts.folder / "b").write_text("2\n")
    parts.read(CHECK_EVERY)
    assert parts.joined.read() == [1, 2]


def test_the_native_scanner_learns_of_it_by_staleness(parts: Parts) -> None:
    (parts.folder / "b").write_text("2\n")
    before = parts.joined.scans()
    seconds = [parts.joined.stale() for _ in range(2 * CHECK_EVERY)]
    assert seconds[-1] and not any(seconds[:CHECK_EVERY])
    with pytest.raises(LayoutChanged):
        parts.joined.read()
    after = parts.joined.scans()
    assert before is not None and after is not None
    assert not {scan.fd for scan in before} & {scan.fd for scan in after}
    assert not any(parts.joined.stale() for _ in range(2 * CHECK_EVERY))


def test_parts_that_stay_are_looked_for_once_and_seldom_checked(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1\n")
    fast = Parts(tmp_path, Lane.FAST)
    fast.joined.open()
    fast.read(100 * CHECK_EVERY)
    assert (fast.finds, fast.looks) == (1, 1 + 10)
    fast.joined.close()
