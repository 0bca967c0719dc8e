"""GPUs of a host: index, UUID, PCI address, NUMA node and MIG instances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from reveal_collector.devices.pci import numa_node
from reveal_collector.nvml import library
from reveal_collector.nvml.library import Handle, Library
from reveal_collector.readers.source import Roots


@dataclass(frozen=True)
class MigDevice:
    """One compute instance of a GPU in MIG mode; ids are reused, UUIDs are not."""

    uuid: str
    gpu_instance: int
    compute_instance: int
    name: str


@dataclass(frozen=True)
class Gpu:
    """One GPU; ``index`` is NVML's and may change with a reboot, ``uuid`` stays.

    ``pci_bus_id`` is written as in sysfs ("0000:3b:00.0"); ``numa_node`` is that of the PCI device.
    """

    index: int
    uuid: str
    name: str
    pci_bus_id: str
    numa_node: int | None
    mig_enabled: bool = False
    mig: tuple[MigDevice, ...] = ()


@dataclass(frozen=True)
class GpuDevice:
    """A GPU with its NVML handles; ``mig_handles`` has the order of ``gpu.mig``."""

    gpu: Gpu
    handle: Handle = field(compare=False)
    mig_handles: tuple[Handle, ...] = field(default=(), compare=False)

    @property
    def instances(self) -> Iterator[tuple[str, Handle]]:
        """Channel instance and handle: "0" for the GPU, "0/MIG-..." for its MIG instances."""
        yield str(self.gpu.index), self.handle
        for mig, handle in zip(self.gpu.mig, self.mig_handles, strict=True):
            yield f"{self.gpu.index}/{mig.uuid}", handle


def gpus(roots: Roots) -> tuple[Gpu, ...]:
    """Return all GPUs of this host; raises ``Unsupported`` without a driver."""
    nvml = library.load()
    library.start(nvml)
    try:
        return tuple(device.gpu for device in enumerate_gpus(nvml, roots.sys))
    finally:
        library.stop(nvml)


class Enumeration(NamedTuple):
    """The GPUs that the driver counts: those that answer, and the indices of those that do not.

    ``refused`` is the number of those that this process may not use.
    """

    devices: tuple[GpuDevice, ...]
    silent: tuple[int, ...]
    refused: int


def enumerate_gpus(nvml: Library, sys: Path) -> tuple[GpuDevice, ...]:
    """Return the GPUs that answer, by index; raises ``NVMLError`` if the driver is gone."""
    return enumerate_all(nvml, sys).devices


def enumerate_all(nvml: Library, sys: Path) -> Enumeration:
    """Return all GPUs that the driver counts; raises ``NVMLError`` if the driver is gone."""
    found, silent, refused = [], [], 0
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            found.append(_gpu_device(nvml, sys, index))
        except nvml.NVMLError as error:
            if library.is_driver_gone(error.value):
                raise
            if library.is_refused(error.value):
                refused += 1
            else:
                silent.append(index)
    return Enumeration(tuple(found), tuple(silent), refused)


def _gpu_device(nvml: Library, sys: Path, index: int) -> GpuDevice:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    address = sysfs_address(library.text(nvml.nvmlDeviceGetPciInfo(handle).busId))
    mig_enabled = _mig_enabled(nvml, handle)
    mig_devices = tuple(_mig_devices(nvml, handle)) if mig_enabled else ()
    gpu = Gpu(
        index=index,
        uuid=library.text(nvml.nvmlDeviceGetUUID(handle)),
        name=library.text(nvml.nvmlDeviceGetName(handle)),
        pci_bus_id=address,
        numa_node=numa_node(sys / "bus/pci/devices" / address),
        mig_enabled=mig_enabled,
        mig=tuple(mig for mig, _ in mig_devices),
    )
    return GpuDevice(gpu, handle, tuple(mig_handle for _, mig_handle in mig_devices))


def sysfs_address(bus_id: str) -> str:
    """Return a bus id of NVML ("00000000:3B:00.0") as sysfs writes it ("0000:3b:00.0")."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{domain.lstrip('0').zfill(4)}:{rest}"


def _mig_enabled(nvml: Library, handle: Handle) -> bool:
    try:
        current, _ = nvml.nvmlDeviceGetMigMode(handle)
    except nvml.NVMLError:
        return False
    return bool(current)


def _mig_devices(nvml: Library, handle: Handle) -> Iterator[tuple[MigDevice, Handle]]:
    for index in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            mig_handle = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
        except nvml.NVMLError:  # the indices in use may have gaps
            continue
        device = MigDevice(
            library.text(nvml.nvmlDeviceGetUUID(mig_handle)),
            nvml.nvmlDeviceGetGpuInstanceId(mig_handle),
            nvml.nvmlDeviceGetComputeInstanceId(mig_handle),
            library.text(nvml.nvmlDeviceGetName(mig_handle)),
        )
        yield device, mig_handle
