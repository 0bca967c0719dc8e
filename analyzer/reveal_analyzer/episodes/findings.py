"""Findings of one node: its open episodes with their traces, reported as changes of findings."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from reveal_analyzer.episodes import attribution
from reveal_analyzer.episodes.attribution import EpisodeRecord
from reveal_analyzer.episodes.evidence import evidence
from reveal_analyzer.episodes.trace import ObservedSecond, Trace
from reveal_analyzer.episodes.tracker import (
    Episode,
    EpisodeChange,
    EpisodeTracker,
    SecondVerdict,
)
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.selection.applied import NO_SELECTION, AppliedSelection
from reveal_analyzer.subjects.case_subjects import CaseSubjects
from reveal_analyzer.subjects.directory import KEPT_S
from reveal_analyzer.subjects.history import MOST_ACTIVE_S, SubjectHistory
from reveal_contract.finding import Finding, FindingChange, FindingUpdate, Method, State
from reveal_contract.time_units import NS_PER_SECOND

_KEPT_S = 12  # seconds kept for the trace of an episode that opens
# Ages in seconds at which the culprits of an open episode are searched again.  A pod that does
# harm from its start on is named only after the node has learned which cgroup belongs to it.
_RECHECK_AGES_S = frozenset((1, 2, 3, 5, 8, 13, 21, 34, 55))

Methods = tuple[Method, ...]


@dataclass
class _OpenEpisode:
    """What is known of an open episode; ``active`` are the starts of its anomalous seconds."""

    trace: Trace
    methods: Methods
    active: deque[int]
    subjects: CaseSubjects | None = None
    notes: tuple[str, ...] = ()
    reported_culprits: tuple[object, ...] = ()


class FindingTracker:
    """Turns the verdicts on seconds into changes of findings.

    ``methods`` returns which of the paper's detectors agree now; ``selection`` replaces evidence
    by the metrics that a selection kept.
    """

    def __init__(
        self,
        node: str,
        rules: Sequence[HypothesisRule],
        history: SubjectHistory,
        methods: Callable[[], Methods],
        selection: AppliedSelection = NO_SELECTION,
    ) -> None:
        self._node, self._rules, self._history = node, rules, history
        self._methods, self._selection = methods, selection
        self._episodes = EpisodeTracker()
        self._recent: deque[ObservedSecond] = deque(maxlen=_KEPT_S)
        self._open: dict[int, _OpenEpisode] = {}
        # active seconds of episodes that are over: no reference for the next one
        self._ended: deque[int] = deque(maxlen=KEPT_S)

    @property
    def latest(self) -> ObservedSecond | None:
        """The last second, if there was one."""
        return self._recent[-1] if self._recent else None

    @property
    def any_open(self) -> bool:
        """Whether a finding is open."""
        return bool(self._episodes.open)

    def opened_within(self, seconds: int) -> bool:
        """Return whether a finding is open that opened at most ``seconds`` ago."""
        return any(
            self._recent[-1].start_ns - episode.opened_ns < seconds * NS_PER_SECOND
            for episode in self._episodes.open
        )

    def update(
        self, verdict: SecondVerdict, second: ObservedSecond, note: str = ""
    ) -> list[FindingUpdate]:
        """Add one second; ``note`` is added to every finding that is open in it."""
        self._recent.append(second)
        changes = self._episodes.update(verdict)
        if not changes and not self._episodes.open:  # nearly all seconds of nearly all nodes
            return []
        for episode in self._episodes.open:
            self._extend(episode, verdict, note)
        changes = [self._merged(change, episode) for change, episode in changes]
        updates = [self._report(change, episode) for change, episode in changes]
        changed = {id(episode) for _, episode in changes}
        rest = [episode for episode in self._episodes.open if id(episode) not in changed]
        return updates + self._recheck(rest, verdict.start_ns)

    def finish(self) -> list[FindingUpdate]:
        """Return the last state of the findings that are open when watching ends."""
        return [self._report(change, episode) for change, episode in self._episodes.finish()]

    def _recheck(self, episodes: Sequence[Episode], now_ns: int) -> list[FindingUpdate]:
        """Report young episodes whose foremost culprit, or whose pods are others by now."""
        updates = []
        for episode in episodes:
            if (now_ns - episode.opened_ns) // NS_PER_SECOND not in _RECHECK_AGES_S:
                continue
            found = attribution.attribute(self._record(episode), self._rules, self._history)
            # the whole finding is built only if it is reported
            if found.culprits.identities != self._state(episode).reported_culprits:
                updates.append(self._report(FindingChange.CHANGED, episode))
        return updates

    def _extend(self, episode: Episode, verdict: SecondVerdict, note: str) -> None:
        """Add this second to the trace of an open episode."""
        state = self._state(episode)
        if not episode.anomalous:
            return
        if episode.opened_ns != verdict.start_ns:  # a new trace has this second already
            state.trace.add(self._recent[-1])
            state.active.append(self._recent[-1].start_ns)
        state.methods = max(state.methods, self._methods(), key=_agreement)
        if note and note not in state.notes:
            state.notes += (note,)

    def _merged(self, change: FindingChange, episode: Episode) -> EpisodeChange:
        """Merge an episode that opens into an open one, if it shows only symptoms of that."""
        if change is not FindingChange.OPENED:
            return change, episode
        record = self._record(episode)
        for other in self._episodes.open:
            if other is episode or not other.anomalous:
                continue
            if attribution.is_symptom_of(record, self._record(other), self._rules):
                self._episodes.merge(episode, into=other)
                del self._open[id(episode)]
                return FindingChange.CHANGED, other
        return change, episode

    def _state(self, episode: Episode) -> _OpenEpisode:
        if id(episode) not in self._open:
            trace, active = Trace(), deque[int](maxlen=MOST_ACTIVE_S)
            for second in self._recent:
                if episode.first_ns <= second.start_ns:
                    trace.add(second)
                    active.append(second.start_ns)
            self._open[id(episode)] = _OpenEpisode(trace, self._methods(), active)
        return self._open[id(episode)]

    def _record(self, episode: Episode, *, resolved: bool = False) -> EpisodeRecord:
        state = self._state(episode)
        return EpisodeRecord(
            node=self._node,
            episode=episode,
            trace=state.trace,
            methods=state.methods,
            state=State.RESOLVED if resolved else State.OPEN,
            resolved_ns=episode.last_ns if resolved else None,
            notes=state.notes,
            subjects=state.subjects,
            active=state.active,
        )

    def _report(self, change: FindingChange, episode: Episode) -> FindingUpdate:
        """Build the finding of an episode, and drop its state if this is its last change."""
        state = self._state(episode)
        # a suspicion is only counted: the subjects behind it are not searched
        if state.subjects is None and change is not FindingChange.SUSPECTED:
            ended = frozenset(self._ended)
            state.subjects = CaseSubjects.begin(self._history, episode.first_ns, ended)
        record = self._record(episode, resolved=change is FindingChange.RESOLVED)
        if change in (FindingChange.SUSPECTED, FindingChange.RESOLVED):
            self._ended.extend(state.active if change is FindingChange.RESOLVED else ())
            del self._open[id(episode)]
        found = attribution.attribute(record, self._rules, self._history)
        state.reported_culprits = found.culprits.identities
        finding = attribution.finding(record, found, self._history)
        return FindingUpdate(change, self._selected(finding, state.trace))

    def _selected(self, finding: Finding, trace: Trace) -> Finding:
        row = partial(evidence, trace)
        return self._selection.apply_to_evidence(finding, trace.stats.columns, row)


def _agreement(methods: Methods) -> tuple[int, int, int]:
    """Return the sort key of verdicts: any before none, then by how many detectors agree."""
    return len(methods), sum(m.agrees for m in methods), sum(m.score_percent for m in methods)
