"""What a collector needs on its node beyond an ordinary container: one row for each need.

Namespaces, mounts and the security context are built from this table for both values of
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
from reveal_operator.profile import CollectorSpec


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
_GPUS = ("nvml", "nvml-state", "nvml-subjects")
# sources that read files of other processes
_OF_OTHERS = ("subject-network", "subject-storage", "process-groups")
_LOWEST_FREE_PORT = 1024

SECCOMP, APPARMOR, SELINUX = "seccomp", "AppArmor", "SELinux"

NEEDS: tuple[Need, ...] = (
    Need(
        NeedKind.MOUNT, "/proc",
        "the kernel's own figures of the host; a container's procfs shows the container",
        "everything",
    ),
    Need(
        NeedKind.MOUNT, "/sys",
        "devices, cgroups and tracefs of the host, with all that is mounted below it",
        "everything but what stands in /proc",
    ),
    Need(
        NeedKind.NAMESPACE, "hostPID",
        "cgroup.procs and the GPU driver name processes by the reader's PID namespace: those"
        " outside of it are 0 there, or left out",
        "whose processes are whose: network by pod, process groups, who uses the GPUs",
    ),
    Need(
        NeedKind.NAMESPACE, "hostNetwork",
        "sock_diag, rtnetlink and ethtool answer for the network namespace of who asks",
        "`tcpdiag`, `qdisc`, `ethtool` and the rings of cards among the facts: they would tell of"
        " the pod's own network",
    ),
    Need(
        NeedKind.USER, "runAsUser: 0",
        "Kubernetes gives capabilities to root only; energy meters (0400) and tracefs (0700) are"
        " root's",
        "all that the capabilities below are for; `tracepoints`, and `energy` by powercap",
    ),
    Need(
        NeedKind.CAPABILITY, "PERFMON",
        "perf_event_open for all processes of a CPU, whatever kernel.perf_event_paranoid says;"
        " Linux 5.8 and later, before it is a part of SYS_ADMIN, which only Privileged has",
        "all that is counted by perf events; energy is read from powercap instead",
        gone=_COUNTED, less=("energy",),
    ),
    Need(
        NeedKind.CAPABILITY, "SYS_PTRACE",
        "/proc/PID/io, /proc/PID/ns and /proc/PID/root are shown to who might trace the process"
        " (PTRACE_MODE_READ); nothing is ever traced",
        "network by pod, I/O of process groups and, where cgroups do not count it, by pod, room on"
        " the host's file systems; among the facts the name of the host's system",
        gone=("filesystems",), less=_OF_OTHERS,
    ),
    Need(
        NeedKind.CAPABILITY, "DAC_READ_SEARCH",
        "/proc/PID/io (0400) belongs to the user of the process, and file systems are mounted"
        " below folders that are closed to others",
        "I/O of processes of other users; room on file systems mounted there",
        less=("subject-storage", "process-groups", "filesystems"),
    ),
    Need(
        NeedKind.CAPABILITY, "SYS_NICE",
        "SCHED_FIFO for the thread that ticks: it sleeps nearly always, and a host that is"
        " saturated is when its ticks matter. A kernel that groups real-time tasks"
        " (CONFIG_RT_GROUP_SCHED, cgroup version 1) gives the cgroups of pods no real time, and"
        " refuses it all the same: then the thread runs at nice -20, which takes this right too",
        "punctual ticks: on a saturated host they come 10 ms late instead of 0.1 ms",
    ),
    Need(
        NeedKind.CAPABILITY, "NET_BIND_SERVICE",
        "a metricsPort below 1024 is a privileged port of the host",
        "the collector's own metrics",
        when=lambda collector: 0 < collector.metrics_port < _LOWEST_FREE_PORT,
    ),
    Need(
        NeedKind.UNCONFINED, SECCOMP,
        "the default profile of CRI-O refused perf_event_open to who has PERFMON alone until the"
        " end of 2025, containerd's before 1.6.9; a profile of our own would have to be put on"
        " every node",
        "all that is counted by perf events, where the runtime's profile refuses them",
        gone=_COUNTED, less=("energy",),
    ),
    Need(
        NeedKind.UNCONFINED, APPARMOR,
        "the default profiles of the runtimes forbid ptrace of processes outside of them,"
        " reading included",
        "as without SYS_PTRACE, on hosts with AppArmor",
        gone=("filesystems",), less=_OF_OTHERS,
    ),
    Need(
        NeedKind.UNCONFINED, SELINUX,
        "container_t may neither see processes of other types nor open perf events; spc_t may,"
        " and is ignored where there is no SELinux",
        "as without SYS_PTRACE and PERFMON, on hosts with SELinux",
        gone=("filesystems", *_COUNTED), less=_OF_OTHERS,
    ),
    Need(
        NeedKind.VARIABLE, "NVIDIA_VISIBLE_DEVICES=all",
        "asks NVIDIA's runtime (the default one, or runtimeClassName) for all GPUs without"
        " taking one from the pods; a toolkit set up to ignore this in unprivileged containers"
        " (accept-nvidia-visible-devices-envvar-when-unprivileged=false) wants Privileged",
        "NVIDIA GPUs",
        gone=_GPUS,
    ),
    Need(
        NeedKind.VARIABLE, "NVIDIA_DRIVER_CAPABILITIES=utility",
        "of the driver only NVML is mounted, not what computes",
        "NVIDIA GPUs",
        gone=_GPUS,
    ),
)  # fmt: skip


def sources_of(collector: CollectorSpec) -> frozenset[str]:
    """Return the sources of a profile, as the collector's registry selects them."""
    chosen = set(collector.sources.include) or set(NAMES)
    if not collector.perf_cgroups:
        chosen -= set(WITH_PERF_CGROUPS)
    return frozenset(chosen - set(collector.sources.exclude))


def needs_of(collector: CollectorSpec, needs: Iterable[Need] = NEEDS) -> tuple[Need, ...]:
    """Return what this profile's collectors need, in the order of the table."""
    sources = sources_of(collector)
    return tuple(
        need
        for need in needs
        if need.when(collector) and (not need.sources or sources & set(need.sources))
    )


def names_of(collector: CollectorSpec, kind: NeedKind) -> tuple[str, ...]:
    """Return the names of the needs of one kind."""
    return tuple(need.what for need in needs_of(collector) if need.kind is kind)
