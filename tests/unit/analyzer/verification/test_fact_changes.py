"""What changed in the facts of a node, as texts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reveal_analyzer.verification.fact_changes import MOST_CHANGES, fact_changes
from reveal_contract.facts import (
    Cpu,
    DeviceFacts,
    Facts,
    FrequencyPolicy,
    GpuProcess,
    HugePool,
    Kernel,
    Memory,
    Nic,
    PcieLink,
)

FACTS = Facts(
    node="n1",
    cpu=Cpu(policies=(FrequencyPolicy("0-7", "intel_pstate", "powersave"),), smt="on"),
    memory=Memory(thp="madvise", huge=(HugePool(2048 << 10, None, 0, 0),)),
    kernel=Kernel(release="6.18.1", sysctl={"vm.swappiness": "60"}),
    devices=(DeviceFacts("0000:3b:00.0", "gpu", link=PcieLink(16, 16)),),
    nics=(Nic("eth0", rx_ring=512, missed=10),),
    drivers={"nvidia": "570.10"},
)


def changed(**parts: Any) -> Facts:
    return replace(FACTS, **parts)


@pytest.mark.parametrize(
    ("now", "text"),
    [
        (
            changed(
                cpu=replace(
                    FACTS.cpu, policies=(FrequencyPolicy("0-7", "intel_pstate", "performance"),)
                )
            ),
            "cpu policies[0-7] governor: powersave -> performance",
        ),
        (
            changed(kernel=replace(FACTS.kernel, sysctl={"vm.swappiness": "1"})),
            "kernel sysctl vm.swappiness: 60 -> 1",
        ),
        (changed(drivers={"nvidia": "575.1"}), "drivers nvidia: 570.10 -> 575.1"),
        (changed(drivers={}), "drivers nvidia: 570.10 -> none"),
        (changed(nics=(Nic("eth0", rx_ring=4096, missed=10),)), "nics[eth0] rxRing: 512 -> 4096"),
        (
            changed(memory=replace(FACTS.memory, huge=(HugePool(2048 << 10, None, 512, 0),))),
            f"memory huge[{2048 << 10}] total: 0 -> 512",
        ),
    ],
)
def test_a_fact_that_differs_is_named_with_both_values(now: Facts, text: str) -> None:
    assert fact_changes(FACTS, now) == (text,)


@pytest.mark.parametrize(
    "now",
    [
        FACTS,
        changed(processes=(GpuProcess(1, "python"),)),
        changed(memory=replace(FACTS.memory, huge=(HugePool(2048 << 10, None, 0, 5),))),
        changed(nics=(Nic("eth0", rx_ring=512, missed=99),)),
        changed(devices=(DeviceFacts("0000:3b:00.0", "gpu", link=PcieLink(8, 16)),)),
        changed(nics=(), unread=("nics",)),
    ],
)
def test_what_moves_by_itself_or_was_not_read_is_no_change(now: Facts) -> None:
    assert fact_changes(FACTS, now) == ()


def test_an_entry_that_moves_within_its_list_is_the_same() -> None:
    two = changed(nics=(Nic("eth0", mtu=1500), Nic("eth1", mtu=9000)))
    assert fact_changes(two, changed(nics=two.nics[::-1])) == ()


def test_many_changes_are_counted() -> None:
    names = [f"net.{number}" for number in range(MOST_CHANGES + 4)]
    before = changed(kernel=replace(FACTS.kernel, sysctl=dict.fromkeys(names, "0")))
    now = changed(kernel=replace(FACTS.kernel, sysctl=dict.fromkeys(names, "1")))
    found = fact_changes(before, now)
    assert len(found) == MOST_CHANGES + 1
    assert found[-1] == "4 more facts"


def test_long_values_are_shortened() -> None:
    now = changed(kernel=replace(FACTS.kernel, release="x" * 200))
    assert all(len(text) < 100 for text in fact_changes(FACTS, now))
