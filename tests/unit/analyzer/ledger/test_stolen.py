"""The share of CPU time that the hypervisor took, by the host's own counters."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.ledger.stolen import cpu_channels, stolen_share
from reveal_contract.channels import Channel
from reveal_contract.metric import Kind


def found(*names: tuple[str, str]) -> list[int]:
    channels = [Channel(metric, instance, Kind.COUNTER, 1.0) for metric, instance in names]
    by_metric: dict[str, list[int]] = {}
    for index, channel in enumerate(channels):
        by_metric.setdefault(channel.metric, []).append(index)
    return cpu_channels(channels, by_metric).tolist()


def test_stolen_time_comes_first_and_idle_time_does_not_count() -> None:
    names = ("cpu.user", ""), ("cpu.idle", ""), ("cpu.steal", ""), ("cpu.system", "")
    assert found(*names) == [2, 0, 3]


def test_times_of_single_cpus_do_not_count() -> None:
    assert found(("cpu.steal", "0"), ("cpu.steal", ""), ("cpu.user", "1")) == [1]


def test_a_host_that_does_not_count_stolen_time_has_none() -> None:
    assert found(("cpu.user", ""), ("cpu.system", "")) == []


@pytest.mark.parametrize(
    ("times", "share"),
    [([1.0, 2.0, 1.0], 0.25), ([0.0, 2.0], 0.0), ([0.0, 0.0], 0.0), ([np.nan, 2.0], 0.0)],
)
def test_the_share_is_of_all_time_on_cpus(times: list[float], share: float) -> None:
    assert stolen_share(np.array(times)) == pytest.approx(share)
