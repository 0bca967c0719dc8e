"""Attribution to subjects: their counters during an episode compared with the minute before."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.derive.columns import in_catalogue
from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.subjects.directory import (
    KEPT_S,
    Directory,
    KnownSubjects,
    SubjectKey,
    SubjectSource,
    no_subjects,
)
from reveal_analyzer.subjects.shares import Shares, host_indices, host_value, split
from reveal_contract import catalogue
from reveal_contract.channels import Channel
from reveal_contract.finding import Confidence, Pod, Subject
from reveal_contract.metric import Capacity, Harm, Scope, Subsystem
from reveal_contract.subjects import Identity
from reveal_contract.time_units import NS_PER_SECOND

_BEFORE_S = 60  # before an episode: compared with the seconds of the episode
_MARGIN_S = 3  # just before the onset: may already belong to the episode
_LEAST_CHANGE = 0.5  # asinh units; a subject that changed less is not named
_MOST_NAMED = 5
_MOST_PRESENT = 3
_NODE_MEMORY = 24 << 30  # bytes; the real size does not matter for a ranking
_PROCESS_GROUP_PREFIX = "pgrp:"
# metrics that are searched where a hypothesis names none
_DEFAULT_METRICS = {
    Subsystem.CPU: ("cpu.subject.throttled_time", "cpu.subject.usage"),
    Subsystem.MEMORY: (
        "memory.subject.oom_kills", "memory.subject.limit_hits", "memory.subject.refaults",
        "memory.subject.scanned", "memory.subject.usage", "memory.subject.page_faults",
    ),
    Subsystem.STORAGE: (
        "storage.subject.pressure", "storage.subject.read_bytes", "storage.subject.write_bytes",
    ),
    Subsystem.NETWORK: (
        "network.subject.retrans_segs", "network.subject.drops", "network.subject.rx_bytes",
        "network.subject.tx_bytes", "cpu.subject.usage",
    ),
    Subsystem.GPU: (
        "gpu.subject.sm_utilization", "gpu.subject.memory_used", "cpu.subject.usage",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class _Layout:
    """Where one channel table has the subjects' channels and the host's of the same metrics."""

    keys: tuple[tuple[str, str], ...]  # metric, instance
    host: Mapping[str, tuple[int, ...]]  # indices into the kept values of a second
    kept: Indices

    @classmethod
    def of(cls, channels: Sequence[Channel]) -> _Layout:
        found = [(index, c) for index, c in enumerate(channels) if is_subject_level(c)]
        kept = [index for index, _ in found]
        host = {}
        for metric, indices in host_indices(channels).items():
            host[metric] = tuple(range(len(kept), len(kept) + len(indices)))
            kept += indices
        return cls(tuple((c.metric, c.instance) for _, c in found), host, np.array(kept, np.intp))


class _Row(NamedTuple):
    """One second as it was received; it is interpreted only when an episode needs it."""

    start_ns: int
    layout: _Layout
    kept: Floats

    def subjects(self) -> Iterable[tuple[str, str, float]]:
        """Yield metric, instance and value; the value is 0 if nothing was read."""
        values = np.nan_to_num(self.kept[: len(self.layout.keys)]).tolist()
        for (metric, instance), value in zip(self.layout.keys, values, strict=True):
            yield metric, instance, value

    def host(self) -> Iterable[tuple[str, float]]:
        """Yield each subject metric with the host's value."""
        for metric, indices in self.layout.host.items():
            yield metric, host_value(metric, indices, lambda index: float(self.kept[index]))


@dataclass
class _Means:
    """Means over some seconds, by metric: of each subject and of the host."""

    subjects: dict[str, dict[SubjectKey, float]] = field(default_factory=dict)
    host: dict[str, float] = field(default_factory=dict)

    def shares(self, metric: str, directory: Directory) -> Shares:
        values = self.subjects.get(metric, {})
        by_name = {directory.unique_name(key): value for key, value in values.items()}
        return split(by_name, directory.parents, self.host.get(metric, float("nan")))


@dataclass(frozen=True)
class _ShareChange:
    """Change of one metric of one subject in asinh units, and its share before and now."""

    key: SubjectKey
    metric: str
    change: float
    percent: float
    percent_before: float


@dataclass(frozen=True)
class CulpritQuery:
    """Which subjects to look for.

    ``metrics`` are the metrics that a hypothesis points to; if empty, the default metrics of the
    subsystem are used.  ``fell`` asks for the subjects that lost instead of those that grew.
    """

    metrics: Sequence[str]
    subsystem: Subsystem
    fell: bool = False


class _Comparison(NamedTuple):
    """The directory of an episode's time, and means during and before the episode."""

    directory: Directory
    during: _Means
    before: _Means


