"""Ratios of devices: their values, and when they are missing."""

from __future__ import annotations

import math

import pytest

from reveal_collector.readers.textfile import channel
from reveal_contract.catalogue import find
from support.derived_metrics import derived

PORT, LINK, ROOT = "mlx5_0/1", "0000:c1:00.0 card0", "/"


def computed(seconds: dict[tuple[str, str], float]) -> dict[str, float]:
    channels = [channel(metric, instance) for metric, instance in seconds]
    return derived(channels, seconds.values())


def test_lanes_in_use_of_those_there_are() -> None:
    ratios = computed({("gpu.pcie.width", LINK): 8, ("gpu.pcie.width_maximum", LINK): 16})
    assert ratios == {f"gpu.pcie.width_share{{{LINK}}}": 500_000}


@pytest.mark.parametrize(("utilization", "share"), [(90, 250_000), (10, math.nan)])
def test_speed_counts_only_while_the_gpu_works(utilization: float, share: float) -> None:
    ratios = computed({
        ("gpu.pcie.speed", LINK): 8e9, ("gpu.pcie.speed_maximum", LINK): 32e9,
        ("gpu.utilization", "card0"): utilization,
    })  # fmt: skip
    assert ratios[f"gpu.pcie.speed_share{{{LINK}}}"] == pytest.approx(share, nan_ok=True)


def test_generation_as_nvml_has_it() -> None:
    ratios = computed({
        ("gpu.pcie.generation", "0"): 3, ("gpu.pcie.generation_maximum", "0"): 5,
        ("gpu.utilization", "0"): 100,
    })  # fmt: skip
    assert ratios["gpu.pcie.speed_share{0}"] == pytest.approx(600_000)


@pytest.mark.parametrize(
    ("rate", "expected"), [(400e9, 500_000), (math.nan, math.nan), (0, math.nan)]
)
def test_a_port_against_its_rate(rate: float, expected: float) -> None:
    ratios = computed({
        ("network.infiniband.rx_bytes", PORT): 25e9, ("network.infiniband.tx_bytes", PORT): 1e9,
        ("network.infiniband.rate", PORT): rate,
    })  # fmt: skip
    assert ratios[f"network.infiniband.utilization{{{PORT}}}"] == pytest.approx(
        expected, nan_ok=True
    )


@pytest.mark.parametrize(("used", "expected"), [(50, 0), (90, 0), (95, 50_000), (100, 100_000)])
def test_a_file_system_is_crowded_beyond_nine_tenths(used: int, expected: float) -> None:
    ratios = computed({
        ("storage.filesystem.size", ROOT): 110, ("storage.filesystem.free", ROOT): 110 - used,
        ("storage.filesystem.available", ROOT): 100 - used,  # the rest is root's
        ("storage.filesystem.inodes", ROOT): 1000,
        ("storage.filesystem.inodes_free", ROOT): 1000 - 10 * used,
    })  # fmt: skip
    assert ratios["storage.filesystem.crowding{/}"] == pytest.approx(expected, abs=1)
    assert ratios["storage.filesystem.inode_crowding{/}"] == pytest.approx(expected, abs=1)


def test_swap_and_compressed_memory() -> None:
    ratios = computed({
        ("memory.swap_total", ""): 8e9, ("memory.swap_free", ""): 6e9,
        ("memory.zram.original", "zram0"): 3e9, ("memory.zram.compressed", "zram0"): 1e9,
    })  # fmt: skip
    assert ratios["memory.swap_used_share"] == 250_000
    assert ratios["memory.zram.compressed_share{zram0}"] == pytest.approx(333_333, abs=1)
    ratios = computed({("memory.swap_total", ""): 0, ("memory.swap_free", ""): 0})
    assert math.isnan(ratios["memory.swap_used_share"])


def test_a_missing_side_makes_no_quotient() -> None:
    assert computed({("gpu.pcie.width", LINK): 8}) == {}
    whole = {("gpu.pcie.width", LINK): math.nan, ("gpu.pcie.width_maximum", LINK): 16.0}
    assert all(math.isnan(value) for value in computed(whole).values())


@pytest.mark.parametrize("missing", range(3))
def test_what_is_missing_is_not_taken_for_nothing(missing: int) -> None:
    room = [("storage.filesystem.size", 100.0), ("storage.filesystem.free", 1.0),
            ("storage.filesystem.available", 1.0)]  # fmt: skip
    port = [("network.infiniband.rx_bytes", 1e9), ("network.infiniband.tx_bytes", 1e9),
            ("network.infiniband.rate", 100e9)]  # fmt: skip
    for parts, name in ((room, ROOT), (port, PORT)):
        seconds = {(metric, name): value for metric, value in parts}
        assert not any(math.isnan(value) for value in computed(seconds).values())
        seconds[parts[missing][0], name] = math.nan
        assert all(math.isnan(value) for value in computed(seconds).values())


def test_each_is_computed_by_the_analyzer_alone() -> None:
    for name in ("gpu.pcie.speed_share", "network.pcie.width_share", "memory.swap_used_share",
                 "network.infiniband.utilization", "storage.filesystem.crowding"):  # fmt: skip
        assert find(name).lane == "derived"
