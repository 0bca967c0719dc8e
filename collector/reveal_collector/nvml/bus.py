"""NVIDIA's GPUs on the PCI bus: how many the driver should list, whatever it answers.

The driver has a folder for each GPU that it controls (``/proc/driver/nvidia/gpus``, README of the
driver).  In a container that may use some GPUs only, it has the folders of these.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from reveal_collector.devices.pci import pci_devices
from reveal_collector.readers.sysfs_attributes import (
    entries,
    link_target,
    parse_fields,
    read_text,
)

DRIVER_FOLDER = Path("/proc/driver/nvidia/gpus")
_NVIDIA = "0x10de"


class BusGpus:
    """The GPUs on the bus by address, listed again when the bus has other devices."""

    def __init__(self, sys: Path, driver_folder: Path) -> None:
        self._folder, self._driver_folder = sys / "bus/pci/devices", driver_folder
        self._sys = sys
        self._entries: tuple[tuple[str, ...], ...] = ()
        self._models: dict[str, str] = {}

    def unlisted(self, listed: Collection[str]) -> tuple[str, ...]:
        """Return the addresses of GPUs that should be among the ``listed`` ones.

        These are GPUs that the driver controls, and those that it did not take although it
        controls others of the same model.  A GPU of a virtual machine (vfio-pci) is not one.
        """
        self._update()
        models = {self._models[address] for address in listed if address in self._models}
        missing = (address for address in self._models if address not in listed)
        return tuple(address for address in missing if self._is_expected(address, models))

    def _update(self) -> None:
        found = entries(self._folder)
        if found == self._entries:
            return
        self._entries = found
        self._models = {
            device.address: read_text(device.path / "device")
            for device in pci_devices(self._sys)
            if device.kind == "gpu" and read_text(device.path / "vendor") == _NVIDIA
        }

    def _is_expected(self, address: str, models: Collection[str]) -> bool:
        if link_target(self._folder / address / "driver"):
            fields = parse_fields(read_text(self._driver_folder / address / "information"))
            return bool(fields) and fields.get("GPU Excluded", "No") == "No"
        model = self._models[address]
        return bool(model) and model in models
