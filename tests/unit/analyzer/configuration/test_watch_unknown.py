"""Facts that cannot be read: a finding stays as it is, and is not taken for fixed."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.configuration.evaluate import RULES
from reveal_analyzer.configuration.watch import ConfigurationTracker
from reveal_contract.facts import (
    Bond,
    Cpu,
    DeviceFacts,
    Facts,
    FrequencyPolicy,
    Gpu,
    GpuProcess,
    HugePool,
    InterruptVectors,
    Kernel,
    Memory,
    Nic,
    NumaNode,
    PcieLink,
    RdmaPortFacts,
    Swap,
)
from reveal_contract.finding import FindingChange, FindingUpdate
from support.property_tests import examples

GIB = 1 << 30
GPU, CARD = "0000:3b:00.0", "0000:5e:00.0"
# a host that breaks every rule
BROKEN = Facts(
    node="n",
    cpu=Cpu(
        present="0-31", online="0-29", smt="on", cores=16, clock_flags=("constant_tsc",),
        policies=(
            FrequencyPolicy("0-9", "acpi-cpufreq", "powersave", "", 800_000, 3_800_000, 3_800_000),
            FrequencyPolicy("10-29", "intel_pstate", "powersave", "power", 800_000, 2_000_000,
                            3_800_000),
        ),
    ),
    memory=Memory(
        total=512 * GIB,
        nodes=(NumaNode(0, "0-9", 256 * GIB, (10, 21, 21)), NumaNode(1, "10-19", 128 * GIB,
               (21, 10, 21)), NumaNode(2, "20-29", 0, (21, 21, 10))),
        huge=(HugePool(GIB, None, 64, 64),), swaps=(Swap("/dev/sda2", "partition", GIB),),
        zswap=False, thp="always", thp_defrag="always",
    ),
    kernel=Kernel(
        virtual=False, clocksource="hpet", clocksources=("tsc", "hpet"),
        sysctl={"vm.swappiness": "150", "vm.zone_reclaim_mode": "1"},
    ),
    devices=(
        DeviceFacts(GPU, "gpu", "10de:2330", "nvidia", 0, PcieLink(8, 16, 16, 16.0, 32.0, 32.0)),
        DeviceFacts("0000:3c:00.0", "gpu", "10de:2330"),
        DeviceFacts(CARD, "network", node=0, vectors=InterruptVectors(16, "12", "0-29")),
        DeviceFacts("0000:70:00.0", "network", driver="mlx5_core", infiniband=True),
    ),
    nics=(
        Nic("eth0", pci=CARD, up=True, duplex="half", mtu=1500, rx_queues=8, channels=1,
            channels_most=8, rx_ring=1024, rx_ring_most=8192, missed=5000, missed_per_million=9),
    ),
    bonds=(Bond("bond0", "802.3ad", 9000, ("eth0", "eth1"), ("eth1",)),),
    ports=(RdmaPortFacts("mlx5_0/1", "InfiniBand", "ACTIVE", "100 Gb/sec (1X NDR)", CARD),),
    gpus=(Gpu(GPU, persistence=False),),
    processes=(GpuProcess(7, "python", (GPU,), "10-19", "1"),),
)  # fmt: skip
LISTS = ("cpu", "memory", "kernel", "devices", "nics", "bonds", "ports", "gpus", "processes")
# names, and the members of lists: without them there is no object
_NAMES = {"node", "name", "address", "pci", "cpus", "size", "kind", "gpus", "pid", "parts", "down",
          "rx_queues", "cores", "swaps"}  # fmt: skip


def opened(facts: Facts) -> ConfigurationTracker:
    tracker = ConfigurationTracker()
    tracker.update(facts, 1)
    return tracker


def names(tracker: ConfigurationTracker) -> set[str]:
    return {each.hypothesis.name for each in tracker.findings if each.hypothesis}


def without(draw: st.DrawFn, record: Any) -> Any:
    """Return a record with some of its values unknown."""
    changes: dict[str, Any] = {}
    for spec in fields(record):
        value = getattr(record, spec.name)
        if is_dataclass(value):
            changes[spec.name] = without(draw, value)
        elif isinstance(value, tuple) and value and is_dataclass(value[0]):
            changes[spec.name] = tuple(without(draw, each) for each in value)
        elif spec.name not in _NAMES and draw(st.booleans()):
            changes[spec.name] = _unknown(value)
    return replace(record, **changes)


def _unknown(value: Any) -> Any:
    if isinstance(value, str):
        return ""
    if isinstance(value, dict):
        return {}
    return () if isinstance(value, tuple) else None


@st.composite
def unreadable(draw: st.DrawFn) -> Facts:
    """The facts of the broken host where some values cannot be read."""
    found: Facts = without(draw, BROKEN)
    return found


def test_the_host_breaks_every_rule() -> None:
    assert names(opened(BROKEN)) | {"InterruptsOnOneCPU"} == {rule.name for rule in RULES}


@given(unreadable())
@examples(200)
def test_values_that_cannot_be_read_resolve_nothing(facts: Facts) -> None:
    tracker = opened(BROKEN)
    before = names(tracker)
    changes = {each.change for each in tracker.update(facts, 2)}
    assert FindingChange.RESOLVED not in changes
    assert names(tracker) >= before
    assert {each.change for each in tracker.update(BROKEN, 3)} <= {FindingChange.CHANGED}


@pytest.mark.parametrize("name", LISTS)
def test_lists_that_cannot_be_read_resolve_nothing(name: str) -> None:
    tracker = opened(BROKEN)
    before = names(tracker)
    changes: dict[str, Any] = {name: getattr(Facts(), name), "unread": (name,)}
    partial = replace(BROKEN, **changes)
    assert FindingChange.RESOLVED not in {each.change for each in tracker.update(partial, 2)}
    assert names(tracker) == before
    assert tracker.update(BROKEN, 3) == []


@pytest.mark.parametrize("name", ["devices", "nics", "bonds", "ports", "gpus", "processes"])
def test_objects_that_are_gone_are_resolved(name: str) -> None:
    changes: dict[str, Any] = {name: ()}
    updates = opened(BROKEN).update(replace(BROKEN, **changes), 2)
    assert FindingChange.RESOLVED in {each.change for each in updates}


def test_a_hint_survives_the_minute_in_which_its_fact_is_unknown() -> None:
    known = Facts(node="n", gpus=(Gpu(GPU, persistence=False),))
    tracker = opened(known)
    for minute, facts in enumerate([replace(known, gpus=(Gpu(GPU),)), known], 2):
        assert tracker.update(facts, minute) == []
    fixed = replace(known, gpus=(Gpu(GPU, persistence=True),))
    assert [each.change for each in tracker.update(fixed, 9)] == [FindingChange.RESOLVED]


def test_a_rule_that_fails_resolves_nothing() -> None:
    tracker = opened(BROKEN)
    before = names(tracker)
    odd = replace(BROKEN, memory=replace(BROKEN.memory, nodes=(NumaNode(0, "odd"),)))
    tracker.update(odd, 2)
    assert names(tracker) >= before - {"NodeWithoutMemory", "UnevenMemory"}


def test_the_numbers_of_a_finding_stay_current() -> None:
    tracker = ConfigurationTracker()
    found: list[FindingUpdate] = []
    for pages in (2_000, 60_000, 60_000):
        pool = HugePool(2 << 20, None, pages, pages)
        found += tracker.update(
            Facts(node="n", memory=Memory(total=256 * GIB, huge=(pool,))), 1 + len(found)
        )
    assert [each.change for each in found] == [FindingChange.OPENED, FindingChange.CHANGED]
    assert [each.finding.claim.split(" are")[0] for each in found] == ["3.91 GiB", "117 GiB"]
    assert found[1].finding.evidence[0].value == str(60_000 * (2 << 20))
    assert found[1].finding.first_observed_ns == 1
