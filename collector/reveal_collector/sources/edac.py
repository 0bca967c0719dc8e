"""Memory errors counted by EDAC: by controller, and by the module that an operator replaces.

Kernel: Documentation/ABI/testing/sysfs-devices-edac.  A controller lists its modules as
``dimmN`` or ``rankN``.  Kernels and drivers that know only chip-select rows list ``csrowN``, with
one counter of correctable errors per channel.  Drivers of the memory controller and of firmware
(``ghes_edac``) fill the same files.  The counters are in memory and cheap to read, but there are
many and nearly all are 0, so an unchanged one is read only every ten seconds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sysfs_attributes import (
    AttributeFile,
    AttributeSource,
    entries,
    read_text,
    single_column,
)
from reveal_collector.readers.textfile import channel
from reveal_contract.metric import Lane

_CONTROLLER = re.compile(r"mc\d+\Z")
_MODULE = re.compile(r"(?:dimm|rank)\d+\Z")
_ROW = re.compile(r"csrow\d+\Z")
_CHANNEL = re.compile(r"ch(\d+)_ce_count\Z")
_OF_CONTROLLER = {
    "ce_count": "correctable", "ue_count": "uncorrectable",
    "ce_noinfo_count": "correctable_unplaced", "ue_noinfo_count": "uncorrectable_unplaced",
}  # fmt: skip
_QUIET_PERIOD = 10


def sources(roots: Roots) -> list[Source]:
    folder = roots.sys / "devices/system/edac/mc"

    def layout_state() -> object:
        controllers = _named(folder, _CONTROLLER)
        return entries(folder, *controllers)

    absent = Unsupported(
        "no memory controller reports its errors",
        "use ECC memory with an EDAC driver; most virtual machines have none",
    )
    return [
        AttributeSource(
            "edac", Lane.SLOW, lambda: _attribute_files(folder), layout_state, absent, _QUIET_PERIOD
        )
    ]


def _attribute_files(folder: Path) -> Iterator[AttributeFile]:
    for controller in _named(folder, _CONTROLLER):
        for file, metric in _OF_CONTROLLER.items():
            yield single_column(controller / file, channel(f"memory.ecc.{metric}", controller.name))
        modules = _named(controller, _MODULE)
        for module in modules:
            yield from _of_module(controller.name, module)
        if not modules:
            for row in _named(controller, _ROW):
                yield from _of_row(controller.name, row)


def _of_module(controller: str, module: Path) -> Iterator[AttributeFile]:
    instance = module_instance(controller, module.name, read_text(module / "dimm_label"))
    yield single_column(module / "dimm_ce_count", channel("memory.ecc.dimm.correctable", instance))
    yield single_column(
        module / "dimm_ue_count", channel("memory.ecc.dimm.uncorrectable", instance)
    )


def _of_row(controller: str, row: Path) -> Iterator[AttributeFile]:
    instance = module_instance(controller, row.name, "")
    yield single_column(row / "ue_count", channel("memory.ecc.dimm.uncorrectable", instance))
    for entry in sorted(entries(row)[0]):
        if number := _CHANNEL.match(entry):
            label = read_text(row / f"ch{number[1]}_dimm_label")
            instance = module_instance(controller, f"{row.name}/ch{number[1]}", label)
            yield single_column(row / entry, channel("memory.ecc.dimm.correctable", instance))


def module_instance(controller: str, module: str, label: str) -> str:
    """Return the position of a module in EDAC's tree and, if the driver knows it, its label.

    Drivers without a label repeat the position, or leave the label empty or unusable.
    """
    words = " ".join(label.split())
    unknown = not words or words.lower().startswith(("any memory", "unknown", "mc#"))
    return f"{controller}/{module}" if unknown else f"{controller}/{module} {words}"


def _named(folder: Path, pattern: re.Pattern[str]) -> list[Path]:
    """Return the entries of a folder whose names match, ordered by their numbers."""
    names = [name for name in entries(folder)[0] if pattern.match(name)]
    return [folder / name for name in sorted(names, key=lambda name: (len(name), name))]
