"""GPUs and who uses them.

The devices are found on the PCI bus; what only the vendor's library knows (persistence, ECC,
processes) is asked of a function, and is unknown without one.  Where a process may run is the
kernel's: proc_pid_status(5), Cpus_allowed_list and Mems_allowed_list; cgroups(7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from reveal_collector.facts import files
from reveal_collector.readers.source import Roots
from reveal_contract.facts import Device, Gpu, GpuProcess

_MOST_PROCESSES = 64


@dataclass(frozen=True)
class NvmlAnswer:
    """What a vendor's library said: GPUs, and the GPUs' addresses by process id."""

    gpus: Sequence[Gpu] = ()
    processes: Sequence[tuple[int, str]] = ()
    versions: Mapping[str, str] = field(default_factory=dict)


QueryGpus = Callable[[], NvmlAnswer]


def gpus(roots: Roots, devices: Iterable[Device], asked: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """Every GPU on the bus; what the library said of it, else what the driver shows."""
    known = {gpu.pci: gpu for gpu in asked}
    return tuple(
        known.get(device.address) or _from_driver(roots, device.address)
        for device in devices
        if device.kind == "gpu"
    )


def _from_driver(roots: Roots, address: str) -> Gpu:
    folder = roots.proc / "driver/nvidia/gpus" / address
    told = files.parse_fields(files.read_text(folder / "information"))
    return Gpu(pci=address, name=told.get("Model", ""), uuid=told.get("GPU UUID", ""))


def versions(roots: Roots) -> dict[str, str]:
    """Versions of the drivers that are loaded and say theirs."""
    modules = ("nvidia", "amdgpu", "mlx5_core", "bnxt_en", "ice")
    told = {name: files.read_text(roots.sys / f"module/{name}/version") for name in modules}
    return {name: version for name, version in told.items() if version}


def processes(roots: Roots, uses: Iterable[tuple[int, str]]) -> tuple[GpuProcess, ...]:
    """Where the processes that use GPUs may run; those that ended meanwhile are left out."""
    by_pid: dict[int, set[str]] = {}
    for pid, address in uses:
        by_pid.setdefault(pid, set()).add(address)
    found = (_process(roots, pid, by_pid[pid]) for pid in sorted(by_pid)[:_MOST_PROCESSES])
    return tuple(process for process in found if process)


def _process(roots: Roots, pid: int, addresses: set[str]) -> GpuProcess | None:
    place = roots.proc / str(pid)
    told = files.parse_fields(files.read_text(place / "status"))
    if "Cpus_allowed_list" not in told:
        return None
    return GpuProcess(
        pid=pid,
        name=told.get("Name", ""),
        gpus=tuple(sorted(addresses)),
        cpus=told["Cpus_allowed_list"],
        memory=told.get("Mems_allowed_list", ""),
        cgroup=cgroup(files.read_text(place / "cgroup")),
    )


def cgroup(lines: str) -> str:
    """The cgroup that says most: of CPU accounting under version 1, else the unified one."""
    paths = {}
    for line in lines.splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        for controller in controllers.split(","):
            paths[controller] = path
    best = (paths.get(name, "") for name in ("cpuacct", "cpu", ""))
    return next((path for path in best if path not in ("", "/")), "")
