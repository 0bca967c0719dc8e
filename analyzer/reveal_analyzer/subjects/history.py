"""Which subject's share changed: the subjects' counters during an episode against before it."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.derive.columns import known
from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.subjects.directory import REMEMBERED_S, Acquainted, Subjects, nobody
from reveal_analyzer.subjects.shares import Shares, host_places, host_value, split
from reveal_contract import catalogue
from reveal_contract.channels import Channel
from reveal_contract.finding import Confidence, Pod, Subject
from reveal_contract.metric import Capacity, Harm, Scope, Subsystem
from reveal_contract.subjects import Identity
from reveal_contract.time_units import NS_PER_SECOND

_KEPT = REMEMBERED_S
_BEFORE = 60  # seconds before an episode that its subjects are compared with
_MARGIN = 3  # seconds just before the onset that may already belong to it
_LEAST = 0.5  # change, in asinh units, below which a subject is not named
_MOST = 5  # subjects in a finding
_MOST_PRESENT = 3
_MEMORY = 24 << 30  # bytes of a node: which it is does not matter for a ranking
_GROUP = "pgrp:"
_DEFAULTS = {
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


@dataclass(frozen=True, slots=True)
class Who:
    """A subject in a time: the instance of its channels and the uid that makes it this one."""

    instance: str
    uid: str = ""


@dataclass(frozen=True)
class _Seen:
    """Of one table: where the subjects' channels are and the host's of the same metrics."""

    keys: tuple[tuple[str, str], ...]  # metric, instance
    host: Mapping[str, tuple[int, ...]]  # places among those kept of a second
    kept: NDArray[np.intp]

    @classmethod
    def of(cls, channels: Sequence[Channel]) -> _Seen:
        found = [(at, c) for at, c in enumerate(channels) if of_subject(c)]
        kept = [at for at, _ in found]
        host = {}
        for metric, places in host_places(channels).items():
            host[metric] = tuple(range(len(kept), len(kept) + len(places)))
            kept += places
        return cls(tuple((c.metric, c.instance) for _, c in found), host, np.array(kept, np.intp))


class _Row(NamedTuple):
    """A second as it came; what it says is worked out when somebody asks."""

    start_ns: int
    seen: _Seen
    kept: NDArray[np.float64]

    def subjects(self) -> Iterable[tuple[str, str, float]]:
        """Metric, instance and value; 0 where nothing was read."""
        values = np.nan_to_num(self.kept[: len(self.seen.keys)]).tolist()
        for (metric, instance), value in zip(self.seen.keys, values, strict=True):
            yield metric, instance, value

    def host(self) -> Iterable[tuple[str, float]]:
        for metric, places in self.seen.host.items():
            yield metric, host_value(metric, places, lambda at: float(self.kept[at]))


@dataclass
class _Means:
    """Means over some seconds: by metric, of each subject and of the host."""

    subjects: dict[str, dict[Who, float]] = field(default_factory=dict)
    host: dict[str, float] = field(default_factory=dict)

    def shares(self, metric: str, directory: Directory) -> Shares:
        values = self.subjects.get(metric, {})
        spelled = {directory.spelled(who): value for who, value in values.items()}
        return split(spelled, directory.parents, self.host.get(metric, float("nan")))


@dataclass(frozen=True)
class _Change:
    """One metric of one subject: its change in asinh units and its share, before and now."""

    who: Who
    metric: str
    change: float
    percent: float
    percent_before: float


@dataclass(frozen=True)
class Wanted:
    """Which subjects to look for.

    ``metrics`` are the ones a hypothesis points to; without any, the usual ones of the
    subsystem.  ``fell`` asks for who lost, else for who grew.
    """

    metrics: Sequence[str]
    subsystem: Subsystem
    fell: bool = False


class Directory:
    """Who stands behind an instance at a time, as the collector announced it."""

    def __init__(self, subjects: Iterable[Identity] = ()) -> None:
        self._by_instance: dict[str, list[Identity]] = {}
        self.parents: dict[str, str] = {}
        for one in sorted(subjects, key=lambda one: one.since_ns):
            self._by_instance.setdefault(one.instance, []).append(one)
            if one.parent:
                self.parents[self.spelled(Who(one.instance, one.uid))] = one.parent

    def who(self, instance: str, at_ns: int) -> Who:
        """The last one of that name that had begun by then, else the first."""
        known = self._by_instance.get(instance)
        if known is None:
            return Who(instance)
        begun = [one for one in known if one.since_ns <= at_ns]
        return Who(instance, (begun[-1] if begun else known[0]).uid)

    def identity(self, who: Who) -> Identity | None:
        known = self._by_instance.get(who.instance, ())
        return next((one for one in known if one.uid == who.uid), None)

    def called(self, who: Who) -> str:
        """As people know it: a pod by its namespace and name."""
        identity = self.identity(who)
        if identity is None or not identity.namespace:
            return who.instance
        return f"{identity.namespace}/{identity.name}"

    def spelled(self, who: Who) -> str:
        """The latest of an instance by its instance, those before it told apart by their uid."""
        return who.instance if self.latest(who) else f"{who.instance}~{who.uid}"

    def there(self, who: Who, since_ns: int) -> bool:
        """Whether it is not known to have ended before that time."""
        identity = self.identity(who)
        return identity is None or not identity.until_ns or identity.until_ns >= since_ns

    def latest(self, who: Who) -> bool:
        """Whether nobody else came after it under its name."""
        known = self._by_instance.get(who.instance, ())
        return not known or known[-1].uid == who.uid


class _Compared(NamedTuple):
    """Who there is, and means during and before an episode."""

    directory: Directory
    during: _Means
    before: _Means


class SubjectHistory:
    """The subjects' channels of the last minutes of one node; ``subjects`` says who they are."""

    def __init__(self, subjects: Subjects = nobody) -> None:
        self._subjects = Acquainted(subjects)
        self._rows: deque[_Row] = deque(maxlen=_KEPT)
        self._channels: tuple[Channel, ...] = ()
        self._seen = _Seen.of(())
        self._latest: tuple[tuple[int, int], _Compared] | None = None

    def push(self, second: Second) -> None:
        """Remember the subjects of one second."""
        if second.plan.channels is not self._channels:
            self._channels = second.plan.channels
            self._seen = _Seen.of(self._channels)
        kept = second.channels[self._seen.kept]
        self._rows.append(_Row(second.start_ns, self._seen, kept))
        self._latest = None

    def changed(self, wanted: Wanted, first_ns: int, last_ns: int) -> Named:
        """The subjects that changed most from before to during, most first."""
        directory, during, before = self._compared(first_ns, last_ns)
        best: dict[Who, _Change] = {}
        for metric in wanted.metrics or _DEFAULTS[wanted.subsystem]:
            for change in _changes(metric, during, before, directory):
                if _eased(change) and not wanted.fell:
                    continue
                held = best.get(change.who)
                if held is None or abs(change.change) > abs(held.change):
                    best[change.who] = change
        ranked = sorted(
            best.values(), key=lambda c: (-_guilt(c.change, wanted.fell), c.who.instance)
        )
        onset = first_ns - _MARGIN * NS_PER_SECOND
        ranked = [c for c in _without_replaced(ranked, directory) if directory.there(c.who, onset)]
        moved = [c for c in ranked[:_MOST] if abs(c.change) >= _LEAST]
        return named(moved or _present(best.values(), directory), directory, wanted)

    def hurt(self, metrics: Sequence[str], first_ns: int, last_ns: int) -> tuple[str, ...]:
        """Who lost: those to whom these metrics did harm from before to during, most first.

        Of a metric that hurts in no direction (CPU time) losing is getting less of it.
        """
        directory, during, before = self._compared(first_ns, last_ns)
        loss: dict[Who, float] = {}
        for metric in metrics:
            rising = catalogue.find(metric).harm is Harm.HIGHER
            for change in _changes(metric, during, before, directory):
                lost = change.change if rising else -change.change
                loss[change.who] = max(lost, loss.get(change.who, 0.0))
        ranked = sorted(loss, key=lambda who: (-loss[who], who.instance))
        return tuple(directory.called(who) for who in ranked if loss[who] >= _LEAST)[:_MOST]

    def present(self, instance: str, at_ns: int) -> Named:
        """Who stands behind an instance, where it is not its share that speaks."""
        directory = self._directory()
        change = _Change(directory.who(instance, at_ns), "cpu.subject.usage", 0.0, 0.0, 0.0)
        return named([change], directory, Wanted((), Subsystem.CPU))

    def _compared(self, first_ns: int, last_ns: int) -> _Compared:
        """An episode and the minute before it.

        Kept until the next second, as culprits and victims are asked for together.
        """
        if self._latest is None or self._latest[0] != (first_ns, last_ns):
            directory = self._directory()
            onset = first_ns - _MARGIN * NS_PER_SECOND
            during = self._means(first_ns, last_ns, directory)
            before = self._means(onset - _BEFORE * NS_PER_SECOND, onset, directory)
            self._latest = (first_ns, last_ns), _Compared(directory, during, before)
        return self._latest[1]

    def _directory(self) -> Directory:
        return Directory(self._subjects.now(self._rows[-1].start_ns if self._rows else 0))

    def _means(self, first_ns: int, last_ns: int, directory: Directory) -> _Means:
        """Mean of every subject channel over a time; seconds without the subject count as 0."""
        rows = [row for row in self._rows if first_ns <= row.start_ns < last_ns]
        means = _Means()
        for row in rows:
            for metric, instance, value in row.subjects():
                of_metric = means.subjects.setdefault(metric, {})
                who = directory.who(instance, row.start_ns)
                of_metric[who] = of_metric.get(who, 0.0) + value / len(rows)
            for metric, value in row.host():
                means.host[metric] = means.host.get(metric, 0.0) + value / len(rows)
        return means


