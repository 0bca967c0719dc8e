"""Which of our channels a column of an older npz recording feeds, and in which unit.

Such a recording names a column ``file.field[.cpuN]`` (``stat.cpu0.user``, ``disk.vda.reads``,
``cg.work.cpuacct.usage.value``).  One column may feed several channels: a softirq of one CPU
is a channel itself and a part of the sum over CPUs.  Kind and lane stand in the catalogue; a
column whose metric has no row there is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache

from reveal_contract.catalogue import UnknownMetricError, find
from reveal_contract.channels import Channel
from reveal_contract.names import snake

TICK = 1e7  # ns: USER_HZ is 100 on every Linux
KIB, PAGE, SECTOR = 1024.0, 4096.0, 512.0  # bytes
US, MS = 1e3, 1e6  # ns

_VM_LEVELS = r"nr_(?!dirtied|written|vmscan|foll|throttled|unstable)\w+"  # pages
_IRQ_OF_ARCH = r"NMI|LOC|SPU|PMI|IWI|RTR|RES|CAL|TLB|TRM|HYP|ERR|MIS|PIN|NPI|PIW"
_DISK = {
    "reads": ("reads", 1.0),
    "rmerged": ("read_merges", 1.0),
    "rsectors": ("read_bytes", SECTOR),
    "rms": ("read_time", MS),
    "writes": ("writes", 1.0),
    "wmerged": ("write_merges", 1.0),
    "wsectors": ("write_bytes", SECTOR),
    "wms": ("write_time", MS),
    "inflight": ("in_flight", 1.0),
    "ioms": ("busy_time", MS),
    "wtms": ("queue_time", MS),
    "discards": ("discards", 1.0),
    "dmerged": ("discard_merges", 1.0),
    "dsectors": ("discard_bytes", SECTOR),
    "dms": ("discard_time", MS),
    "flushes": ("flushes", 1.0),
    "flushms": ("flush_time", MS),
}
_SUBJECT = {
    r"cpuacct\.usage\.value": ("cpu.subject.usage", 1.0),
    r"cpu\.stat\.throttled_time": ("cpu.subject.throttled_time", 1.0),
    r"cpu\.stat\.nr_throttled": ("cpu.subject.throttled_periods", 1.0),
    r"memory\.usage_in_bytes\.value": ("memory.subject.usage", 1.0),
    r"memory\.stat\.total_rss": ("memory.subject.anon", 1.0),
    r"memory\.stat\.total_cache": ("memory.subject.file", 1.0),
    r"memory\.stat\.total_pgmajfault": ("memory.subject.major_faults", 1.0),
    r"memory\.stat\.total_pgfault": ("memory.subject.page_faults", 1.0),
    r"memory\.stat\.total_workingset_refault_(?:anon|file)": ("memory.subject.refaults", 1.0),
}

# pattern -> (metric, instance, scale) of the channels it feeds; {1} a group, {s1} the same
# group as a catalogue word
Feed = tuple[str, str, float]
_RULES: list[tuple[str, tuple[Feed, ...]]] = [
    (r"stat\.cpu(\d*)\.(\w+)", (("cpu.{2}", "{1}", TICK),)),
    (r"stat\.ctxt", (("cpu.context_switches", "", 1.0),)),
    (r"stat\.(intr)", (("cpu.interrupts.total", "", 1.0),)),
    (r"stat\.softirq", (("cpu.softirqs.total", "", 1.0),)),
    (r"stat\.processes", (("cpu.forks", "", 1.0),)),
    (r"stat\.procs_running", (("cpu.procs_running", "", 1.0),)),
    (r"stat\.procs_blocked", (("storage.procs_blocked", "", 1.0),)),
    (r"meminfo\.Vmalloc(?:Total|Chunk)", ()),
    (r"meminfo\.(HugePages_\w+)", (("memory.{s1}", "", 1.0),)),
    (r"meminfo\.(.+)", (("memory.{s1}", "", KIB),)),
    (r"vmstat\.nr_dirty\w*_threshold", ()),
    (r"vmstat\.(nr_(?:kernel|shadow_call)_stack)", (("memory.vm.{s1}", "", KIB),)),
    (r"vmstat\.(nr_\w+(?:hugepages|pmdmapped))", (("memory.vm.{s1}", "", 1.0),)),
    (rf"vmstat\.({_VM_LEVELS})", (("memory.vm.{s1}", "", PAGE),)),
    (r"vmstat\.(pgpg(?:in|out))", (("memory.vm.{s1}", "", KIB),)),
    (r"vmstat\.(\w+)", (("memory.vm.{s1}", "", 1.0),)),
    (r"net\.([^.]+)\.(\w+)", (("network.nic.{2}", "{1}", 1.0),)),
    (r"tcp\.(?:Ip(?:Forwarding|DefaultTTL)|Tcp(?:Rto\w+|MaxConn))", ()),  # settings
    (r"tcp\.(TcpExt|IpExt|MPTcpExt|IcmpMsg|Icmp|UdpLite|Udp|Ip)(\w+)",
        (("network.{s1}.{s2}", "", 1.0),)),
    (r"tcp\.(Tcp)(\w+)", (("network.tcp.{s2}", "", 1.0),)),
    (r"softirq\.(NET_\w+)\.cpu(\d+)",
        (("network.softirqs", "{1}", 1.0), ("network.softirqs.percpu", "{1}/{2}", 1.0))),
    (r"softirq\.(BLOCK|IRQ_POLL)\.cpu(\d+)",
        (("storage.softirqs", "{1}", 1.0), ("storage.softirqs.percpu", "{1}/{2}", 1.0))),
    (r"softirq\.(\w+)\.cpu(\d+)",
        (("cpu.softirqs", "{1}", 1.0), ("cpu.softirqs.percpu", "{1}/{2}", 1.0))),
    (r"irq\.TLB\.cpu(\d+)", (("memory.tlb_shootdowns", "", 1.0), ("cpu.interrupts", "{1}", 1.0))),
    (r"irq\.TRM\.cpu(\d+)", (("cpu.interrupts.thermal", "", 1.0), ("cpu.interrupts", "{1}", 1.0))),
    (r"irq\.ERR\.cpu(\d+)", (("cpu.interrupts.errors", "", 1.0), ("cpu.interrupts", "{1}", 1.0))),
    (rf"irq\.({_IRQ_OF_ARCH})\.cpu(\d+)",
        (("cpu.interrupts.irq", "{1}", 1.0), ("cpu.interrupts", "{2}", 1.0))),
    (r"irq\.(\d+)\.cpu(\d+)",
        (("cpu.interrupts.irq", "{1}", 1.0), ("cpu.interrupts", "{2}", 1.0))),
    (r"sock\.(\w+)\.mem", (("network.sockets.{s1}.memory", "", PAGE),)),
    (r"sock\.(\w+)\.(\w+)", (("network.sockets.{s1}.{s2}", "", 1.0),)),
    (r"softnet\.rps\.cpu(\d+)",
        (("network.softnet.received_rps", "{1}", 1.0), ("network.softnet.received_rps", "", 1.0))),
    (r"softnet\.(\w+)\.cpu(\d+)",
        (("network.softnet.{1}", "{2}", 1.0), ("network.softnet.{1}", "", 1.0))),
    (r"loadavg\.(\w+)", (("cpu.load.{1}", "", 1.0),)),
    (r"psi\.cpu\.(some)", (("cpu.pressure.{1}", "", US),)),
    (r"psi\.memory\.(\w+)", (("memory.pressure.{1}", "", US),)),
    (r"psi\.io\.(\w+)", (("storage.pressure.{1}", "", US),)),
]  # fmt: skip
_RULES += [
    (rf"disk\.([^.]+)\.{field}", ((f"storage.disk.{name}", "{1}", scale),))
    for field, (name, scale) in _DISK.items()
]
_RULES += [
    (rf"cg\.(\w+)\.{field}", ((name, "/{1}", scale),)) for field, (name, scale) in _SUBJECT.items()
]
_COMPILED = [(re.compile(pattern), feeds) for pattern, feeds in _RULES]


def channels(names: Sequence[str], subjects: Mapping[str, str]) -> dict[Channel, list[int]]:
    """Our channels, each with the columns to add up for it.

    ``subjects`` says what the cgroups of the recording are called here, by their short names.
    """
    fed: dict[Channel, list[int]] = {}
    for index, name in enumerate(names):
        for metric, instance, scale in _feeds(name):
            subject = subjects.get(instance[1:], instance) if instance.startswith("/") else instance
            channel = _channel(metric, subject, scale)
            if channel is not None:
                fed.setdefault(channel, []).append(index)
    return fed


def _feeds(name: str) -> Iterator[Feed]:
    for pattern, feeds in _COMPILED:
        if found := pattern.fullmatch(name):
            groups = ("", *found.groups())
            words = {f"s{index}": snake(group) for index, group in enumerate(groups)}
            for metric, instance, scale in feeds:
                yield metric.format(*groups, **words), instance.format(*groups), scale
            return


@cache
def _channel(metric: str, instance: str, scale: float) -> Channel | None:
    try:
        row = find(metric)
    except UnknownMetricError:
        return None
    return Channel(metric, instance, row.kind, scale, row.lane)
