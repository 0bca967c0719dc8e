"""Ratios of hardware counters: IPC, Busy%, Bzy_MHz and memory stalls."""

from __future__ import annotations

import math

import pytest

from reveal_analyzer.derive.cpu_ratios import COUNTER_RATIOS
from reveal_contract import catalogue
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane
from support.derived_metrics import derived

HOST = {  # a second of a host: 8 CPUs of 2 GHz, half busy at 3 GHz
    "cpu.pmu.cycles": 12e9,
    "cpu.pmu.instructions": 18e9,
    "cpu.pmu.branches": 2e9,
    "cpu.pmu.branch_misses": 1e7,
    "cpu.pmu.backend_stalls": 3e9,
    "memory.pmu.stalls": 1.2e9,
    "memory.pmu.llc_references": 1e8,
    "memory.pmu.llc_misses": 2.5e7,
    "memory.pmu.loads": 4.5e9,
    "memory.pmu.local_fills": 3e7,
    "memory.pmu.remote_fills": 1e7,
    "cpu.aperf": 1.5e9,
    "cpu.mperf": 1e9,
    "cpu.tsc": 2e9,
}


def of_host(values: dict[str, float]) -> dict[str, float]:
    return derived([Channel(name) for name in values], values.values())


def test_a_busy_host() -> None:
    assert of_host(HOST) == pytest.approx(
        {
            "cpu.ipc": 1.5,
            "cpu.branch_miss_share": 5_000,
            "cpu.backend_stall_share": 250_000,
            "memory.stall_share": 100_000,
            "memory.llc_miss_share": 250_000,
            "memory.loads_per_instruction": 0.25,
            "memory.remote_fill_share": 250_000,
            "cpu.busy_share": 500_000,
            "cpu.busy_frequency": 3e9,
        }
    )


def test_an_idle_host_has_no_ratios_of_work() -> None:
    idle = of_host({name: value / 1e5 if name != "cpu.tsc" else value
                    for name, value in HOST.items()})  # fmt: skip
    known = {name for name, value in idle.items() if not math.isnan(value)}
    assert known == {"cpu.busy_share"}
    assert idle["cpu.busy_share"] == pytest.approx(5)


def test_what_was_not_read_is_not_known() -> None:
    missing = of_host({**HOST, "cpu.pmu.cycles": math.nan})
    assert math.isnan(missing["cpu.ipc"])
    assert missing["cpu.busy_frequency"] == pytest.approx(3e9)


@pytest.mark.parametrize("omitted", HOST)
def test_a_quotient_needs_all_its_parts(omitted: str) -> None:
    given = of_host({name: value for name, value in HOST.items() if name != omitted})
    needing = {each.metric for each in COUNTER_RATIOS
               if omitted in (each.over, *each.under, each.rate)}  # fmt: skip
    assert needing
    assert given.keys() == {each.metric for each in COUNTER_RATIOS} - needing


def test_residency_is_a_share_of_the_tscs_ticks() -> None:
    channels = [Channel("cpu.tsc"), Channel("cpu.residency.core", "C6")]
    assert derived(channels, [2e9, 5e8]) == pytest.approx({"cpu.residency_share{C6}": 250_000})


def test_their_rows_are_derived() -> None:
    for each in COUNTER_RATIOS:
        assert catalogue.find(each.metric).lane is Lane.DERIVED


@pytest.mark.parametrize("cpus_call", [{}, {"RES": 3_000.0, "CAL": 31_000.0}])
def test_interrupts_that_cpus_send_each_other_are_not_external(cpus_call: dict[str, float]) -> None:
    sources = {"LOC": 2_000.0, **cpus_call}
    channels = [Channel("cpu.interrupts.total")]
    channels += [Channel("cpu.interrupts.irq", name) for name in sources]
    seconds = [sum(sources.values()), *sources.values()]
    assert derived(channels, seconds) == {"cpu.interrupts.external": 2_000.0}
