"""What the questions to the driver cost, and what is asked less often because of it."""

from __future__ import annotations

import pytest

from reveal_collector.nvml.snapshots import QUICK
from reveal_collector.readers.source import DriverSource, Roots
from reveal_collector.sources.nvml import sources
from support.fake_nvml import Script
from support.nvml_poller import SteppedPoller, base_unit
from support.polling import wait_until


def test_an_expensive_query_of_a_card_is_slowed_and_reported(script: Script) -> None:
    script.change({"0.delay.nvmlDeviceGetClockInfo": 6_000})
    watch = SteppedPoller(timed=True)
    watch.run(2)
    messages = watch.poller.degraded
    assert {phrase.partition(" is")[0] for phrase in messages} == {
        "GPU 0: clock.sm", "GPU 0: clock.memory",
    }  # fmt: skip
    assert all("every 1 s" in phrase for phrase in messages)
    assert watch.figures()["gpu.driver.slowed", ""] == 2
    before = watch.figures()["gpu.driver.time", ""]
    assert before is not None
    assert before > 10 * 2 * 6_000_000


def test_the_sources_report_the_cpu_time_of_their_thread_once(script: Script) -> None:
    opened = sources(Roots())
    for source in opened:
        source.open()
    try:
        wait_until(lambda: opened[0].driver_cpu_ns > 0)
        assert [source.driver_cpu_ns for source in opened[1:]] == [0, 0]
        assert all(isinstance(source, DriverSource) for source in opened)
    finally:
        for source in opened:
            source.close()
    before = opened[0].driver_cpu_ns
    opened[0].open()  # a new thread, whose clock starts again
    try:
        wait_until(lambda: opened[0].driver_cpu_ns > before)
    finally:
        opened[0].close()


def test_a_second_of_an_h100_costs_the_driver_six_milliseconds(script: Script) -> None:
    """The prices of driver 580 (docs/reference/gpus.md), by the period of each query."""
    milliseconds = {
        "utilization": 0.05, "memory": 0.07, "power": 0.075, "energy": 3.4, "clock.sm": 0.045,
        "throttled": 1.1, "errors": 0.5, "pcie.errors": 0.8, "process_utilization": 2.75,
        "processes": 0.5, "pcie.tx": 20.9, "pcie.rx": 20.9, "clock.maximum": 2.0,
        "clock.memory_maximum": 1.5,
    }  # fmt: skip
    schedule = next(iter(SteppedPoller().poller._session.schedules))
    periods = {name: period for (_, name), period in schedule.periods}
    assert milliseconds.keys() <= periods.keys()
    spent = sum(price * 1e9 / periods[name] for name, price in milliseconds.items())
    assert spent < 6.25  # 5 % of a thread for eight cards


def test_an_expensive_energy_counter_leaves_the_power_in_the_fast_lane(script: Script) -> None:
    script.change({"0.field_delay.83": 6_000})
    watch = SteppedPoller(timed=True)
    watch.run(2)
    assert watch.poller.degraded == ()
    script.change({"0.field.186": 650_000})
    watch.run(0.1)
    assert base_unit(watch, QUICK, "gpu.power") == pytest.approx(650.0)
