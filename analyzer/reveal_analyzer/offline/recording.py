"""Offline mode: every second of a recording is judged against all the others.

The live score knows only the past.  In a complete recording, later seconds also show what is
normal.  The same score is computed with all seconds but those within 20 s as reference, and
suppressed and thresholded by the recording's own level, so a recording in which nothing stands out
gives no finding.  A fault that fills much of the recording cannot stand out in it; only certain
signatures and the comparison of nodes detect it.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32
from reveal_analyzer.derive.columns import previous_indices
from reveal_analyzer.derive.deriver import Deriver, Second
from reveal_analyzer.episodes.episode import SecondVerdict
from reveal_analyzer.episodes.findings import FindingTracker
from reveal_analyzer.episodes.trace import ObservedSecond
from reveal_analyzer.hypotheses import loader
from reveal_analyzer.live.ranges import Ranges
from reveal_analyzer.live.scaling import ColumnScaling, by_subsystem
from reveal_analyzer.live.settings import LiveSettings, live_settings
from reveal_analyzer.live.thresholds import threshold
from reveal_analyzer.live.views import sustained_views
from reveal_analyzer.selection.applied import NO_SELECTION, AppliedSelection
from reveal_analyzer.subjects.directory import SubjectSource, no_subjects
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract.channels import ChannelTable
from reveal_contract.finding import Finding, FindingChange
from reveal_contract.metric import Subsystem
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message

_MARGIN = 20  # seconds on either side of a second that are not in its reference
_BLOCK = 5  # seconds that share a reference
_MIN_SECONDS = 60  # seconds of reference; a shorter recording is not judged
_MAX_REFERENCE = 600  # seconds; a longer reference is thinned
_OWN_PERCENTILE = 90  # percentile that is the own level of a column and of a subsystem
_NOTE = "found offline, with the whole recording as reference"


def judge(
    slices: Iterable[tuple[Message, ChannelTable]],
    settings: AnalyzerSettings,
    subjects: SubjectSource = no_subjects,
    selection: AppliedSelection = NO_SELECTION,
) -> list[Finding]:
    """Return the findings of a whole recording of one node; none if it is too short.

    ``subjects`` is called after the last slice; ``shown`` is a selection of metrics.
    """
    deriver = Deriver()
    seconds, node = [], ""
    for message, table in slices:
        node = message.node
        seconds.append(deriver.second(message, table))
    if len(seconds) < _MIN_SECONDS + 2 * _MARGIN:
        return []
    return _findings(node, seconds, settings, SubjectHistory(subjects), selection)


def merge(online: Sequence[Finding], offline: Sequence[Finding]) -> list[Finding]:
    """Return the online findings, and the offline findings that none of them covers."""
    added = [
        replace(finding, notes=(*finding.notes, _NOTE))
        for finding in offline
        if not any(_covers(known, finding) for known in online)
    ]
    return sorted([*online, *added], key=lambda finding: (finding.first_observed_ns, finding.id))


def _covers(online: Finding, offline: Finding) -> bool:
    """Return whether an online finding is about the fault of an offline one.

    Both are of the same time and subsystem, and their causes do not contradict each other: a pod
    that is throttled all the time must not hide what happens beside it.
    """
    if offline.subsystem not in {online.subsystem, *online.subsystems}:
        return False
    causes = {finding.hypothesis.name for finding in (online, offline) if finding.hypothesis}
    return len(causes) < 2 and _overlap(online, offline)


def _overlap(first: Finding, second: Finding) -> bool:
    """Return whether two findings cover the same time, with the calm period as margin."""
    margin = 10 * NS_PER_SECOND
    return (
        first.first_observed_ns <= second.last_observed_ns + margin
        and second.first_observed_ns <= first.last_observed_ns + margin
    )


def _findings(
    node: str,
    seconds: Sequence[Second],
    settings: AnalyzerSettings,
    history: SubjectHistory,
    selection: AppliedSelection,
) -> list[Finding]:
    live = live_settings(settings.sensitivity, settings.warmup_seconds)
    scores = _RecordingScores(seconds, live, selection)
    cases = FindingTracker(node, loader.load(settings.hypotheses), history, lambda: (), selection)
    found: dict[str, Finding] = {}
    for index, second in enumerate(seconds):
        history.push(second)
        updates = cases.update(
            SecondVerdict(second.start_ns, scores.over(index)), scores.observed(index)
        )
        found.update(
            {u.finding.id: u.finding for u in updates if u.change is not FindingChange.SUSPECTED}
        )
    found.update({u.finding.id: u.finding for u in cases.finish()})
    return list(found.values())


@dataclass(frozen=True)
class _Aligned:
    """All seconds in the columns of the last one: (seconds, columns), in base units.

    NaN where a column was not read, 0 where the table did not have it yet.
    """

    values: Floats
    last: Second


class _RecordingScores:
    """Scores of every second of a recording against the rest of it."""

    def __init__(
        self, seconds: Sequence[Second], settings: LiveSettings, selection: AppliedSelection
    ) -> None:
        self._seconds = seconds
        aligned = _align(seconds)
        self._plan = aligned.last.plan
        self._values = aligned.values
        self._scaling = ColumnScaling(aligned.last, settings)
        scaled = self._scaling.scale(aligned.values)
        levels = _medians(scaled)
        scored = selection.scorable(self._plan.columns, np.where(np.isnan(scaled), levels, scaled))
        views = sustained_views(np.nan_to_num(scored), _runs(seconds), settings.views)
        self._baseline = self._scaling.base_units(levels)
        excess = _excess(views, settings)
        own = np.maximum(np.percentile(excess, _OWN_PERCENTILE, axis=0), 1.0)
        self._excess = excess / own
        self._weighted = np.array([self._scaling.weigh(row) for row in self._excess])
        pooled = [self._scaling.scores(row) for row in self._weighted]
        self._over = _over_threshold(pooled, settings)

    def over(self, index: int) -> dict[Subsystem, float]:
        return self._over[index]

    def observed(self, index: int) -> ObservedSecond:
        start = self._seconds[index].start_ns
        return ObservedSecond(
            start,
            self._plan,
            self._values[index],
            self._excess[index],
            self._weighted[index],
            self._baseline,
        )


def _align(seconds: Sequence[Second]) -> _Aligned:
    last = seconds[-1]
    values = np.empty((len(seconds), len(last.plan.columns)))
    sources = {}
    for index, second in enumerate(seconds):
        if id(second.plan) not in sources:
            sources[id(second.plan)] = previous_indices(last.plan.labels, second.plan.labels)
        source = sources[id(second.plan)]
        values[index] = np.where(source < 0, 0.0, second.values[source])
    return _Aligned(values, last)


def _medians(values: Floats) -> Floats:
    """Return the median of each column over the seconds in which it was read; 0 without any."""
    if not np.isnan(values).any():
        return np.asarray(np.median(values, axis=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column without any value
        return np.nan_to_num(np.nanmedian(values, axis=0))


def _runs(seconds: Sequence[Second]) -> list[tuple[int, int]]:
    """Return the stretches without a gap, as no view may span one."""
    starts = np.array([second.start_ns for second in seconds])
    breaks = np.flatnonzero((np.diff(starts) <= 0) | (np.diff(starts) >= 2 * NS_PER_SECOND)) + 1
    edges = [0, *breaks.tolist(), len(seconds)]
    return list(itertools.pairwise(edges))


def _excess(views: Floats32, settings: LiveSettings) -> Floats:
    """Return the distance outside the range of all other seconds, (seconds, 2, columns)."""
    count = len(views)
    out = np.zeros((count, 2, views.shape[-1]))
    everything = np.arange(count)
    for begin in range(0, count, _BLOCK):
        end = min(begin + _BLOCK, count)
        others = everything[(everything < begin - _MARGIN) | (everything >= end + _MARGIN)]
        others = others[:: max(1, len(others) // _MAX_REFERENCE)]
        ranges = Ranges.of(views[others], settings)
        for second in range(begin, end):
            out[second] = ranges.excess(views[second])
    return out


def _over_threshold(
    pooled: Sequence[dict[Subsystem, float]], settings: LiveSettings
) -> list[dict[Subsystem, float]]:
    """Return score / threshold of each second; the recording's own level is the healthy one."""
    healthy = [np.percentile([scores[s] for scores in pooled], _OWN_PERCENTILE) for s in Subsystem]
    thresholds = by_subsystem(threshold(np.array(healthy, np.float64), settings))
    return [{s: score / thresholds[s] for s, score in scores.items()} for scores in pooled]
