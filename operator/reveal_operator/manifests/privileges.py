"""What a collector needs on its node beyond an ordinary container: one row for each need.

Namespaces, mounts and the security context are built from this table for all values of
``privilege``, and so is docs/reference/privileges.md.  A need whose sources the profile excludes is
not requested.  The tests run the collector without each of them.

Sources: capabilities(7), ptrace(2) "access mode checking", perf_event_open(2), pid_namespaces(7),
the Kubernetes API reference of SecurityContext, and the default profiles of the runtimes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from reveal_contract.sources import NAMES, WITH_PERF_CGROUPS
from reveal_operator.profile import (
    LOGS_FOLDER,
    WITHHELD,
    WITHHELD_SOURCES,
    CollectorSpec,
    PodSource,
    Privilege,
)


class NeedKind(StrEnum):
    """What kind of right it is."""

    NAMESPACE = "namespace of the host"
    USER = "user"
    CAPABILITY = "capability"
    MOUNT = "path of the host, read-only"
    UNCONFINED = "confinement lifted"
    VARIABLE = "environment"


def _always(collector: CollectorSpec) -> bool:
    return True


def _reads_logs_folder(collector: CollectorSpec) -> bool:
    return collector.pod_source is PodSource.LOGS


@dataclass(frozen=True)
class Need:
    """One right.

    Without it the sources in ``gone`` do not open, and those in ``less`` lose ``lost``.  With
    neither, all sources need it.  ``when`` decides which profiles need it at all.
    """

    kind: NeedKind
    what: str
    why: str
    lost: str
    gone: tuple[str, ...] = ()
    less: tuple[str, ...] = ()
    when: Callable[[CollectorSpec], bool] = _always

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources that need it."""
        return (*self.gone, *self.less)


_COUNTED = (
    "perf", "tracepoints", "pmu", "msr", "smi", "cstates", "uncore", *WITH_PERF_CGROUPS,
)  # fmt: skip
_LEDGER = ("ledger",)
_GPUS = ("nvml", "nvml-state", "nvml-subjects")
# sources that read files of other processes
_OF_OTHERS = ("subject-network", "subject-storage", "process-groups")
_LOWEST_FREE_PORT = 1024

SECCOMP, APPARMOR, SELINUX = "seccomp", "AppArmor", "SELinux"

