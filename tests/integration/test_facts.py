"""Facts of the kernel this runs on, against what it tells by other ways."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from reveal_analyzer.configuration.watch import ConfigurationTracker
from reveal_collector.facts.device_queries import all_queries
from reveal_collector.facts.inventory import FactsReader
from reveal_collector.readers.source import Roots
from reveal_contract import cpulist

pytestmark = pytest.mark.skipif(not Path("/proc/stat").exists(), reason="no procfs")

POOL = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
PAGES = 640  # 1.25 GiB


def test_facts_agree_with_other_kernel_interfaces() -> None:
    found = FactsReader("n", Roots(), all_queries(Roots())).read()
    assert len(cpulist.parse(found.cpu.online)) == os.sysconf("SC_NPROCESSORS_ONLN")
    assert found.kernel.release == platform.release()
    assert found.memory.total == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert found.kernel.sysctl["vm.swappiness"] == Path("/proc/sys/vm/swappiness").read_text()[:-1]
    assert found.memory.page == os.sysconf("SC_PAGE_SIZE")


def test_reading_facts_is_fast() -> None:
    inventory = FactsReader("n", Roots())
    inventory.read()
    began = time.process_time()
    inventory.read()
    assert time.process_time() - began < 0.5


@pytest.fixture
def reserved() -> Iterator[None]:
    """Huge pages, as somebody may have reserved and forgotten them."""
    if os.geteuid() or not POOL.exists() or int(POOL.read_text()):
        pytest.skip("needs root and an empty pool of huge pages")
    try:
        POOL.write_text(str(PAGES))
        if int(POOL.read_text()) < PAGES:
            pytest.skip("no memory free for so many huge pages")
        yield
    finally:
        POOL.write_text("0")


@pytest.mark.root
def test_unused_huge_pages_are_reported_until_they_are_freed(reserved: None) -> None:
    inventory, node = FactsReader("n", Roots()), ConfigurationTracker()
    opened = [news for news in node.update(inventory.read(), 1) if "huge" in news.finding.claim]
    assert [news.change for news in opened] == ["Opened"]
    assert f"0 of {PAGES} pages" in opened[0].finding.claim
    POOL.write_text("0")
    [resolved] = [news for news in node.update(inventory.read(), 2) if "huge" in news.finding.claim]
    assert (resolved.change, resolved.finding.id) == ("Resolved", opened[0].finding.id)
