"""The explicit list of all sources: builds them and finds which ones open on this host."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.ledger.source import Ledger
from reveal_collector.ledger.thread_source import ThreadLedger
from reveal_collector.readers.opening import Opening, SourceOpener
from reveal_collector.readers.source import Roots, Source
from reveal_collector.sources import (
    amdgpu,
    buddy,
    cpuclock,
    cpufreq,
    cpuidle,
    cstates,
    diskstats,
    edac,
    energy,
    ethtool,
    filesystems,
    hardware,
    hugepages,
    hwmon,
    infiniband,
    interrupts,
    loadavg,
    md,
    meminfo,
    msr,
    netdev,
    netstat,
    nic,
    numa,
    nvml,
    online,
    pcie,
    perf,
    psi,
    qdisc,
    sockstat,
    softirqs,
    softnet,
    stat,
    swaps,
    tcpdiag,
    uncore,
    vmstat,
    zram,
)
from reveal_collector.subjects import cgroups
from reveal_collector.subjects.cgroup_files import hierarchies
from reveal_collector.subjects.fine_cpu import FineCpu
from reveal_collector.subjects.perf import SubjectEvents
from reveal_collector.subjects.pods.file import FilePods
from reveal_collector.subjects.pods.log_folders import LogFolderPods
from reveal_collector.subjects.pods.podlist import NoPods, PodSource
from reveal_collector.subjects.pods.process_owner import ProcessOwner
from reveal_collector.subjects.processes import ProcessGroups
from reveal_collector.subjects.tracker import SubjectSelection, SubjectTracker
from reveal_contract import ledger, plugins
from reveal_contract.foreign_names import printable
from reveal_contract.settings import CollectorSettings, SettingsError

log = logging.getLogger(__name__)

FACTORIES: tuple[Callable[[Roots], list[Source]], ...] = (
    stat.sources,
    online.sources,
    cpuclock.sources,
    softirqs.sources,
    interrupts.sources,
    loadavg.sources,
    meminfo.sources,
    vmstat.sources,
    numa.sources,
    hugepages.sources,
    buddy.sources,
    psi.sources,
    diskstats.sources,
    netdev.sources,
    netstat.sources,
    sockstat.sources,
    softnet.sources,
    nic.sources,
    qdisc.sources,
    tcpdiag.sources,
    cpufreq.sources,
    cpuidle.sources,
    energy.sources,
    hwmon.sources,
    msr.sources,
    cstates.sources,
    hardware.sources,
    uncore.sources,
    perf.sources,
    edac.sources,
    pcie.sources,
    infiniband.sources,
    ethtool.sources,
    amdgpu.sources,
    zram.sources,
    md.sources,
    swaps.sources,
    filesystems.sources,
    nvml.sources,
)


# who excludes a source does not get what takes its place where the host does not permit it
_FALLBACKS = {ledger.SOURCE: ledger.THREADS_SOURCE}


class MissingSource(NamedTuple):
    """A source that is not available on this host: the reason, and a remedy."""

    source: str
    reason: str
    remedy: str


class Probed(NamedTuple):
    """Result of ``probe_all``: the caller owns ``sources``, which are open.

    ``absent`` sources are closed and may open later: a driver is loaded, a card is plugged in.
    Those of them whose opening hangs are in ``hung``, by name.
    """

    sources: list[Source]
    missing: list[MissingSource]
    absent: list[Source]
    hung: dict[str, Opening]


def roots_of(settings: CollectorSettings) -> Roots:
    """Return the roots of the host's file systems in the settings."""
    return Roots(Path(settings.proc_root), Path(settings.sys_root), Path(settings.cgroup_root))


