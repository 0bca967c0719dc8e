"""AMD GPUs through the files of the amdgpu driver, with the metric names of NVIDIA GPUs.

Kernel: Documentation/gpu/amdgpu/thermal.rst, driver-misc.rst and ras.rst.  Load, clocks and
sensors are requests to the management firmware of the GPU, which take from tens of microseconds
to milliseconds, so a thread of its own reads all files.  A read would wake a GPU that is
suspended at run time.  Such a GPU is not read, and its values are missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.readers.background import BackgroundSource
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sysfs_attributes import (
    AttributeFile,
    AttributeSource,
    entries,
    link_target,
    read_text,
    single_column,
)
from reveal_collector.readers.textfile import channel
from reveal_contract.metric import Lane

_CARD = re.compile(r"card\d+\Z")
_MHZ = 1e6
_MICRO, _MILLI = 1e-6, 1e-3
_CLOCK = re.compile(rb"^\s*\w+:\s*(\d+)Mhz\s*\*", re.MULTILINE | re.IGNORECASE)
_ERRORS = re.compile(rb"^(ue|ce):\s*(\d+)\s*$", re.MULTILINE)
_FILES = {
    "gpu_busy_percent": ("gpu.utilization", 1.0),
    "mem_busy_percent": ("gpu.memory.utilization", 1.0),
    "mem_info_vram_used": ("gpu.memory.used", 1.0),
    "mem_info_vram_total": ("gpu.memory.total", 1.0),
    "pcie_replay_count": ("gpu.pcie.replays", 1.0),
}  # fmt: skip
_CLOCKS = {"pp_dpm_sclk": "gpu.clock.sm", "pp_dpm_mclk": "gpu.clock.memory"}
_SENSORS = {"power1_cap": ("gpu.power.limit", _MICRO), "freq1_input": ("gpu.clock.sm", 1.0),
            "freq2_input": ("gpu.clock.memory", 1.0)}  # fmt: skip
# The current power where the card reports it, else its recent average; never both.
_POWER = ("power1_input", "power1_average")
# The driver lowers the clocks by the junction temperature; older cards report only the edge.
_TEMPERATURES = {"gpu.temperature": ("junction", "edge"), "gpu.memory.temperature": ("mem",)}


def sources(roots: Roots) -> list[Source]:
    drm = roots.sys / "class/drm"

    def layout_state() -> object:
        return entries(drm), awake(drm)

    absent = Unsupported("this host has no AMD GPU with the amdgpu driver")
    return [
        BackgroundSource(
            AttributeSource(
                "amdgpu", Lane.SLOW, lambda: _attribute_files(drm), layout_state, absent
            )
        )
    ]


def amd_gpus(drm: Path) -> list[str]:
    """Return the cards (``card0``) that the amdgpu driver controls."""
    return [
        name
        for name in entries(drm)[0]
        if _CARD.match(name) and link_target(drm / name / "device/driver") == "amdgpu"
    ]


def awake(drm: Path) -> list[str]:
    """Return the cards that are not suspended; reading this state wakes no card."""
    return [
        card
        for card in amd_gpus(drm)
        if read_text(drm / card / "device/power/runtime_status") not in ("suspended", "suspending")
    ]


def _attribute_files(drm: Path) -> Iterator[AttributeFile]:
    for card in awake(drm):
        device = drm / card / "device"
        for file, (metric, scale) in _FILES.items():
            yield single_column(device / file, channel(metric, card, scale))
        monitors = [device / "hwmon" / name for name in entries(device / "hwmon")[0]]
        has_clock = False
        for monitor in monitors:
            yield from _sensors(card, monitor)
            has_clock = has_clock or (monitor / "freq1_input").exists()
        if not has_clock:  # hwmon reports the real clock, the table only the selected level
            for file, metric in _CLOCKS.items():
                yield single_column(device / file, channel(metric, card, _MHZ), parse_clock)
        yield from _errors(card, device / "ras")


def _sensors(card: str, monitor: Path) -> Iterator[AttributeFile]:
    for file, (metric, scale) in _SENSORS.items():
        yield single_column(monitor / file, channel(metric, card, scale))
    power = next((name for name in _POWER if (monitor / name).exists()), "")
    if power:
        yield single_column(monitor / power, channel("gpu.power", card, _MICRO))
    labels = {read_text(monitor / name): name.removesuffix("_label") + "_input"
              for name in entries(monitor)[0]
              if name.startswith("temp") and name.endswith("_label")}  # fmt: skip
    for metric, preferred in _TEMPERATURES.items():
        file = next((labels[label] for label in preferred if label in labels), "")
        if file:
            yield single_column(monitor / file, channel(metric, card, _MILLI))


def _errors(card: str, folder: Path) -> Iterator[AttributeFile]:
    """Yield the RAS counters since the driver was loaded; ``umc`` is the device memory."""
    for name in entries(folder)[0]:
        block, is_count, _ = name.partition("_err_count")
        if not is_count:
            continue
        if block == "umc":
            kinds = ("gpu.ecc.uncorrected.volatile", "gpu.ecc.corrected.volatile")
            columns = tuple(channel(kind, card) for kind in kinds)
        else:
            kinds = ("gpu.ras.uncorrected", "gpu.ras.corrected")
            columns = tuple(channel(kind, f"{card}/{block}") for kind in kinds)
        yield AttributeFile(folder / name, columns, parse_errors)


def parse_errors(data: bytes) -> list[int | None]:
    """Return uncorrected and corrected errors of a block: lines ``ue: 0`` and ``ce: 0``."""
    counts = {kind: int(number) for kind, number in _ERRORS.findall(data)}
    return [counts.get(b"ue"), counts.get(b"ce")]


def parse_clock(data: bytes) -> int:
    """Return the level in use (MHz) of a ``pp_dpm`` file, marked by a star."""
    found = _CLOCK.search(data)
    if found is None:
        raise ValueError("no level is marked as in use")
    return int(found[1])
