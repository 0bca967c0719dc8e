"""Facts: the hardware and configuration of a node, as far as they limit its jobs.

The collector reads them once a minute.  The analyzer evaluates rules on them and compares nodes.
Lists of CPUs and NUMA nodes are texts like ``0-3,8`` (``cpulist``), sizes are bytes, addresses of
PCI devices are those of sysfs (``0000:3b:00.0``).  What could not be read is ``None``, "" or left
out, never 0.  Only the processes on GPUs and the huge pages in use change from minute to minute.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from typing import Any, cast, get_args, get_origin, get_type_hints

from reveal_contract import foreign_json
from reveal_contract.foreign_names import printable
from reveal_contract.names import camel_case

FACTS_VERSION = 1
MAX_BYTES = 256 << 10  # of an announcement; real ones are below 32 KiB


class FactsError(ValueError):
    """These bytes are not facts; the text says why."""


@dataclass(frozen=True, slots=True)
class FrequencyPolicy:
    """CPUs with a common frequency policy (kernel: admin-guide/pm/cpufreq.rst); kHz."""

    cpus: str = ""
    driver: str = ""
    governor: str = ""
    preference: str = ""  # energy_performance_preference
    lowest: int | None = None  # scaling_min_freq
    highest: int | None = None  # scaling_max_freq
    possible: int | None = None  # cpuinfo_max_freq


@dataclass(frozen=True, slots=True)
class Cpu:
    """The processors (/proc/cpuinfo, /sys/devices/system/cpu)."""

    vendor: str = ""
    model: str = ""
    family: str = ""  # x86: family/model/stepping; Arm: implementer/part
    sockets: int | None = None
    cores: int | None = None
    threads: int | None = None  # of a core
    present: str = ""
    online: str = ""
    isolated: str = ""
    nohz_full: str = ""
    smt: str = ""  # on, off, forceoff, notsupported, notimplemented
    clock_flags: tuple[str, ...] = ()
    boost: bool | None = None
    policies: tuple[FrequencyPolicy, ...] = ()
    idle_driver: str = ""
    idle_governor: str = ""
    idle_disabled: tuple[str, ...] = ()  # C-states switched off, as CPU 0 has them
    mitigations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NumaNode:
    """A NUMA node: its CPUs, memory in bytes, distances as the firmware gives them."""

    node: int = 0
    cpus: str = ""
    memory: int | None = None
    distances: tuple[int, ...] = ()  # to the online nodes, in their order


@dataclass(frozen=True, slots=True)
class HugePool:
    """Huge pages of one size: of the host (``node`` None) or of a NUMA node; pages."""

    size: int = 0
    node: int | None = None
    total: int | None = None
    free: int | None = None
    reserved: int = 0  # promised, not yet taken; known for the host only


@dataclass(frozen=True, slots=True)
class Swap:
    """An area of swap; its size in bytes."""

    name: str = ""
    kind: str = ""  # partition, file
    size: int = 0


@dataclass(frozen=True, slots=True)
class Memory:
    """The host's memory, in bytes, and how it is allocated."""

    total: int | None = None
    page: int | None = None
    nodes: tuple[NumaNode, ...] = ()
    huge: tuple[HugePool, ...] = ()
    swaps: tuple[Swap, ...] = ()
    zswap: bool | None = None
    thp: str = ""  # always, madvise, never
    thp_defrag: str = ""


@dataclass(frozen=True, slots=True)
class Kernel:
    """The operating system of the host, and its boot parameters."""

    release: str = ""
    os: str = ""
    machine: str = ""  # what the firmware calls the host
    virtual: bool | None = None
    clocksource: str = ""
    clocksources: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()  # of the kernel's command line, those that matter
    services: tuple[str, ...] = ()  # that run and matter: irqbalance, containerd, ...
    sysctl: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PcieLink:
    """A PCIe link: lanes and GT/s now, what the device can do, and the port above."""

    width: int | None = None
    device_width: int | None = None
    port_width: int | None = None
    speed: float | None = None
    device_speed: float | None = None
    port_speed: float | None = None


@dataclass(frozen=True, slots=True)
class InterruptVectors:
    """The interrupts of a device in use: how many, and on which CPUs they are served.

    ``allowed``, the CPUs that may serve them, is known only where all are on one CPU.  ``managed``
    is true where the kernel chooses these CPUs and no user can change them.
    """

    count: int | None = None
    served: str = ""
    allowed: str = ""
    managed: bool | None = None


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """A PCI device that jobs depend on."""

    address: str = ""
    kind: str = ""  # gpu, network, storage
    ids: str = ""  # vendor:device, hexadecimal
    driver: str = ""
    node: int | None = None
    link: PcieLink = PcieLink()
    vectors: InterruptVectors = InterruptVectors()
    infiniband: bool | None = None  # an InfiniBand controller (PCI class 0x0207), else unknown


@dataclass(frozen=True, slots=True)
class Nic:
    """A network interface with a device, or a bond."""

    name: str = ""
    driver: str = ""
    pci: str = ""
    up: bool | None = None
    speed: int | None = None  # Mbit/s
    duplex: str = ""
    mtu: int | None = None
    rx_queues: int = 0
    tx_queues: int = 0
    rps: bool | None = None
    channels: int | None = None
    channels_most: int | None = None
    rx_ring: int | None = None  # descriptors
    rx_ring_most: int | None = None
    missed: int | None = None  # frames lost for want of a descriptor, since the driver started
    missed_per_million: int | None = None  # of the frames received in that time
    bond: str = ""  # of which it is a part


