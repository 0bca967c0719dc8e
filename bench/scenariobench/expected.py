"""Which causes and culprits are right for each fault of the menu."""

from __future__ import annotations

from scenariobench.clip import RecordedFault
from scenariobench.subject_table import pod_name

# names of hypotheses; several where the recorded fault has the signature of each
CAUSES: dict[str, tuple[str, ...]] = {
    "cpu_contend": ("CPUContention",),
    "pin_cpu1": ("OneCPUOverloaded",),
    "cpu_hog1_half": ("OneCPUOverloaded",),
    "ctxt_storm": ("ContextSwitchStorm", "CPUContention"),
    "ctxt_weak": ("ContextSwitchStorm",),
    "fork_storm": ("ForkStorm", "CPUContention"),
    "fork_weak": ("ForkStorm",),
    "timer_irqs": ("InterruptPressure",),
    "cpu_quota": ("CPUQuotaThrottling",),
    "quota_half": ("CPUQuotaThrottling",),
    "stalled": ("StalledSubject",),
    "page_faults": ("PageFaultStorm",),
    "tlb_shootdown": ("TLBShootdowns", "PageFaultStorm"),
    "mlock": ("MemoryLocked",),
    "mlock_weak": ("MemoryLocked",),
    "hugepages": ("HugePagesIdle",),
    "hugepages_weak": ("HugePagesIdle",),
    "memcg_thrash": ("MemoryPressure",),
    "oom_kill": ("OOMKill",),
    "zram_swap": ("Swapping",),
    "leak": ("MemoryLeak",),
    "dirty": ("WritebackBurst", "WritersThrottled", "FlushStorm"),
    "dirty_weak": ("WritebackBurst",),
    "read_burst": ("StorageReadBurst",),
    "fio_sync": ("StorageReadBurst",),
    "fio_libaio": ("StorageReadBurst",),
    "slow_reads": ("BlockedOnIO", "SlowDevice"),
    "slow_disk": ("SlowDevice", "BlockedOnIO"),
    "loss_5": ("PacketLoss", "IntrinsicRetransmission"),
    "loss_1": ("PacketLoss", "IntrinsicRetransmission"),
    "rate_limit": ("TrafficShaped", "BandwidthLimited"),
    "backlog_drop": ("ReceiveBacklogOverflow",),
    "link_flap": ("LinkFlap", "IntrinsicRetransmission", "PacketLoss"),
    "udp_rcvbuf": ("UDPBufferOverflow",),
    "softirq": ("SoftirqPressure", "PacketStorm"),
    "softirq_weak": ("PacketStorm", "SoftirqPressure"),
    "row_remap": ("GPURowRemapPending",),
}


def causes_of(fault: str) -> frozenset[str]:
    """Return the names of the hypotheses that are right; none: any, or a score alone."""
    return frozenset(CAUSES.get(fault, ()))


def culprits_of(fault: RecordedFault) -> frozenset[str]:
    """Return the pods that may be named first; none where no process is at fault."""
    return frozenset() if fault.subject is None else frozenset((pod_name(fault.subject),))
