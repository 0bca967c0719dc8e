"""All sources, by explicit list: what to build, what opens here, what does not and why."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from reveal_collector.kernel.errors import Unsupported
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
from reveal_collector.subjects.pods.podlist import NoPods, PodSource
from reveal_collector.subjects.pods.process_owner import ProcessOwner
from reveal_collector.subjects.tracker import SubjectSelection, SubjectTracker
from reveal_contract import plugins
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
    swaps.sources,
    filesystems.sources,
    nvml.sources,
)


class MissingSource(NamedTuple):
    """A source this host does not give: why, and what would grant it."""

    source: str
    reason: str
    remedy: str


class Probed(NamedTuple):
    """What ``probe_all`` found: ``sources`` are open and belong to the caller now.

    ``absent`` are closed, and may open later: a driver is loaded, a card is plugged in.
    """

    sources: list[Source]
    missing: list[MissingSource]
    absent: list[Source]


def roots_of(settings: CollectorSettings) -> Roots:
    return Roots(Path(settings.proc_root), Path(settings.sys_root), Path(settings.cgroup_root))


def build(roots: Roots, settings: CollectorSettings) -> list[Source]:
    """The sources the settings ask for, none opened yet.

    ``include`` and ``exclude`` hold names of sources; an unknown one raises ``SettingsError``.
    """
    tracker = subject_tracker(roots, settings)
    made: list[Source] = []
    for factory in (*FACTORIES, *plugins.parts("sources")):
        if factory is nvml.sources:
            owner = PidOwner(roots.proc, tracker)
            made += nvml.sources(roots, settings.gpu_profiling, owner)
        else:
            made += factory(roots)
    made += cgroups.subject_sources(roots, tracker)
    if settings.perf_cgroups:
        made.append(SubjectEvents(roots, tracker))
    if settings.fine_lane != "off":
        made.append(FineCpu(tracker))
    return selected(made, settings.include, settings.exclude)


def subject_tracker(roots: Roots, settings: CollectorSettings) -> SubjectTracker:
    """The subjects of this host, which several sources share."""
    selection = SubjectSelection(
        settings.max_subjects, settings.leave_out_subjects, settings.container_subjects
    )
    return SubjectTracker(hierarchies(roots.cgroup), selection, pod_source(settings))


class PidOwner:
    """The subject of a process: a tracked one, else what its cgroup or process group says."""

    def __init__(self, proc: Path, tracker: SubjectTracker) -> None:
        self._proc, self._tracker = proc, tracker
        self._other = ProcessOwner(proc)

    def __call__(self, pid: int) -> str | None:
        try:
            return self._tracker.subject_of(pid, self._proc) or self._other(pid)
        except OSError:
            return None


def pod_source(settings: CollectorSettings) -> PodSource:
    """Where the names of pods come from, as the settings say."""
    if settings.pod_source == "api":
        # its TLS takes 6 MB, which only a node of Kubernetes needs
        from reveal_collector.subjects.pods.api import ApiPods, access_of  # noqa: PLC0415

        return ApiPods(partial(access_of, settings), settings.node)
    if settings.pod_source == "file":
        return FilePods(Path(settings.pod_file), settings.node)
    return NoPods()


def selected(
    sources: Sequence[Source], include: Sequence[str], exclude: Sequence[str]
) -> list[Source]:
    """Those to run, in their order: all or the included ones, less the excluded ones."""
    known = {source.name for source in sources}
    unknown = [name for name in (*include, *exclude) if name not in known]
    if unknown:
        raise SettingsError(
            f"no such source: {', '.join(unknown)}; known are {', '.join(sorted(known))}"
        )
    wanted = set(include) or known
    return [source for source in sources if source.name in wanted and source.name not in exclude]


def probe_all(roots: Roots, settings: CollectorSettings) -> Probed:
    """Open every source the settings ask for; one that does not open never stops the others."""
    opened: list[Source] = []
    missing: list[MissingSource] = []
    absent: list[Source] = []
    for source in build(roots, settings):
        lacking = _open(source)
        if lacking is None:
            opened.append(source)
        else:
            source.close()
            missing.append(lacking)
            absent.append(source)
    return Probed(opened, missing, absent)


def _open(source: Source) -> MissingSource | None:
    try:
        source.open()
    except Unsupported as lacking:
        return MissingSource(source.name, lacking.reason, lacking.remedy)
    except Exception as error:  # garbled files of a foreign tree, a defect of one source
        log.debug("source %s does not open", source.name, exc_info=True)
        return MissingSource(source.name, f"cannot be opened: {error}", "")
    return None
