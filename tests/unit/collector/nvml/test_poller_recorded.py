"""Answers of the drivers of a real H100 and H200 give what nvidia-smi -q -x reported at that time.

Driver 580.159.04, recorded by bench/nvml.py --trace while a card was idle, and while one trained.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from reveal_collector.nvml.metric_queries import THROTTLE_REASONS
from reveal_collector.nvml.snapshots import QUICK, STATE
from support import fake_nvml
from support.fake_nvml import Script
from support.nvml_poller import SteppedPoller

FIXTURES = Path(__file__).parents[3] / "fixtures/nvml"
MIB, STEP_MS, LAST = 1 << 20, 100, 99
_NUMBER = re.compile(r"-?[\d.]+")
# metric -> (path in nvidia-smi's XML, base units in its unit, what may have changed since)
STEADY = {
    "gpu.memory.total": ("fb_memory_usage/total", MIB, MIB),
    "gpu.memory.used": ("fb_memory_usage/used", MIB, MIB),
    "gpu.power.limit": ("gpu_power_readings/current_power_limit", 1, 0),
    "gpu.clock.maximum": ("max_clocks/sm_clock", 1e6, 0),
    "gpu.clock.memory": ("clocks/mem_clock", 1e6, 0),
    "gpu.clock.memory_maximum": ("max_clocks/mem_clock", 1e6, 0),
    "gpu.pcie.generation": ("pci/pci_gpu_link_info/pcie_gen/current_link_gen", 1, 0),
    "gpu.pcie.generation_maximum": ("pci/pci_gpu_link_info/pcie_gen/max_link_gen", 1, 0),
    "gpu.pcie.width": ("pci/pci_gpu_link_info/link_widths/current_link_width", 1, 0),
    "gpu.pcie.width_maximum": ("pci/pci_gpu_link_info/link_widths/max_link_width", 1, 0),
    "gpu.pcie.replays": ("pci/replay_counter", 1, 0),
    "gpu.ecc.corrected.volatile": ("ecc_errors/volatile/dram_correctable", 1, 0),
    "gpu.ecc.uncorrected.volatile": ("ecc_errors/volatile/dram_uncorrectable", 1, 0),
    "gpu.ecc.corrected.aggregate": ("ecc_errors/aggregate/dram_correctable", 1, 0),
    "gpu.ecc.uncorrected.aggregate": ("ecc_errors/aggregate/dram_uncorrectable", 1, 0),
    "gpu.remapped_rows.corrected": ("remapped_rows/remapped_row_corr", 1, 0),
    "gpu.remapped_rows.uncorrected": ("remapped_rows/remapped_row_unc", 1, 0),
    "gpu.encoder.utilization": ("utilization/encoder_util", 1, 0),
    "gpu.decoder.utilization": ("utilization/decoder_util", 1, 0),
}  # fmt: skip
CHANGING = {
    "gpu.utilization": ("utilization/gpu_util", 1, 5),
    "gpu.memory.utilization": ("utilization/memory_util", 1, 5),
    "gpu.temperature": ("temperature/gpu_temp", 1, 2),
    "gpu.memory.temperature": ("temperature/memory_temp", 1, 2),
    "gpu.power": ("gpu_power_readings/instant_power_draw", 1, 50),
    "gpu.clock.sm": ("clocks/sm_clock", 1e6, 5e7),
    "gpu.pcie.tx": ("pci/tx_util", 1e3, 1e7),
    "gpu.pcie.rx": ("pci/rx_util", 1e3, 1e7),
    "gpu.throttled_time.power": (
        "clocks_event_reasons_counters/clocks_event_reasons_counters_sw_power_cap", 1e3, 2e9,
    ),
}  # fmt: skip
REASONS = {
    "gpu.throttle.idle": "gpu_idle",
    "gpu.throttle.application_clocks": "applications_clocks_setting",
    "gpu.throttle.power_cap": "sw_power_cap",
    "gpu.throttle.hardware_slowdown": "hw_slowdown",
    "gpu.throttle.thermal_software": "sw_thermal_slowdown",
    "gpu.throttle.thermal_hardware": "hw_thermal_slowdown",
    "gpu.throttle.power_brake": "hw_power_brake_slowdown",
    "gpu.throttle.sync_boost": "sync_boost",
    "gpu.throttle.display": "display_clocks_setting",
}
ABSENT = {  # a card in a virtual machine of its own: no NVLink; no fan; rows are remapped instead
    "gpu.nvlink.tx", "gpu.nvlink.active_links", "gpu.nvlink.crc_errors", "gpu.fan",
    "gpu.retired_pages.corrected", "gpu.retired_pages.pending",
}  # fmt: skip


def replayed(name: str, step: int, folder: Path, library: Path) -> dict[str, float]:
    """Return the figures of a step of a recording in base units, by metric."""
    text = (FIXTURES / f"{name}.trace").read_text()
    answers: dict[str, object] = dict(line.split(" ", 1) for line in text.splitlines())
    script = Script(folder / "script", answers | {"step_ms": 0, "at": step})
    with fake_nvml.loaded(library, script.path):
        watch = SteppedPoller()
        snapshots = [watch.poller.snapshots[board] for board in (QUICK, STATE)]
    return {
        channel.metric: value * channel.scale
        for snapshot in snapshots
        for channel, value in zip(snapshot.channels, snapshot.values, strict=True)
        if value is not None
    }


def differences(
    figures: Mapping[str, float],
    card: ElementTree.Element,
    rows: Mapping[str, tuple[str, float, float]],
) -> dict[str, tuple[float, float]]:
    """Return what differs from nvidia-smi by more than it may: ours and theirs."""
    found = {}
    for metric, (path, unit, loose) in rows.items():
        number = _NUMBER.search(card.findtext(path) or "")
        assert number, path
        theirs = float(number[0]) * unit
        if abs(figures[metric] - theirs) > loose:
            found[metric] = figures[metric], theirs
    return found


@pytest.mark.parametrize("name", ["h100-idle", "h100-load", "h200-idle"])
def test_figures_of_a_real_card_are_those_of_nvidia_smi(
    name: str, tmp_path: Path, nvml_library: Path
) -> None:
    figures = replayed(name, LAST, tmp_path, nvml_library)
    card = ElementTree.parse(FIXTURES / f"{name}.xml").find("gpu")
    assert card is not None
    assert differences(figures, card, STEADY | CHANGING) == {}
    assert not ABSENT & figures.keys()
    assert REASONS.keys() == set(THROTTLE_REASONS.values())
    for metric, word in REASONS.items():
        text = card.findtext(f"clocks_event_reasons/clocks_event_reason_{word}")
        assert (metric, figures[metric]) == (metric, float(text == "Active"))


def test_energy_of_a_real_card_is_its_power_by_time(tmp_path: Path, nvml_library: Path) -> None:
    first, last = (replayed("h100-load", step, tmp_path, nvml_library) for step in (0, LAST))
    watts = (last["gpu.energy"] - first["gpu.energy"]) / (LAST * STEP_MS / 1000)
    assert watts == pytest.approx(last["gpu.power"], rel=0.1)


def test_a_card_that_trains_is_throttled_by_its_power_limit_all_the_time(
    tmp_path: Path, nvml_library: Path
) -> None:
    first, last = (replayed("h100-load", step, tmp_path, nvml_library) for step in (20, 60))
    seconds = 40 * STEP_MS / 1000
    capped = (last["gpu.throttled_time.power"] - first["gpu.throttled_time.power"]) / 1e9
    assert capped == pytest.approx(seconds, abs=1.0)
