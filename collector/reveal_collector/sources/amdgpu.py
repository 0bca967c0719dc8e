"""AMD GPUs by the files of their driver, under the names NVIDIA's have where they mean the same.

Kernel: Documentation/gpu/amdgpu/thermal.rst, driver-misc.rst and ras.rst.  Load, clocks and
sensors ask the GPU's management firmware, which takes from tens of microseconds to milliseconds:
all is read by a thread of its own.  A GPU that is suspended at run time would be woken by a
reading, so it is left alone and its values are missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from reveal_collector.kernel.errors import Unsupported
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
# what the card draws: now where it tells, else over the last while; never both
_POWER = ("power1_input", "power1_average")
# the hottest place of the die is what the clocks are lowered for; older cards tell the edge's
_HEAT = {"gpu.temperature": ("junction", "edge"), "gpu.memory.temperature": ("mem",)}


def sources(roots: Roots) -> list[Source]:
    drm = roots.sys / "class/drm"

    def mark() -> object:
        return entries(drm), awake(drm)

    absent = Unsupported("this host has no AMD GPU with the amdgpu driver")
    return [
        BackgroundSource(AttributeSource("amdgpu", Lane.SLOW, lambda: _files(drm), mark, absent))
    ]


def amd_gpus(drm: Path) -> list[str]:
    """The cards (``card0``) that the amdgpu driver drives."""
    return [
        name
        for name in entries(drm)[0]
        if _CARD.match(name) and link_target(drm / name / "device/driver") == "amdgpu"
    ]


def awake(drm: Path) -> list[str]:
    """The cards that may be asked without waking them; asking for the state wakes nobody."""
    return [
        card
        for card in amd_gpus(drm)
        if read_text(drm / card / "device/power/runtime_status") not in ("suspended", "suspending")
    ]


def _files(drm: Path) -> Iterator[AttributeFile]:
    for card in awake(drm):
        device = drm / card / "device"
        for file, (metric, scale) in _FILES.items():
            yield single_column(device / file, channel(metric, card, scale))
        monitors = [device / "hwmon" / name for name in entries(device / "hwmon")[0]]
        clocked = False
        for monitor in monitors:
            yield from _sensors(card, monitor)
            clocked = clocked or (monitor / "freq1_input").exists()
        if not clocked:  # hwmon tells the clock itself, the table the level asked for
            for file, metric in _CLOCKS.items():
                yield single_column(device / file, channel(metric, card, _MHZ), clock)
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
    for metric, wanted in _HEAT.items():
        file = next((labels[label] for label in wanted if label in labels), "")
        if file:
            yield single_column(monitor / file, channel(metric, card, _MILLI))


def _errors(card: str, folder: Path) -> Iterator[AttributeFile]:
    """RAS counters since the driver was loaded; ``umc`` is the device memory."""
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
        yield AttributeFile(folder / name, columns, ras)


def ras(data: bytes) -> list[int | None]:
    """Uncorrected and corrected errors of a block: lines ``ue: 0`` and ``ce: 0``."""
    counts = {kind: int(number) for kind, number in _ERRORS.findall(data)}
    return [counts.get(b"ue"), counts.get(b"ce")]


def clock(data: bytes) -> int:
    """The level in use of a ``pp_dpm`` file, marked by a star (MHz)."""
    found = _CLOCK.search(data)
    if found is None:
        raise ValueError("no level is marked as in use")
    return int(found[1])