class SubjectHistory:
    """Counters of the subjects of one node over the last minutes.

    ``source`` returns the node's subject table as it is now.
    """

    def __init__(self, source: SubjectSource = no_subjects) -> None:
        self._subjects = KnownSubjects(source)
        self._rows: deque[_Row] = deque(maxlen=KEPT_S)
        self._channels: tuple[Channel, ...] = ()
        self._layout = _Layout.of(())
        self._latest: tuple[tuple[int, int], _Comparison] | None = None

    def push(self, second: Second) -> None:
        """Keep the counters of one second."""
        if second.plan.channels is not self._channels:
            self._channels = second.plan.channels
            self._layout = _Layout.of(self._channels)
        kept = second.channels[self._layout.kept]
        self._rows.append(_Row(second.start_ns, self._layout, kept))
        self._latest = None

    def culprits(self, query: CulpritQuery, first_ns: int, last_ns: int) -> NamedSubjects:
        """Return the subjects that changed most from before to during an episode, most first."""
        directory, during, before = self._compare(first_ns, last_ns)
        largest: dict[SubjectKey, _ShareChange] = {}
        for metric in query.metrics or _DEFAULT_METRICS[query.subsystem]:
            for change in _changes(metric, during, before, directory):
                # less of a harmful metric: the subject neither caused nor suffered anything
                if _is_relief(change) and not query.fell:
                    continue
                known = largest.get(change.key)
                if known is None or abs(change.change) > abs(known.change):
                    largest[change.key] = change
        ranked = sorted(
            largest.values(), key=lambda c: (-_guilt(c.change, query.fell), c.key.instance)
        )
        onset_ns = first_ns - _MARGIN_S * NS_PER_SECOND
        ranked = [
            change for change in _without_replaced(ranked, directory)
            if directory.existed_after(change.key, onset_ns)
        ]  # fmt: skip
        moved = [c for c in ranked[:_MOST_NAMED] if abs(c.change) >= _LEAST_CHANGE]
        # a finding without a culprit still names the pods that run on the node
        return _name(moved or _present(largest.values(), directory), directory, query)

    def victims(self, metrics: Sequence[str], first_ns: int, last_ns: int) -> tuple[str, ...]:
        """Return the names of the subjects to which these metrics did harm, most first.

        A metric without a harmful direction, such as CPU time, harms a subject that gets less.
        """
        directory, during, before = self._compare(first_ns, last_ns)
        loss: dict[SubjectKey, float] = {}
        for metric in metrics:
            rising = catalogue.find(metric).harm is Harm.HIGHER
            for change in _changes(metric, during, before, directory):
                lost = change.change if rising else -change.change
                loss[change.key] = max(lost, loss.get(change.key, 0.0))
        ranked = sorted(loss, key=lambda key: (-loss[key], key.instance))
        hurt = [key for key in ranked if loss[key] >= _LEAST_CHANGE][:_MOST_NAMED]
        return tuple(directory.display_name(key) for key in hurt)

    def identify(self, instance: str, time_ns: int) -> NamedSubjects:
        """Return the subject of an instance at a time, whether or not its share changed."""
        directory = self._directory()
        change = _ShareChange(directory.key(instance, time_ns), "cpu.subject.usage", 0.0, 0.0, 0.0)
        return _name([change], directory, CulpritQuery((), Subsystem.CPU))

    def _compare(self, first_ns: int, last_ns: int) -> _Comparison:
        """Return means of an episode and of the minute before it.

        The result is kept until the next second, because culprits and victims are asked for
        together.
        """
        if self._latest is None or self._latest[0] != (first_ns, last_ns):
            directory = self._directory()
            onset_ns = first_ns - _MARGIN_S * NS_PER_SECOND
            during = self._means(first_ns, last_ns, directory)
            before = self._means(onset_ns - _BEFORE_S * NS_PER_SECOND, onset_ns, directory)
            self._latest = (first_ns, last_ns), _Comparison(directory, during, before)
        return self._latest[1]

    def _directory(self) -> Directory:
        return Directory(self._subjects.current(self._rows[-1].start_ns if self._rows else 0))

    def _means(self, first_ns: int, last_ns: int, directory: Directory) -> _Means:
        """Return means over a time; a second without a subject counts as 0 for it."""
        rows = [row for row in self._rows if first_ns <= row.start_ns < last_ns]
        means = _Means()
        for row in rows:
            for metric, instance, value in row.subjects():
                of_metric = means.subjects.setdefault(metric, {})
                key = directory.key(instance, row.start_ns)
                of_metric[key] = of_metric.get(key, 0.0) + value / len(rows)
            for metric, value in row.host():
                means.host[metric] = means.host.get(metric, 0.0) + value / len(rows)
        return means