@dataclass(frozen=True, slots=True)
class Bond:
    """A bond of several interfaces."""

    name: str = ""
    mode: str = ""
    mtu: int | None = None
    parts: tuple[str, ...] = ()
    down: tuple[str, ...] = ()  # parts whose link is down
    unread: tuple[str, ...] = ()  # parts whose link cannot be read


@dataclass(frozen=True, slots=True)
class RdmaPortFacts:
    """A port of an RDMA device (kernel: ABI/stable/sysfs-class-infiniband)."""

    name: str = ""  # mlx5_0/1
    layer: str = ""  # InfiniBand, Ethernet
    state: str = ""
    rate: str = ""
    pci: str = ""
    nics: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU; the last three fields need the library of its vendor."""

    pci: str = ""
    name: str = ""
    uuid: str = ""
    persistence: bool | None = None
    ecc: bool | None = None
    mig: bool | None = None


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that uses GPUs, and where it may run (proc_pid_status(5))."""

    pid: int = 0
    name: str = ""
    gpus: tuple[str, ...] = ()  # PCI addresses
    cpus: str = ""
    memory: str = ""  # NUMA nodes it may allocate on
    cgroup: str = ""


@dataclass(frozen=True, slots=True)
class Disk:
    """A block device."""

    name: str = ""
    model: str = ""
    rotational: bool | None = None
    scheduler: str = ""
    requests: int | None = None
    pci: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """All facts of one node.  ``drivers`` are versions by name (nvidia, cuda).

    ``unread`` names the fields that could not be read in full, such as ``nics`` or
    ``memory.huge``: what they do not list may exist.
    """

    node: str = ""
    cpu: Cpu = Cpu()
    memory: Memory = Memory()
    kernel: Kernel = Kernel()
    devices: tuple[DeviceFacts, ...] = ()
    nics: tuple[Nic, ...] = ()
    bonds: tuple[Bond, ...] = ()
    ports: tuple[RdmaPortFacts, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    processes: tuple[GpuProcess, ...] = ()
    disks: tuple[Disk, ...] = ()
    drivers: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    def to_json(self) -> bytes:
        """Return canonical JSON: equal facts have equal bytes; unknown ones are left out.

        Names that are not printable are written in their printable form.
        """
        row = {"version": FACTS_VERSION, **_row(self)}
        return json.dumps(row, separators=(",", ":"), ensure_ascii=False).encode()

    @classmethod
    def from_json(cls, data: bytes | str) -> Facts:
        """Parse what ``to_json`` wrote; ``FactsError`` for anything else.

        Keys of a newer collector are ignored; keys that an older one does not have are unknown.
        """
        if len(data) > MAX_BYTES:
            raise FactsError(f"facts of {len(data)} bytes: {MAX_BYTES} are the most")
        try:
            row = foreign_json.loads(data)
        except ValueError as error:
            raise FactsError(f"facts are not JSON: {error}") from None
        if not isinstance(row, dict) or row.get("version") != FACTS_VERSION:
            raise FactsError(f"facts are not of version {FACTS_VERSION}")
        facts = _parsed(cls, row, "facts")
        assert isinstance(facts, cls)
        return facts


def _row(record: Any) -> dict[str, Any]:
    """Return a dataclass as JSON values, without unknown ones."""
    row = {}
    for spec in fields(record):
        value = _plain(getattr(record, spec.name))
        if value not in (None, "", [], {}):
            row[camel_case(spec.name)] = value
    return row


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return _row(value)
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {printable(key): _plain(value[key]) for key in sorted(value)}
    return printable(value) if isinstance(value, str) else value


def _parsed(kind: type[Any], row: object, where: str) -> Any:
    if not isinstance(row, dict):
        raise FactsError(f"{where}: {ascii(row)[:80]} is not an object")
    hints = _hints(cast("Hashable", kind))
    values = {
        spec.name: _value(hints[spec.name], row[key], f"{where}.{key}")
        for spec in fields(kind)
        if (key := camel_case(spec.name)) in row
    }
    return kind(**values)


@cache
def _hints(kind: Hashable) -> dict[str, Any]:
    return get_type_hints(kind)


def _value(hint: Any, value: object, where: str) -> Any:
    if is_dataclass(hint):
        assert isinstance(hint, type)
        return _parsed(hint, value, where)
    origin, inner = get_origin(hint), get_args(hint)
    if origin is tuple and isinstance(value, list):
        return tuple(_value(inner[0], item, where) for item in value)
    if origin is Mapping and isinstance(value, dict):
        return {printable(key): _value(inner[1], item, where) for key, item in value.items()}
    if origin in (tuple, Mapping) or not _fits(hint, value):
        raise FactsError(f"{where}: {ascii(value)[:80]} has the wrong type")
    return printable(value) if isinstance(value, str) else value


def _fits(hint: Any, value: object) -> bool:
    """Return whether a plain value has one of the types of a hint, such as ``float | None``."""
    kinds = get_args(hint) or (hint,)
    if isinstance(value, bool):
        return bool in kinds
    if isinstance(value, int) and float in kinds:
        return True
    return isinstance(value, kinds)