NEEDS: tuple[Need, ...] = (
    Need(
        NeedKind.MOUNT, "/proc",
        "the kernel's values for the host; the procfs of a container shows the container",
        "everything",
    ),
    Need(
        NeedKind.MOUNT, "/sys",
        "devices, cgroups and tracefs of the host, with all that is mounted below it",
        "everything except what is in /proc",
    ),
    Need(
        NeedKind.MOUNT, f"{LOGS_FOLDER}/pods",
        "the kubelet names the folder of the logs of a pod by its namespace, name and uid. No log"
        " is read. Only with podSource: Logs, which needs no access to the Kubernetes API",
        "the names of pods",
        when=_reads_logs_folder,
    ),
    Need(
        NeedKind.MOUNT, f"{LOGS_FOLDER}/containers",
        "links to the logs, whose names have the ids of containers. Only with podSource: Logs",
        "the names of containers",
        when=_reads_logs_folder,
    ),
    Need(
        NeedKind.NAMESPACE, "hostPID",
        "cgroup.procs and the GPU driver list processes by the PID namespace of the reader."
        " Processes outside of it are listed as 0, or not at all",
        "the mapping of processes to pods: network by pod, process groups, users of the GPUs",
    ),
    Need(
        NeedKind.NAMESPACE, "hostNetwork",
        "sock_diag, rtnetlink and ethtool answer for the network namespace of the caller",
        "`tcpdiag`, `qdisc`, `ethtool`, and the ring sizes of network cards among the facts: they"
        " would describe the network of the pod",
    ),
    Need(
        NeedKind.USER, "runAsUser: 0",
        "Kubernetes gives capabilities to root only. Energy meters (mode 0400) and tracefs (0700)"
        " belong to root",
        "everything that the capabilities below give; `tracepoints`, and `energy` from powercap",
    ),
    Need(
        NeedKind.CAPABILITY, "PERFMON",
        "perf_event_open for all processes of a CPU, for any value of"
        " kernel.perf_event_paranoid. It exists since Linux 5.8. Older kernels require SYS_ADMIN,"
        " which only Privileged has",
        "everything that perf events count; energy is read from powercap instead, where the host"
        " has it; who takes time from whom: the lost-time ledger is read from times of threads",
        gone=(*_COUNTED, *_LEDGER), less=("energy",),
    ),
    Need(
        NeedKind.CAPABILITY, "BPF",
        "loading the programs that follow threads. They read the scheduler's data, which takes"
        " PERFMON as well, and write only their own maps. It exists since Linux 5.8",
        "who takes time from whom: the lost-time ledger is read from times of threads",
        gone=_LEDGER,
    ),
    Need(
        NeedKind.CAPABILITY, "SYS_PTRACE",
        "only a process that may trace another one can read its /proc/PID/io, /proc/PID/ns and"
        " /proc/PID/root (PTRACE_MODE_READ). The collector traces nothing",
        "network by pod; I/O of process groups; I/O by pod where cgroups do not count it; free"
        " space of the host's file systems; the name of the operating system among the facts",
        gone=("filesystems",), less=_OF_OTHERS,
    ),
    Need(
        NeedKind.CAPABILITY, "DAC_READ_SEARCH",
        "/proc/PID/io (mode 0400) belongs to the user of the process, and some file systems are"
        " mounted below folders that other users cannot enter",
        "I/O of processes of other users; free space of file systems that are mounted there",
        less=("subject-storage", "process-groups", "filesystems"),
    ),
    Need(
        NeedKind.CAPABILITY, "SYS_NICE",
        "SCHED_FIFO for the sampling thread. The thread sleeps nearly all the time, but it must"
        " run on time when the host is saturated. A kernel with real-time group scheduling"
        " (CONFIG_RT_GROUP_SCHED, cgroup version 1) refuses SCHED_FIFO in the cgroups of pods"
        " even with this capability. The thread then runs at nice -20, which needs the"
        " capability, too",
        "samples on time: on a saturated host they are 10 ms late instead of 0.1 ms",
    ),
    Need(
        NeedKind.CAPABILITY, "NET_BIND_SERVICE",
        "a metricsPort below 1024 is a privileged port of the host",
        "the collector's own metrics",
        when=lambda collector: 0 < collector.metrics_port < _LOWEST_FREE_PORT,
    ),
    Need(
        NeedKind.UNCONFINED, SECCOMP,
        "the default profiles of CRI-O until the end of 2025, and of containerd before 1.6.9,"
        " refuse perf_event_open to a process that has PERFMON alone, and older ones bpf to"
        " a process that has BPF alone. A profile of Reveal's own would have to be installed on"
        " every node",
        "everything that perf events count, and the lost-time ledger, where the profile of the"
        " runtime refuses them",
        gone=(*_COUNTED, *_LEDGER), less=("energy",),
    ),
    Need(
        NeedKind.UNCONFINED, APPARMOR,
        "the default profiles of the runtimes forbid ptrace access, also for reading, to"
        " processes outside of the profile",
        "the same as without SYS_PTRACE, on hosts with AppArmor",
        gone=("filesystems",), less=_OF_OTHERS,
    ),
    Need(
        NeedKind.UNCONFINED, SELINUX,
        "the type container_t may not see processes of other types, open perf events or load BPF"
        " programs."
        " The type spc_t may. It has no effect on hosts without SELinux",
        "the same as without SYS_PTRACE and PERFMON, on hosts with SELinux",
        gone=("filesystems", *_COUNTED, *_LEDGER), less=_OF_OTHERS,
    ),
    Need(
        NeedKind.VARIABLE, "NVIDIA_VISIBLE_DEVICES=all",
        "asks NVIDIA's runtime (the default one, or that of runtimeClassName) for all GPUs, and"
        " takes none from the pods. A toolkit with"
        " accept-nvidia-visible-devices-envvar-when-unprivileged=false ignores it in unprivileged"
        " containers: use Privileged there",
        "NVIDIA GPUs",
        gone=_GPUS,
    ),
    Need(
        NeedKind.VARIABLE, "NVIDIA_DRIVER_CAPABILITIES=utility",
        "the runtime mounts only NVML of the driver, not the compute libraries",
        "NVIDIA GPUs",
        gone=_GPUS,
    ),
)  # fmt: skip


def sources_of(collector: CollectorSpec) -> frozenset[str]:
    """Return the sources of a profile, as the collector's registry selects them."""
    chosen = set(collector.sources.include) or set(NAMES)
    if not collector.perf_cgroups:
        chosen -= set(WITH_PERF_CGROUPS)
    if collector.privilege is Privilege.RESTRICTED:
        chosen -= set(WITHHELD_SOURCES)
    return frozenset(chosen - set(collector.sources.exclude))


def needs_of(collector: CollectorSpec, needs: Iterable[Need] = NEEDS) -> tuple[Need, ...]:
    """Return what this profile's collectors need, in the order of the table."""
    sources = sources_of(collector)
    withheld = WITHHELD if collector.privilege is Privilege.RESTRICTED else ()
    return tuple(
        need
        for need in needs
        if need.when(collector) and (not need.sources or sources & set(need.sources))
        if need.what not in withheld
    )


def names_of(collector: CollectorSpec, kind: NeedKind) -> tuple[str, ...]:
    """Return the names of the needs of one kind."""
    return tuple(need.what for need in needs_of(collector) if need.kind is kind)