def _without_replaced(ranked: Sequence[_Change], directory: Directory) -> list[_Change]:
    """Those of whom none was made anew under its name: that one speaks for both.

    Who is gone stays where nobody has come in its place.
    """
    there = {change.who.instance for change in ranked if directory.latest(change.who)}
    return [
        change for change in ranked
        if directory.latest(change.who) or change.who.instance not in there
    ]  # fmt: skip


def _guilt(change: float, fell: bool) -> float:
    """What grew is rather the cause, what shrank rather the victim: a fall counts a quarter."""
    return -change if fell else max(change, -change / 4)


def _eased(change: _Change) -> bool:
    """Whether what harms it became less: it did nothing, and nothing was done to it."""
    return change.change < 0 and catalogue.find(change.metric).harm is Harm.HIGHER


def of_subject(channel: Channel) -> bool:
    """Whether it is a subject's, and says something as a level."""
    if not channel.instance or not known(channel):
        return False
    metric = catalogue.find(channel.metric)
    return metric.scope is Scope.SUBJECT and metric.source != "subject-fine"


def _changes(metric: str, during: _Means, before: _Means, directory: Directory) -> list[_Change]:
    row = catalogue.find(metric)
    quantum = row.quantum * (_MEMORY if row.capacity is Capacity.MEMORY else 1.0)
    now, then = during.shares(metric, directory), before.shares(metric, directory)
    made = []
    for who in {**during.subjects.get(metric, {}), **before.subjects.get(metric, {})}:
        name = directory.spelled(who)
        used, used_before = now.own.get(name, 0.0), then.own.get(name, 0.0)
        change = float(np.arcsinh(used / quantum) - np.arcsinh(used_before / quantum))
        made.append(_Change(who, metric, change, now.percent(name), then.percent(name)))
    return made


