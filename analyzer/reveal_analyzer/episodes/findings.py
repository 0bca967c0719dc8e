"""Findings of one node: its open cases, reported as changes of findings."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.derive.columns import ColumnPlan
from reveal_analyzer.episodes import attribution
from reveal_analyzer.episodes.attribution import Attribution, EpisodeRecord
from reveal_analyzer.episodes.case import Case, Methods
from reveal_analyzer.episodes.case_scores import Baselines, CaseScores
from reveal_analyzer.episodes.episode import SecondVerdict
from reveal_analyzer.episodes.evidence import evidence
from reveal_analyzer.episodes.relations import Relations
from reveal_analyzer.episodes.trace import ObservedSecond, Trace
from reveal_analyzer.episodes.tracker import CaseChange, CaseTracker
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.hypotheses.signature_matcher import CaseKey
from reveal_analyzer.live.reference import ReferenceIndices
from reveal_analyzer.selection.applied import NO_SELECTION, AppliedSelection
from reveal_analyzer.state.tree import StateTree, array
from reveal_analyzer.subjects.case_subjects import CaseSubjects
from reveal_analyzer.subjects.directory import KEPT_S
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract.finding import (
    Finding,
    FindingChange,
    FindingUpdate,
    Resolution,
    State,
)
from reveal_contract.time_units import NS_PER_SECOND

# Ages in seconds at which the culprits of an open case are searched again.  A pod that does
# harm from its start on is named only after the node has learned which cgroup belongs to it.
_RECHECK_AGES_S = frozenset((1, 2, 3, 5, 8, 13, 21, 34, 55))
_RECHECK_S = 300  # and from then on
_OTHER_STRENGTH = 1.1  # times the reported one, or a part of it: its values are others
_METHODS_S = 60  # age until which the detectors of the paper look at each active second
_SEVERITY_HOLDS_S = 10  # before another severity is reported
_WORSE = 1.5  # times the present strength: the worst is worth a note
_MOST_RELATED = 4
_LEARNED_NOTE = (
    "it lasts: its level was learned as this node's new normal, so that other faults can be"
    " detected; it stays open until the earlier levels return"
)
_UNOBSERVED_NOTE = "its evidence has not been read since {0:%H:%M:%S}Z; whether it lasts is unknown"


class FindingTracker:
    """Turns the verdicts on seconds into changes of findings.

    ``methods`` returns which of the paper's detectors agree now; ``selection`` replaces evidence
    by the metrics that a selection kept.  ``baselines`` is the live score, which cases compare the
    present with what they kept of; without it nothing is learned (see ``CaseScores``).
    """

    def __init__(
        self,
        node: str,
        rules: Sequence[HypothesisRule],
        history: SubjectHistory,
        methods: Callable[[], Methods],
        selection: AppliedSelection = NO_SELECTION,
        baselines: Baselines | None = None,
    ) -> None:
        self._node, self._rules, self._history = node, rules, history
        self._methods, self._selection = methods, selection
        self._relations = Relations(rules, history, self._record)
        self._cases = CaseTracker(CaseScores(baselines), self._relations, self._begin)
        self._history_rules = frozenset(rule.name for rule in rules if _compares_with_history(rule))
        self._ended: deque[int] = deque(maxlen=KEPT_S)  # seconds of cases that are over
        self._reference_indices = ReferenceIndices()
        self._opened = False
        self.latest: ObservedSecond | None = None

    @property
    def any_open(self) -> bool:
        """Whether a finding is open."""
        return bool(self._cases.open)

    @property
    def opened(self) -> bool:
        """Whether a finding opened in the last second."""
        return self._opened

    def kept_highest(self, plan: ColumnPlan, highest: Floats) -> dict[CaseKey, Floats]:
        """Return, by open signature, the highest values from before its case."""
        kept: dict[CaseKey, Floats] = {}
        for case in self._cases.open:
            own = highest
            if case.reference is not None and not self._history_rules.isdisjoint(case.rules):
                indices = self._reference_indices.of(case.reference, plan)
                own = highest.copy()
                own[indices[indices >= 0]] = case.reference.highest[indices >= 0]
            kept |= dict.fromkeys(case.keys, own)
        return kept

    def update(self, verdict: SecondVerdict, second: ObservedSecond) -> list[FindingUpdate]:
        """Add one second."""
        self.latest = second
        changes = self._cases.update(verdict, second)
        self._opened = any(change is FindingChange.OPENED for change, _ in changes)
        if not changes and not self._cases.open:  # nearly all seconds of nearly all nodes
            return []
        for case in self._cases.open:
            if case.is_active and case.age_s(verdict.start_ns) <= _METHODS_S:
                case.methods = max(case.methods, self._methods(), key=_agreement)
        return self._reports(changes, verdict.start_ns)

    def save(self) -> StateTree:
        """Return what is open as a state tree."""
        return {**self._cases.save(), "ended_ns": np.array(self._ended, np.int64)}

    def restore(self, tree: StateTree) -> None:
        """Continue with what is open in a state tree; raises ``StateError``."""
        self._cases.restore(tree, {rule.name: rule for rule in self._rules})
        ended = array(tree, "ended_ns", np.int64, (None,))
        self._ended = deque(ended.tolist(), maxlen=KEPT_S)

    def finish(self) -> list[FindingUpdate]:
        """Return the last state of the findings that are open when watching ends."""
        return [self._report(change, case) for change, case in self._cases.finish()]

    def _reports(self, changes: Sequence[CaseChange], now_ns: int) -> list[FindingUpdate]:
        if self._opened:
            self._relate(case for change, case in changes if change is FindingChange.OPENED)
        updates = [self._report(change, case) for change, case in _last_of_each(changes)]
        reported = {id(case) for _, case in changes}
        for case in self._cases.open:
            if id(case) not in reported and self._needs_report(case, now_ns):
                updates.append(self._report(FindingChange.CHANGED, case))
        return updates

    def _needs_report(self, case: Case, now_ns: int) -> bool:
        """Return whether its foremost culprit, pods, severity or values are others by now."""
        same = case.episode.severity is case.reported_severity
        case.other_severity_s = 0 if same else case.other_severity_s + 1
        if case.other_severity_s >= _SEVERITY_HOLDS_S:
            return True
        age_s = case.age_s(now_ns)
        if age_s not in _RECHECK_AGES_S and (not age_s or age_s % _RECHECK_S):
            return False
        if _is_other(case.trace.strength, case.reported_strength):
            return True
        # the whole finding is built only if it is reported
        found = attribution.attribute(self._record(case), self._rules, self._history)
        return found.culprits.identities != case.reported_culprits

    def _begin(self, case: Case) -> None:
        """Keep what is needed of the time before a case; give it an id of its own."""
        case.methods = self._methods()
        case.subjects = CaseSubjects.begin(
            self._history, case.episode.first_ns, frozenset(self._ended)
        )
        taken = {other.episode.id_on(self._node) for other in self._cases.open}
        if case.episode.id_on(self._node) in taken:
            case.episode.salt = "\0".join("\0".join(key) for key in sorted(case.keys)) or "score"

    def _relate(self, opened: Iterable[Case]) -> None:
        """Let findings that are open at the same time refer to each other."""
        for case in opened:
            for other in self._cases.open:
                if other is not case:
                    case.related[other.episode.id_on(self._node)] = None
                    other.related[case.episode.id_on(self._node)] = None

    def _record(self, case: Case, *, resolved: bool = False) -> EpisodeRecord:
        return EpisodeRecord(
            node=self._node,
            episode=case.episode,
            trace=case.trace,
            methods=case.methods,
            state=State.RESOLVED if resolved else State.OPEN,
            resolved_ns=case.episode.last_ns if resolved else None,
            notes=case.notes,
            subjects=case.subjects,
            active=case.active,
            losses=case.losses,
            others=frozenset(
                other.subjects.named.first
                for other in self._cases.open
                if other is not case and other.subjects
            ),
        )

    def _report(self, change: FindingChange, case: Case) -> FindingUpdate:
        """Build the finding of a case."""
        is_over = change is FindingChange.RESOLVED
        record = self._record(case, resolved=is_over)
        found = attribution.attribute(record, self._rules, self._history)
        finding = attribution.finding(record, found, self._history)
        notes = (*self._notes(case, record, found, finding), *finding.notes)
        resolution = case.lifecycle.resolution if is_over else Resolution.NONE
        finding = replace(finding, notes=notes, resolution=resolution)
        case.reported_culprits = found.culprits.identities
        case.reported_severity, case.other_severity_s = finding.severity, 0
        case.reported_strength = case.trace.strength
        if is_over:
            self._exclude(case)
        return FindingUpdate(change, self._selected(finding, case.trace))

    def _exclude(self, case: Case) -> None:
        """Keep the seconds of a case that is over: they are no reference of a later one."""
        known, episode = frozenset(self._ended), case.episode
        seconds = self._history.seconds(episode.first_ns, episode.last_ns)
        self._ended.extend(second for second in seconds if second not in known)

    def _notes(
        self, case: Case, record: EpisodeRecord, found: Attribution, finding: Finding
    ) -> list[str]:
        """Return what a reader must know beside the claim."""
        notes = [_LEARNED_NOTE] if case.is_learned else []
        if case.lifecycle.resolution is Resolution.UNOBSERVED:
            notes.append(_UNOBSERVED_NOTE.format(_time(case.episode.last_ns)))
        worst = case.trace.worst()
        if worst is not None and worst.strength > _WORSE * case.trace.strength:
            claim = attribution.claim(replace(record, trace=worst.trace), found)
            if not finding.claim.startswith(claim):
                notes.append(f"at its worst, at {_time(worst.start_ns):%H:%M:%S}Z: {claim}")
        if case.related:
            names = ", ".join(list(case.related)[-_MOST_RELATED:])
            notes.append(f"open on this node at the same time: {names}")
        return notes

    def _selected(self, finding: Finding, trace: Trace) -> Finding:
        row = partial(evidence, trace)
        return self._selection.apply_to_evidence(finding, trace.stats.columns, row)


def _last_of_each(changes: Sequence[CaseChange]) -> list[CaseChange]:
    """Return one change of each case: an opening or an end before a mere change."""
    chosen: dict[int, CaseChange] = {}
    for change, case in changes:
        known = chosen.get(id(case))
        if known is None or known[0] is FindingChange.CHANGED:
            chosen[id(case)] = change, case
    return list(chosen.values())


def _is_other(strength: float, reported: float | None) -> bool:
    """Return whether a strength differs much from the reported one, if that is known."""
    if reported is None:
        return False
    low, high = sorted((strength, reported))
    return high > _OTHER_STRENGTH * low


def _compares_with_history(rule: HypothesisRule) -> bool:
    certain = rule.certain
    return certain is not None and any(
        condition.times for condition in (*certain.conditions, *certain.any)
    )


def _time(ns: int) -> datetime:
    return datetime.fromtimestamp(ns // NS_PER_SECOND, UTC)


def _agreement(methods: Methods) -> tuple[int, int, int]:
    """Return the sort key of verdicts: any before none, then by how many detectors agree."""
    return len(methods), sum(m.agrees for m in methods), sum(m.score_percent for m in methods)
