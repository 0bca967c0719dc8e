"""The report form: every second of a recording judged against all the others.

The live score has only the past; when a recording is complete, what came later tells what is
usual as well.  The same score is taken with all but the 20 s around a second as reference,
silenced and cut by the recording's own level, so that a recording in which nothing stands
out gives no finding.  What fills a good part of the recording cannot stand out in it: that is
for certain signatures and for other nodes to tell.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32
from reveal_analyzer.derive.columns import places_before
from reveal_analyzer.derive.deriver import Deriver, Second
from reveal_analyzer.episodes.findings import FindingTracker
from reveal_analyzer.episodes.trace import ObservedSecond
from reveal_analyzer.episodes.tracker import SecondVerdict
from reveal_analyzer.hypotheses import loader
from reveal_analyzer.live.ranges import Ranges
from reveal_analyzer.live.scaling import Weighing
from reveal_analyzer.live.settings import LiveSettings, live_settings
from reveal_analyzer.live.views import held_over
from reveal_analyzer.selection.shown import EVERYTHING, Shown
from reveal_analyzer.subjects.directory import SubjectSource, no_subjects
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract.channels import ChannelTable
from reveal_contract.finding import Finding, FindingChange
from reveal_contract.metric import Subsystem
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message

_APART = 20  # seconds on either side of a second that are no reference for it
_BLOCK = 5  # seconds that share a reference
_LEAST = 60  # seconds of reference below which a recording is not judged
_MOST = 600  # seconds of reference that are enough
_OWN = 90  # percentile of a column's and of a subsystem's own level
_HINDSIGHT = "seen in hindsight, with the whole recording as reference"


def judge(
    slices: Iterable[tuple[Message, ChannelTable]],
    settings: AnalyzerSettings,
    subjects: SubjectSource = no_subjects,
    shown: Shown = EVERYTHING,
) -> list[Finding]:
    """Findings of a whole recording of one node; none if it is too short to judge.

    ``subjects`` is asked after the last slice; ``shown`` is a selection of metrics.
    """
    deriver = Deriver()
    seconds, node = [], ""
    for message, table in slices:
        node = message.node
        seconds.append(deriver.second(message, table))
    if len(seconds) < _LEAST + 2 * _APART:
        return []
    return _findings(node, seconds, settings, SubjectHistory(subjects), shown)


def merge(live: Sequence[Finding], whole: Sequence[Finding]) -> list[Finding]:
    """Live findings, and of the whole recording's those that no live one covers."""
    added = [
        replace(finding, notes=(*finding.notes, _HINDSIGHT))
        for finding in whole
        if not any(_same(finding, known) for known in live)
    ]
    return sorted([*live, *added], key=lambda finding: (finding.first_seen_ns, finding.id))


def _same(one: Finding, other: Finding) -> bool:
    """Whether two findings speak of the same time, give or take an episode's calm."""
    margin = 10 * NS_PER_SECOND
    return (
        one.first_seen_ns <= other.last_seen_ns + margin
        and other.first_seen_ns <= one.last_seen_ns + margin
    )


def _findings(
    node: str,
    seconds: Sequence[Second],
    settings: AnalyzerSettings,
    history: SubjectHistory,
    shown: Shown,
) -> list[Finding]:
    live = live_settings(settings.sensitivity, settings.warmup_seconds)
    scores = _Whole(seconds, live, shown)
    cases = FindingTracker(node, loader.load(settings.hypotheses), history, lambda: (), shown)
    found: dict[str, Finding] = {}
    for at, second in enumerate(seconds):
        history.push(second)
        updates = cases.update(SecondVerdict(second.start_ns, scores.over(at)), scores.observed(at))
        found.update(
            {u.finding.id: u.finding for u in updates if u.change is not FindingChange.SUSPECTED}
        )
    found.update({u.finding.id: u.finding for u in cases.finish()})
    return list(found.values())


@dataclass(frozen=True)
class _Aligned:
    """All seconds in the columns of the last one: (seconds, columns), base units."""

    values: Floats
    last: Second


class _Whole:
    """Scores of every second of a recording against the rest of it."""

    def __init__(self, seconds: Sequence[Second], settings: LiveSettings, shown: Shown) -> None:
        self._seconds = seconds
        aligned = _align(seconds)
        self._plan = aligned.last.plan
        self._values = aligned.values
        self._weighing = Weighing(aligned.last, settings)
        seen = self._weighing.seen(aligned.values)
        scored = shown.scores(self._plan.columns, seen)
        views = held_over(np.nan_to_num(scored), _runs(seconds), settings.views)
        self._baseline = self._weighing.base_units(np.median(seen, axis=0))
        excess = _excess(views, settings)
        own = np.maximum(np.percentile(excess, _OWN, axis=0), 1.0)
        self._excess = excess / own
        self._shown = np.array([self._weighing.shown(row) for row in self._excess])
        pooled = [self._weighing.scores(row) for row in self._shown]
        self._over = _over_cut(pooled, settings)

    def over(self, at: int) -> dict[Subsystem, float]:
        return self._over[at]

    def observed(self, at: int) -> ObservedSecond:
        start = self._seconds[at].start_ns
        return ObservedSecond(
            start, self._plan, self._values[at], self._excess[at], self._shown[at], self._baseline
        )


def _align(seconds: Sequence[Second]) -> _Aligned:
    last = seconds[-1]
    values = np.empty((len(seconds), len(last.plan.columns)))
    places = {}
    for at, second in enumerate(seconds):
        if id(second.plan) not in places:
            places[id(second.plan)] = places_before(last.plan.labels, second.plan.labels)
        source = places[id(second.plan)]
        values[at] = np.where(source < 0, 0.0, second.values[source])
    return _Aligned(np.nan_to_num(values), last)


def _runs(seconds: Sequence[Second]) -> list[tuple[int, int]]:
    """Stretches without a gap: held views must not span one."""
    starts = np.array([second.start_ns for second in seconds])
    breaks = np.flatnonzero((np.diff(starts) <= 0) | (np.diff(starts) >= 2 * NS_PER_SECOND)) + 1
    edges = [0, *breaks.tolist(), len(seconds)]
    return list(itertools.pairwise(edges))


def _excess(views: Floats32, settings: LiveSettings) -> Floats:
    """(seconds, 2, columns): distance outside the range of all other seconds, worst view."""
    count = len(views)
    out = np.zeros((count, 2, views.shape[-1]))
    everything = np.arange(count)
    for begin in range(0, count, _BLOCK):
        end = min(begin + _BLOCK, count)
        others = everything[(everything < begin - _APART) | (everything >= end + _APART)]
        others = others[:: max(1, len(others) // _MOST)]
        ranges = Ranges.of(views[others], settings)
        for second in range(begin, end):
            out[second] = ranges.excess(views[second])
    return out


def _over_cut(
    pooled: Sequence[dict[Subsystem, float]], settings: LiveSettings
) -> list[dict[Subsystem, float]]:
    cuts = {
        s: max(
            settings.limit,
            settings.multiple * float(np.percentile([scores[s] for scores in pooled], _OWN)),
        )
        for s in Subsystem
    }
    return [{s: score / cuts[s] for s, score in scores.items()} for scores in pooled]
