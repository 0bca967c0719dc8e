"""GPUs and the processes that use them.

The devices are found on the PCI bus.  Data that only the vendor's library has (persistence, ECC,
processes) come from a function, and are unknown without it.  Where a process may run is in
proc_pid_status(5), Cpus_allowed_list and Mems_allowed_list; cgroups(7).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reveal_collector.facts import files
from reveal_collector.readers.source import Roots
from reveal_contract.facts import DeviceFacts, Gpu, GpuProcess

_MOST_PROCESSES = 64


@dataclass(frozen=True)
class NvmlAnswer:
    """Data of a vendor's library: GPUs, and (process id, GPU address) pairs.

    ``resting`` GPUs save power and may have a slow link.  ``complete`` is false where processes
    may be missing.
    """

    gpus: Sequence[Gpu] = ()
    processes: Sequence[tuple[int, str]] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    resting: Collection[str] = ()
    complete: bool = True


QueryGpus = Callable[[], NvmlAnswer]


def gpus(roots: Roots, devices: Iterable[DeviceFacts], asked: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """Return every GPU on the bus, with the library's data or else the driver's."""
    known = {gpu.pci: gpu for gpu in asked}
    return tuple(
        known.get(device.address) or _from_driver(roots, device.address)
        for device in devices
        if device.kind == "gpu"
    )


def _from_driver(roots: Roots, address: str) -> Gpu:
    folder = roots.proc / "driver/nvidia/gpus" / address
    fields = files.parse_fields(files.read_text(folder / "information"))
    return Gpu(pci=address, name=fields.get("Model", ""), uuid=fields.get("GPU UUID", ""))


def without_resting_links(
    devices: Iterable[DeviceFacts], resting: Collection[str]
) -> tuple[DeviceFacts, ...]:
    """Return the devices, without the link speed of GPUs that save power."""
    return tuple(
        replace(device, link=replace(device.link, speed=None))
        if device.address in resting
        else device
        for device in devices
    )


def versions(roots: Roots) -> dict[str, str]:
    """Return the versions of the loaded drivers that report one."""
    modules = ("nvidia", "amdgpu", "mlx5_core", "bnxt_en", "ice")
    found = {name: files.read_text(roots.sys / f"module/{name}/version") for name in modules}
    return {name: version for name, version in found.items() if version}


def processes(roots: Roots, uses: Iterable[tuple[int, str]]) -> tuple[GpuProcess, ...]:
    """Return where the processes that use GPUs may run; processes that have ended are omitted.

    Of too many, each GPU keeps its first ones.
    """
    by_pid: dict[int, set[str]] = {}
    for pid, address in uses:
        by_pid.setdefault(pid, set()).add(address)
    chosen = sorted(_spread(by_pid)[:_MOST_PROCESSES])
    found = (_process(roots, pid, by_pid[pid]) for pid in chosen)
    return tuple(process for process in found if process)


def _spread(by_pid: Mapping[int, Collection[str]]) -> list[int]:
    """Return the processes: the first of each GPU, then the second of each, and so on."""
    positions: dict[int, int] = {}
    counts: dict[str, int] = {}
    for pid in sorted(by_pid):
        positions[pid] = min(counts.get(address, 0) for address in by_pid[pid])
        for address in by_pid[pid]:
            counts[address] = counts.get(address, 0) + 1
    return sorted(positions, key=lambda pid: (positions[pid], pid))


def _process(roots: Roots, pid: int, addresses: set[str]) -> GpuProcess | None:
    path = roots.proc / str(pid)
    fields = files.parse_fields(files.read_text(path / "status"))
    if "Cpus_allowed_list" not in fields:
        return None
    return GpuProcess(
        pid=pid,
        name=fields.get("Name", ""),
        gpus=tuple(sorted(addresses)),
        cpus=fields["Cpus_allowed_list"],
        memory=fields.get("Mems_allowed_list", ""),
        cgroup=cgroup(files.read_text(path / "cgroup")),
    )


def cgroup(lines: str) -> str:
    """Return the most specific cgroup: of CPU accounting in version 1, else the unified one."""
    paths = {}
    for line in filter(None, lines.split("\n")):
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        for controller in controllers.split(","):
            paths[controller] = path
    best = (paths.get(name, "") for name in ("cpuacct", "cpu", ""))
    return next((path for path in best if path not in ("", "/")), "")