def build(roots: Roots, settings: CollectorSettings) -> list[Source]:
    """Return the sources that the settings request; none is open yet.

    ``include`` and ``exclude`` contain names of sources; an unknown one raises ``SettingsError``.
    """
    tracker = subject_tracker(roots, settings)
    sources: list[Source] = []
    for factory in (*FACTORIES, *plugins.parts("sources")):
        if factory is nvml.sources:
            owner = PidOwner(roots.proc, tracker)
            sources += nvml.sources(roots, settings.gpu_profiling, owner)
        else:
            sources += factory(roots)
    sources += cgroups.subject_sources(roots, tracker)
    groups = next(source for source in sources if isinstance(source, ProcessGroups))
    lost_time = Ledger(roots, tracker, groups.instance_of)
    sources += [lost_time, ThreadLedger(roots, tracker, lambda: bool(lost_time.channels))]
    if settings.perf_cgroups:
        sources.append(SubjectEvents(roots, tracker))
    if settings.fine_lane != "off":
        sources.append(FineCpu(tracker))
    return selected(sources, settings.include, settings.exclude)


def subject_tracker(roots: Roots, settings: CollectorSettings) -> SubjectTracker:
    """Return the tracker of this host's subjects, which several sources share."""
    selection = SubjectSelection(
        settings.max_subjects, settings.leave_out_subjects, settings.container_subjects
    )
    return SubjectTracker(hierarchies(roots.cgroup), selection, pod_source(settings))


class PidOwner:
    """Returns the subject of a process: a tracked one, else its cgroup or process group."""

    def __init__(self, proc: Path, tracker: SubjectTracker) -> None:
        self._proc, self._tracker = proc, tracker
        self._other = ProcessOwner(proc)

    def __call__(self, pid: int) -> str | None:
        """Return the subject of this process, or None where it has ended."""
        try:
            return self._tracker.subject_of(pid, self._proc) or self._other(pid)
        except OSError:
            return None


def pod_source(settings: CollectorSettings) -> PodSource:
    """Return the source of pod names that the settings request."""
    if settings.pod_source == "api":
        # its TLS library takes 6 MB, which only a Kubernetes node needs
        from reveal_collector.subjects.pods.api import ApiPods, access_of  # noqa: PLC0415

        return ApiPods(partial(access_of, settings), settings.node)
    if settings.pod_source == "file":
        return FilePods(Path(settings.pod_file), settings.node)
    if settings.pod_source == "logs":
        return LogFolderPods(Path(settings.pod_logs_folder))
    return NoPods()


def selected(
    sources: Sequence[Source], include: Sequence[str], exclude: Sequence[str]
) -> list[Source]:
    """Return the included or all sources, without the excluded ones, in their order."""
    known = {source.name for source in sources}
    unknown = [name for name in (*include, *exclude) if name not in known]
    if unknown:
        raise SettingsError(
            f"no such source: {', '.join(unknown)}; known are {', '.join(sorted(known))}"
        )
    requested = set(include) or known
    excluded = {*exclude, *(_FALLBACKS[name] for name in exclude if name in _FALLBACKS)}
    return [each for each in sources if each.name in requested and each.name not in excluded]


def probe_all(roots: Roots, settings: CollectorSettings) -> Probed:
    """Open every source that the settings request; one that hangs never stops the others."""
    probed = Probed([], [], [], {})
    opener = SourceOpener()
    for source in build(roots, settings):
        opening = opener.open(source)
        if (refusal := opening.refusal()) is None:
            probed.sources.append(source)
            continue
        if refusal is opening.error:
            source.close()
        else:
            probed.hung[source.name] = opening
        probed.absent.append(source)
        probed.missing.append(_missing(source.name, refusal))
    opener.close()
    return probed


def _missing(source: str, refusal: Exception) -> MissingSource:
    """Return why a source did not open."""
    if isinstance(refusal, Unsupported):
        return MissingSource(source, printable(refusal.reason), refusal.remedy)
    log.debug("source %s does not open", source, exc_info=refusal)
    return MissingSource(source, printable(f"cannot be opened: {refusal}"), "")
