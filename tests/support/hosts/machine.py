"""What a made-up host is made of: the numbers its files follow from."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

GIB = 1 << 30


@dataclass(frozen=True)
class Nic:
    """A network interface; without ``pci`` a virtual one."""

    name: str
    pci: str = ""
    driver: str = "virtio_net"
    speed: int = 10_000  # Mbit/s; -1 where the driver does not say
    mtu: int = 1500
    numa: int = -1
    queues: int = 1
    up: bool = True
    rate: int = 2_000_000  # bytes a second received, half of it sent
    reset_after: int = 0  # ms after which its driver is loaded again and counts from 0


@dataclass(frozen=True)
class Disk:
    """A block device; ``rate`` is requests a second."""

    name: str
    pci: str = ""
    driver: str = "virtio_blk"
    numa: int = -1
    queues: int = 1
    rate: int = 200
    partitions: int = 0


@dataclass(frozen=True)
class Machine:
    """CPUs are numbered as firmware mostly does: first threads of all cores, then second ones."""

    cpus: int = 2
    numa_nodes: int = 1
    sockets: int = 1
    threads: int = 1
    memory: int = 8 * GIB
    page: int = 4096
    kernel: tuple[int, int] = (6, 8)
    arch: str = "x86_64"
    nics: tuple[Nic, ...] = (Nic("eth0", "0000:00:03.0"),)
    disks: tuple[Disk, ...] = (Disk("vda", "0000:00:02.0", partitions=1),)
    psi: bool = True
    schedstat: bool = True
    virtual: bool = False

    @property
    def cores(self) -> int:
        return self.cpus // self.threads

    def core(self, cpu: int) -> int:
        return cpu % self.cores

    def node(self, cpu: int) -> int:
        """The NUMA node of a CPU."""
        return self.core(cpu) * self.numa_nodes // self.cores

    def socket(self, cpu: int) -> int:
        return self.core(cpu) * self.sockets // self.cores

    def cpus_of(self, node: int) -> list[int]:
        return [cpu for cpu in range(self.cpus) if self.node(cpu) == node]


def ranges(numbers: Iterable[int]) -> str:
    """``0-3,8``: how the kernel writes lists of CPUs."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in parts)


def mask(numbers: Iterable[int]) -> str:
    """``ff,ffffffff``: how the kernel writes sets of CPUs."""
    bits = sum(1 << number for number in numbers)
    words = []
    while bits or not words:
        words.append(f"{bits & 0xFFFF_FFFF:08x}")
        bits >>= 32
    return ",".join(reversed(words))


# two sockets of two cores with two threads each: the smallest host that has all there is to sum
SERVER = Machine(cpus=8, sockets=2, numa_nodes=2, threads=2)