def _present(changes: Iterable[_Change], directory: Directory) -> list[_Change]:
    """Where nobody changed: the pods that were there, the largest first."""
    there = [
        change for change in changes
        if change.percent >= 1 and (who := directory.identity(change.who)) is not None
        and who.namespace and not who.until_ns
    ]  # fmt: skip
    return sorted(there, key=lambda change: -change.percent)[:_MOST_PRESENT]


@dataclass(frozen=True)
class Named:
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
        """The foremost one's name; empty where nobody is named."""
        return next(iter(self.names), "")


def named(changes: Iterable[_Change], directory: Directory, wanted: Wanted) -> Named:
    """What a finding says of these changes; an identity with a namespace is a pod's."""
    pods, subjects = [], []
    for change in changes:
        identity = directory.identity(change.who)
        sureness = _confidence(change, identity, wanted)
        share, gain = round(change.percent), round(change.percent - change.percent_before)
        if identity is not None and identity.namespace:
            pod = directory.identity(directory.who(f"{identity.namespace}/{identity.name}",
                                                   identity.since_ns))  # fmt: skip
            uid = pod.uid if pod is not None else identity.uid
            pods.append(Pod(identity.namespace, identity.name, uid, identity.container,
                            share, gain, sureness))  # fmt: skip
        else:
            kind = identity.kind.value if identity else _kind(change.who.instance)
            subjects.append(Subject(kind, change.who.instance, share, gain, sureness))
    return Named(tuple(pods), tuple(subjects))


def _kind(instance: str) -> str:
    """What an instance is that nobody announced."""
    if instance.startswith(_GROUP):
        return "ProcessGroup"
    return "Unit" if instance.endswith((".service", ".scope", ".slice")) else "Cgroup"


def _confidence(change: _Change, identity: Identity | None, wanted: Wanted) -> Confidence:
    """Measured: a counter of its own of what is asked for; inferred: of something else."""
    if abs(change.change) < _LEAST:
        return Confidence.CO_LOCATED
    proxy = not wanted.metrics and catalogue.find(change.metric).subsystem is not wanted.subsystem
    shared = identity is not None and identity.host_network
    if wanted.subsystem is Subsystem.NETWORK and shared:
        return Confidence.INFERRED
    grouped = change.who.instance.startswith(_GROUP)
    return Confidence.INFERRED if proxy or grouped else Confidence.MEASURED
