"""Page size, clock tick and memory of the host whose files are read."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.readers.host_constants import (
    host_constants,
    huge_page_order,
    memory_size,
    page_size,
    table_order,
    ticks_per_second,
)
from reveal_collector.readers.source import Roots


def recorded(root: Path, page: int, free: int = 100_000, extra: str = "") -> Roots:
    """A host of 32 GiB that was recorded: its files are no procfs."""
    root.mkdir(exist_ok=True)
    (root / "meminfo").write_text(
        f"MemTotal:       33554432 kB\nMemFree:        {free * page // 1024} kB\n{extra}"
    )
    (root / "vmstat").write_text(f"nr_free_pages {free}\nnr_zone_inactive_anon 7\n")
    return Roots(root, root / "sys")


@pytest.mark.parametrize("page", [4096, 8192, 16_384, 65_536])
def test_two_files_of_the_same_level_show_the_page(page: int, tmp_path: Path) -> None:
    constants = host_constants(recorded(tmp_path, page))
    assert constants == (page, 100, 32 << 30, ())


@given(st.sampled_from([4096, 16_384, 65_536]), st.integers(1000, 10**9), st.floats(0.88, 1.12))
def test_the_files_need_not_be_of_the_same_moment(
    tmp_path_factory: pytest.TempPathFactory, page: int, free: int, later: float
) -> None:
    roots = recorded(tmp_path_factory.mktemp("proc"), page, free)
    (roots.proc / "vmstat").write_text(f"nr_free_pages {int(free * later)}\n")
    assert page_size(roots) == page


@pytest.mark.parametrize(
    "vmstat",
    ["", "nr_free_pages\n", "nr_free_pages 0\n", "nr_free_pages 9000\n", "nr_free_pages 7e3\n"],
)
def test_a_page_that_the_files_do_not_show_is_assumed_and_stated(
    vmstat: str, tmp_path: Path
) -> None:
    roots = recorded(tmp_path, 4096)
    (tmp_path / "vmstat").write_text(vmstat)
    assert page_size(roots) is None
    constants = host_constants(roots)
    assert constants.page == 4096
    assert [phrase.partition(":")[0] for phrase in constants.assumed] == [
        "the page size of the recorded host is unknown"
    ]


def test_an_empty_tree_has_no_constants_of_its_own(tmp_path: Path) -> None:
    constants = host_constants(Roots(tmp_path))
    assert (constants.page, constants.ticks_per_second, constants.memory) == (4096, 100, math.inf)
    assert len(constants.assumed) == 2


@pytest.mark.parametrize(
    ("cpuinfo", "ticks"),
    [
        ("processor\t: 0\nmodel name\t: Xeon\n", 100),
        ("cpu\t\t\t: Alpha\ncpu model\t\t: EV6\n", 1024),
        ("processor  : 0\narch       : IA-64\n", 1024),
    ],
)
def test_the_clock_tick_is_that_of_the_architecture(
    cpuinfo: str, ticks: int, tmp_path: Path
) -> None:
    (tmp_path / "cpuinfo").write_text(cpuinfo)
    assert ticks_per_second(Roots(tmp_path)) == ticks


@pytest.mark.skipif(not Roots().live, reason="no procfs")
def test_a_live_host_answers_itself() -> None:
    page = os.sysconf("SC_PAGE_SIZE")
    memory = page * os.sysconf("SC_PHYS_PAGES")
    assert host_constants(Roots()) == (page, os.sysconf("SC_CLK_TCK"), memory, ())
    assert memory_size(Roots()) == memory


@pytest.mark.parametrize(
    ("page", "huge", "order"),
    [
        (4096, "Hugepagesize:       2048 kB\n", 9),
        (4096, "Hugepagesize:    1048576 kB\n", 18),
        (65_536, "Hugepagesize:     524288 kB\n", 13),
        (65_536, "Hugepagesize:       2048 kB\n", 5),
        (65_536, "", 13),
        (16_384, "", 11),
        (4096, "Hugepagesize:          0 kB\n", 9),
    ],
)
def test_the_order_of_a_huge_page(page: int, huge: str, order: int, tmp_path: Path) -> None:
    assert huge_page_order(recorded(tmp_path, page, extra=huge), page) == order


def test_the_order_of_a_page_table() -> None:
    assert [table_order(page) for page in (4096, 16_384, 65_536)] == [9, 11, 13]