def _without_replaced(ranked: Sequence[_ShareChange], directory: Directory) -> list[_ShareChange]:
    """Return the changes without subjects that a later one of the same instance replaced.

    A subject that ended stays if no other has taken its instance.
    """
    latest = {change.key.instance for change in ranked if directory.is_latest(change.key)}
    return [
        change for change in ranked
        if directory.is_latest(change.key) or change.key.instance not in latest
    ]  # fmt: skip


def _guilt(change: float, fell: bool) -> float:
    """Return how likely a change makes its subject the cause.

    A subject that grew is more likely the cause, one that shrank the victim: a fall counts a
    quarter.
    """
    return -change if fell else max(change, -change / 4)


def _is_relief(change: _ShareChange) -> bool:
    """Return whether the subject has less of a harmful metric than before."""
    return change.change < 0 and catalogue.find(change.metric).harm is Harm.HIGHER


def is_subject_level(channel: Channel) -> bool:
    """Return whether a channel belongs to a subject and is meaningful as a level."""
    if not channel.instance or not in_catalogue(channel):
        return False
    metric = catalogue.find(channel.metric)
    return metric.scope is Scope.SUBJECT and metric.source != "subject-fine"


def _changes(
    metric: str, during: _Means, before: _Means, directory: Directory
) -> list[_ShareChange]:
    row = catalogue.find(metric)
    quantum = row.quantum * (_NODE_MEMORY if row.capacity is Capacity.MEMORY else 1.0)
    now, then = during.shares(metric, directory), before.shares(metric, directory)
    changes = []
    for key in {**during.subjects.get(metric, {}), **before.subjects.get(metric, {})}:
        name = directory.unique_name(key)
        used, used_before = now.own.get(name, 0.0), then.own.get(name, 0.0)
        change = float(np.arcsinh(used / quantum) - np.arcsinh(used_before / quantum))
        changes.append(_ShareChange(key, metric, change, now.percent(name), then.percent(name)))
    return changes


def _present(changes: Iterable[_ShareChange], directory: Directory) -> list[_ShareChange]:
    """Return the pods that run on the node, largest share first."""
    running = [
        change for change in changes
        if change.percent >= 1 and (identity := directory.identity(change.key)) is not None
        and identity.namespace and not identity.until_ns
    ]  # fmt: skip
    return sorted(running, key=lambda change: -change.percent)[:_MOST_PRESENT]


@dataclass(frozen=True)
class NamedSubjects:
    """Subjects as a finding lists them: pods, and all others."""

    pods: tuple[Pod, ...] = ()
    subjects: tuple[Subject, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Pods by namespace and name, then the others."""
        pods = (f"{pod.namespace}/{pod.name}" for pod in self.pods)
        return (*pods, *(subject.name for subject in self.subjects))

    @property
    def first(self) -> str:
        """The name of the foremost one; empty if there is none."""
        return next(iter(self.names), "")


def _name(
    changes: Iterable[_ShareChange], directory: Directory, query: CulpritQuery
) -> NamedSubjects:
    """Return the pods and subjects of these changes; an identity with a namespace is a pod's."""
    pods, subjects = [], []
    for change in changes:
        identity = directory.identity(change.key)
        confidence = _confidence(change, identity, query)
        share, gain = round(change.percent), round(change.percent - change.percent_before)
        if identity is not None and identity.namespace:
            pod = directory.identity(
                directory.key(f"{identity.namespace}/{identity.name}", identity.since_ns)
            )
            uid = pod.uid if pod is not None else identity.uid
            pods.append(Pod(identity.namespace, identity.name, uid, identity.container,
                            share, gain, confidence))  # fmt: skip
        else:
            kind = identity.kind.value if identity else _kind(change.key.instance)
            subjects.append(Subject(kind, change.key.instance, share, gain, confidence))
    return NamedSubjects(tuple(pods), tuple(subjects))


def _kind(instance: str) -> str:
    """Return the kind of a subject that was not announced."""
    if instance.startswith(_PROCESS_GROUP_PREFIX):
        return "ProcessGroup"
    return "Unit" if instance.endswith((".service", ".scope", ".slice")) else "Cgroup"


def _confidence(change: _ShareChange, identity: Identity | None, query: CulpritQuery) -> Confidence:
    """Return how a subject's part is known.

    It is measured if the subject has its own counter of the requested metric, and inferred from
    another metric otherwise.
    """
    if abs(change.change) < _LEAST_CHANGE:
        return Confidence.CO_LOCATED
    # pods on the host network share its counters
    shared = identity is not None and identity.host_network
    if query.subsystem is Subsystem.NETWORK and shared:
        return Confidence.INFERRED
    proxy = not query.metrics and catalogue.find(change.metric).subsystem is not query.subsystem
    grouped = change.key.instance.startswith(_PROCESS_GROUP_PREFIX)
    return Confidence.INFERRED if proxy or grouped else Confidence.MEASURED
