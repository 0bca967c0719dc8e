"""Facts of a host that breaks no configuration rule, and the same with changes."""

from __future__ import annotations

from dataclasses import replace

from reveal_contract.facts import (
    Bond,
    Cpu,
    DeviceFacts,
    Facts,
    FrequencyPolicy,
    Gpu,
    GpuProcess,
    HugePool,
    InterruptVectors,
    Kernel,
    Memory,
    Nic,
    NumaNode,
    PcieLink,
    RdmaPortFacts,
    Swap,
)

GIB = 1 << 30
GPU, CARD, DRIVE = "0000:3b:00.0", "0000:5e:00.0", "0000:81:00.0"
WIDE = PcieLink(16, 16, 16, 32.0, 32.0, 32.0)

# a bare-metal host of two sockets without any fault
SOUND = Facts(
    node="n",
    cpu=Cpu(
        vendor="GenuineIntel", sockets=2, present="0-15", online="0-15", smt="on", boost=True,
        clock_flags=("constant_tsc", "nonstop_tsc"),
        policies=(FrequencyPolicy("0-15", "intel_pstate", "powersave", "balance_performance",
                                  800_000, 3_800_000, 3_800_000),),
    ),
    memory=Memory(
        total=512 * GIB,
        nodes=(NumaNode(0, "0-7", 255 * GIB, (10, 21)), NumaNode(1, "8-15", 257 * GIB, (21, 10))),
        huge=(HugePool(1 * GIB, None, 16, 2), HugePool(2 << 20, None, 100, 100)),
        swaps=(Swap("/dev/sda2", "partition", GIB),), zswap=False,
        thp="always", thp_defrag="madvise",
    ),
    kernel=Kernel(
        virtual=False, clocksource="tsc", clocksources=("tsc", "hpet"), services=("irqbalance",),
        sysctl={"vm.swappiness": "60", "vm.zone_reclaim_mode": "0"},
    ),
    devices=(
        DeviceFacts(GPU, "gpu", "10de:2330", "nvidia", 0, WIDE),
        DeviceFacts(CARD, "network", "15b3:1021", "mlx5_core", 0, WIDE,
                    InterruptVectors(16, "0-7", "0-15")),
        DeviceFacts(DRIVE, "storage", "144d:a80a", "nvme", 1, PcieLink(4, 4, 4, 16.0, 16.0, 32.0),
               InterruptVectors(17, "0-15", "0-15")),
    ),
    nics=(
        Nic("eth0", "mlx5_core", CARD, True, 100_000, "full", 9000, 16, 16, channels=16,
            channels_most=63, rx_ring=1024, rx_ring_most=8192, missed=0, bond="bond0"),
        Nic("eth1", "mlx5_core", "", True, 100_000, "full", 9000, 16, 16, bond="bond0"),
    ),
    bonds=(Bond("bond0", "802.3ad", 9000, ("eth0", "eth1")),),
    ports=(RdmaPortFacts("mlx5_0/1", "InfiniBand", "ACTIVE", "400 Gb/sec (4X NDR)", CARD),),
    gpus=(Gpu(GPU, "NVIDIA H100", persistence=True),),
    processes=(GpuProcess(77, "python", (GPU,), "0-7", "0", "/slurm/job_7"),),
)  # fmt: skip


def cpu(**changes: object) -> Facts:
    return replace(SOUND, cpu=replace(SOUND.cpu, **changes))  # type: ignore[arg-type]


def memory(**changes: object) -> Facts:
    return replace(SOUND, memory=replace(SOUND.memory, **changes))  # type: ignore[arg-type]


def kernel(**changes: object) -> Facts:
    return replace(SOUND, kernel=replace(SOUND.kernel, **changes))  # type: ignore[arg-type]


def sysctl(**changes: str) -> Facts:
    prefixed = {f"vm.{name}": value for name, value in changes.items()}
    return kernel(sysctl={**SOUND.kernel.sysctl, **prefixed})


def policy(**changes: object) -> Facts:
    return cpu(policies=(replace(SOUND.cpu.policies[0], **changes),))  # type: ignore[arg-type]


def device(address: str, facts: Facts = SOUND, **changes: object) -> Facts:
    devices = tuple(
        replace(each, **changes) if each.address == address else each  # type: ignore[arg-type]
        for each in facts.devices
    )
    return replace(facts, devices=devices)


def nic(**changes: object) -> Facts:
    return replace(SOUND, nics=(replace(SOUND.nics[0], **changes), *SOUND.nics[1:]))  # type: ignore[arg-type]


def process(**changes: object) -> Facts:
    return replace(SOUND, processes=(replace(SOUND.processes[0], **changes),))  # type: ignore[arg-type]


def guest(facts: Facts) -> Facts:
    return replace(facts, kernel=replace(facts.kernel, virtual=True))


def unknown(facts: Facts) -> Facts:
    return replace(facts, kernel=replace(facts.kernel, virtual=None))


def idle(facts: Facts) -> Facts:
    return replace(facts, processes=())


def split(first: str, second: str, far: int = 12) -> Facts:
    """Sub-NUMA nodes: 0 and 1 on one socket."""
    nodes = (
        NumaNode(0, first, 256 * GIB, (10, far)),
        NumaNode(1, second, 256 * GIB, (far, 10)),
    )
    return memory(nodes=nodes)


def isolated(cpus: str, vectors: InterruptVectors) -> Facts:
    """A host with isolated CPUs, whose network card is served as given."""
    facts = cpu(isolated=cpus, nohz_full=cpus)
    flags = (f"isolcpus={cpus}", f"nohz_full={cpus}")
    return device(CARD, replace(facts, kernel=replace(facts.kernel, flags=flags)), vectors=vectors)


def housekeeping(cpus: str, vectors: InterruptVectors) -> Facts:
    """A host where the boot parameters leave these CPUs for interrupts."""
    return device(CARD, kernel(flags=(f"irqaffinity={cpus}",)), vectors=vectors)
