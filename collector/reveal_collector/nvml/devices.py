"""Which GPUs there are: index, UUID, place on the bus and in the host, MIG instances."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from reveal_collector.devices.pci import numa_node
from reveal_collector.nvml import library
from reveal_collector.nvml.library import Handle, Library
from reveal_collector.readers.source import Roots


@dataclass(frozen=True)
class MigDevice:
    """One compute instance of a GPU in MIG mode; ids are given again, UUIDs never."""

    uuid: str
    gpu_instance: int
    compute_instance: int
    name: str


@dataclass(frozen=True)
class Gpu:
    """One GPU.  ``index`` is NVML's and may be another after a reboot; ``uuid`` stays.

    ``pci_bus_id`` is as in sysfs ("0000:3b:00.0"), ``numa_node`` that of the PCI device.
    """

    index: int
    uuid: str
    name: str
    pci_bus_id: str
    numa_node: int | None
    mig_enabled: bool = False
    mig: tuple[MigDevice, ...] = ()


@dataclass(frozen=True)
class Device:
    """A GPU with the handles to ask it by; ``mig_handles`` in the order of ``gpu.mig``."""

    gpu: Gpu
    handle: Handle = field(compare=False)
    mig_handles: tuple[Handle, ...] = field(default=(), compare=False)

    @property
    def instances(self) -> Iterator[tuple[str, Handle]]:
        """Channel instance and handle: "0" of the GPU, "0/MIG-..." of its parts."""
        yield str(self.gpu.index), self.handle
        for part, handle in zip(self.gpu.mig, self.mig_handles, strict=True):
            yield f"{self.gpu.index}/{part.uuid}", handle


def gpus(roots: Roots) -> tuple[Gpu, ...]:
    """All GPUs of this host; raises ``Unsupported`` without a driver."""
    nvml = library.load()
    library.start(nvml)
    try:
        return tuple(device.gpu for device in devices(nvml, roots.sys))
    finally:
        library.stop(nvml)


def devices(nvml: Library, sys: Path) -> tuple[Device, ...]:
    """The GPUs that answer, in the order of their index; raises ``NVMLError`` for none of all."""
    found = []
    for index in range(nvml.nvmlDeviceGetCount()):
        try:
            found.append(_device(nvml, sys, index))
        except nvml.NVMLError as error:
            if library.is_gone(error.value):
                raise
    return tuple(found)


def _device(nvml: Library, sys: Path, index: int) -> Device:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    bus = sysfs_address(library.text(nvml.nvmlDeviceGetPciInfo(handle).busId))
    enabled = _mig_enabled(nvml, handle)
    parts = tuple(_parts(nvml, handle)) if enabled else ()
    gpu = Gpu(
        index=index,
        uuid=library.text(nvml.nvmlDeviceGetUUID(handle)),
        name=library.text(nvml.nvmlDeviceGetName(handle)),
        pci_bus_id=bus,
        numa_node=numa_node(sys / "bus/pci/devices" / bus),
        mig_enabled=enabled,
        mig=tuple(part for part, _ in parts),
    )
    return Device(gpu, handle, tuple(of_part for _, of_part in parts))


def sysfs_address(bus_id: str) -> str:
    """NVML's bus id ("00000000:3B:00.0") as sysfs writes it ("0000:3b:00.0")."""
    domain, _, rest = bus_id.lower().partition(":")
    return f"{domain.lstrip('0').zfill(4)}:{rest}"


def _mig_enabled(nvml: Library, handle: Handle) -> bool:
    try:
        current, _ = nvml.nvmlDeviceGetMigMode(handle)
    except nvml.NVMLError:
        return False
    return bool(current)


def _parts(nvml: Library, handle: Handle) -> Iterator[tuple[MigDevice, Handle]]:
    for place in range(nvml.nvmlDeviceGetMaxMigDeviceCount(handle)):
        try:
            part = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, place)
        except nvml.NVMLError:  # places are not filled one after the other
            continue
        made = MigDevice(
            library.text(nvml.nvmlDeviceGetUUID(part)),
            nvml.nvmlDeviceGetGpuInstanceId(part),
            nvml.nvmlDeviceGetComputeInstanceId(part),
            library.text(nvml.nvmlDeviceGetName(part)),
        )
        yield made, part
