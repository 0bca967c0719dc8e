"""AMD GPUs have the same metric names as NVIDIA GPUs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.readers.source import Source
from reveal_collector.sources import amdgpu
from support.hosts.amdgpu import add_amd_gpu
from support.hosts.pci import Function, add_function
from support.hosts.tree import Tree
from support.source_reader import open_source, read_values


@pytest.fixture
def source(tree: Tree) -> Iterator[Source]:
    add_amd_gpu(tree)
    add_amd_gpu(tree, 1, "0000:c3:00.0", instinct=False)
    source = open_source(amdgpu.sources, tree.roots, "amdgpu")
    yield source
    source.close()


def test_a_host_without_an_amd_gpu_has_a_reason(tree: Tree) -> None:
    folder = add_function(tree, Function("0000:18:00.0", driver="nvidia"))
    tree.link("sys/class/drm/card0", f"../../{folder.removeprefix('sys/')}/drm/card0")
    tree.link(f"{folder}/drm/card0/device", "../..")
    with pytest.raises(Unsupported, match="no AMD GPU"):
        open_source(amdgpu.sources, tree.roots, "amdgpu")


def test_a_data_centre_card(source: Source) -> None:
    observed = {label: value for label, value in read_values(source).items() if "card0" in label}
    assert observed.pop("gpu.memory.used{card0}") == pytest.approx(96 << 30, rel=0.05)
    assert observed == {
        "gpu.utilization{card0}": 82, "gpu.memory.utilization{card0}": 30,
        "gpu.memory.total{card0}": 192 << 30, "gpu.pcie.replays{card0}": 0,
        "gpu.clock.sm{card0}": 1700e6, "gpu.clock.memory{card0}": 1300e6,
        "gpu.power{card0}": pytest.approx(560), "gpu.power.limit{card0}": 750,
        "gpu.temperature{card0}": 63, "gpu.memory.temperature{card0}": 64,
        "gpu.ecc.corrected.volatile{card0}": 0, "gpu.ecc.uncorrected.volatile{card0}": 0,
        "gpu.ras.corrected{card0/gfx}": 0, "gpu.ras.uncorrected{card0/gfx}": 0,
        "gpu.ras.corrected{card0/xgmi_wafl}": 0, "gpu.ras.uncorrected{card0/xgmi_wafl}": 0,
    }  # fmt: skip


def test_a_card_with_fewer_sensors(source: Source) -> None:
    observed = {label: value for label, value in read_values(source).items() if "card1" in label}
    assert observed["gpu.clock.sm{card1}"] == 2.1e9  # the sensor's, not the level asked for
    assert observed["gpu.power{card1}"] == pytest.approx(85)  # the average: it has no other
    assert observed["gpu.temperature{card1}"] == 54
    assert "gpu.clock.memory{card1}" not in observed
    assert "gpu.ecc.corrected.volatile{card1}" not in observed


def test_errors_of_the_memory_and_of_other_blocks(tree: Tree, source: Source) -> None:
    folder = "sys/devices/pci0000:c1/0000:c1:00.0/ras"
    tree.write(f"{folder}/umc_err_count", "ue: 1\nce: 12\nde: 0\n")
    tree.write(f"{folder}/gfx_err_count", "ue: 2\nce: 0\n")
    observed = read_values(source)
    assert observed["gpu.ecc.corrected.volatile{card0}"] == 12
    assert observed["gpu.ecc.uncorrected.volatile{card0}"] == 1
    assert observed["gpu.ras.uncorrected{card0/gfx}"] == 2


def test_a_sleeping_card_is_left_alone(tree: Tree, source: Source) -> None:
    status = "sys/devices/pci0000:c3/0000:c3:00.0/power/runtime_status"
    tree.write(status, "suspended\n")
    assert not any("card1" in label for label in read_values(source))
    tree.write(status, "active\n")
    assert read_values(source)["gpu.utilization{card1}"] is not None


def test_a_card_that_is_unplugged_leaves_the_other(tree: Tree, source: Source) -> None:
    tree.remove("sys/class/drm/card0")
    observed = read_values(source)
    assert observed
    assert all("card1" in label for label in observed)


def test_levels_without_an_active_level_are_refused() -> None:
    assert amdgpu.parse_clock(b"0: 500Mhz\n1: 2100Mhz *\n") == 2100
    assert amdgpu.parse_clock(b"S: 19Mhz *\n0: 500Mhz\n") == 19  # asleep
    with pytest.raises(ValueError, match="no level"):
        amdgpu.parse_clock(b"0: 500Mhz\n1: 2100Mhz\n")


@given(st.binary(max_size=80))
def test_any_text_is_a_clock_or_refused(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        assert amdgpu.parse_clock(data) >= 0
    assert len(amdgpu.parse_errors(data)) == 2


@given(st.integers(0, 2**40), st.integers(0, 2**40))
def test_errors_come_back_as_written(ue: int, ce: int) -> None:
    assert amdgpu.parse_errors(f"ue: {ue}\nce: {ce}\n".encode()) == [ue, ce]
