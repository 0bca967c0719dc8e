"""Offline mode: every second of a recording is judged against all the others.

The live score knows only the past.  In a complete recording, later seconds also show what is
normal.  The same score is computed with all seconds but those within 20 s as reference, and
suppressed and thresholded by the recording's own level, so a recording in which nothing stands out
gives no finding.  A fault that fills much of the recording cannot stand out in it; only certain
signatures and the comparison of nodes detect it.  The reference of a recording of over 20 minutes
is a sample of it: every second second, every fourth, and so on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from reveal_analyzer.derive.deriver import Deriver, Second
from reveal_analyzer.episodes.episode import SecondVerdict
from reveal_analyzer.episodes.findings import FindingTracker
from reveal_analyzer.hypotheses import loader
from reveal_analyzer.live.settings import live_settings
from reveal_analyzer.offline.sample import SecondsSample
from reveal_analyzer.offline.scores import MARGIN, RecordingScores
from reveal_analyzer.selection.applied import NO_SELECTION, AppliedSelection
from reveal_analyzer.subjects.directory import SubjectSource, no_subjects
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract.channels import ChannelTable
from reveal_contract.finding import Finding, FindingChange
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message

_MIN_SECONDS = 60  # seconds of reference; a shorter recording is not judged
_NOTE = "found offline, with the whole recording as reference"


def judge(
    slices: Iterable[tuple[Message, ChannelTable]],
    settings: AnalyzerSettings,
    subjects: SubjectSource = no_subjects,
    selection: AppliedSelection = NO_SELECTION,
) -> list[Finding]:
    """Return the findings of a whole recording of one node; none if it is too short.

    ``slices`` are iterated twice: what is normal is learned, then each second is compared with it.
    The memory needed does not grow with the length of the recording.  ``subjects`` is called after
    the first pass; ``selection`` is a selection of metrics.
    """
    live = live_settings(settings.sensitivity, settings.warmup_seconds)
    sample = SecondsSample(max(width for width, _ in live.views))
    node, last = "", None
    for name, second in _seconds(slices):
        sample.add(second)
        node, last = name, second
    if last is None or sample.count < _MIN_SECONDS + 2 * MARGIN:
        return []
    scores = RecordingScores(sample, last, live, selection)
    known = tuple(subjects())
    history = SubjectHistory(lambda: known)
    cases = FindingTracker(node, loader.load(settings.hypotheses), history, lambda: (), selection)
    return _findings((second for _, second in _seconds(slices)), scores, cases, history)


def _seconds(slices: Iterable[tuple[Message, ChannelTable]]) -> Iterator[tuple[str, Second]]:
    """Return node and values of each second; raises ``TypeError`` for what has only one pass."""
    if iter(slices) is slices:
        raise TypeError("a recording is read twice: an iterator has only one pass")
    deriver = Deriver()
    return ((message.node, deriver.second(message, table)) for message, table in slices)


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
    seconds: Iterable[Second],
    scores: RecordingScores,
    cases: FindingTracker,
    history: SubjectHistory,
) -> list[Finding]:
    found: dict[str, Finding] = {}
    for second in seconds:
        history.push(second)
        over, observed = scores.score(second)
        updates = cases.update(SecondVerdict(second.start_ns, over), observed)
        found.update(
            {u.finding.id: u.finding for u in updates if u.change is not FindingChange.SUSPECTED}
        )
    found.update({u.finding.id: u.finding for u in cases.finish()})
    return list(found.values())
