"""The cause of an episode of Paper mode: known causes, culprits and severities as in Online mode.

The vote of the detectors says that something is abnormal, and in which metrics.  What is known of
causes is read off the same seconds: certain signatures, and hypotheses that fit the columns which
left the baseline of the live score.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.derive.columns import ColumnPlan
from reveal_analyzer.episodes import attribution
from reveal_analyzer.episodes.attribution import EpisodeRecord
from reveal_analyzer.episodes.case import subject_values
from reveal_analyzer.episodes.claims import ColumnSet
from reveal_analyzer.episodes.episode import Episode
from reveal_analyzer.episodes.trace import ObservedSecond, Trace
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.hypotheses.signature_matcher import CaseKey, Matches, SignatureMatch
from reveal_analyzer.paper.episodes import PaperEpisode
from reveal_analyzer.state.tree import StateTree, StateValue, array, text, texts
from reveal_analyzer.subjects.case_subjects import CaseSubjects
from reveal_analyzer.subjects.history import MOST_ACTIVE_S, SubjectHistory
from reveal_contract.finding import Evidence, Finding, Hypothesis, Severity, State
from reveal_contract.metric import Subsystem

MOST_EVIDENCE = 10


@dataclass(frozen=True, slots=True)
class KnownCause:
    """What an earlier analyzer knew of the cause; its values are gone."""

    hypothesis: Hypothesis
    subsystem: Subsystem
    severity: Severity
    claim: str


class KeptHighest(NamedTuple):
    """The highest levels that were normal when a signature first held, of its columns."""

    columns: ColumnSet
    highest: Floats

    @classmethod
    def of(cls, match: SignatureMatch, plan: ColumnPlan, highest: Floats) -> KeptHighest:
        metrics = match.rule.required_metrics()
        chosen = [i for i, column in enumerate(plan.columns) if column.metric.name in metrics]
        return cls(ColumnSet(plan.labels[index] for index in chosen), highest[chosen])

    def applied(self, plan: ColumnPlan, highest: Floats) -> Floats:
        """Return the highest levels of all columns, those of the signature from before it."""
        indices = self.columns.indices(plan)
        own = highest.copy()
        own[indices[indices >= 0]] = self.highest[indices >= 0]
        return own


class EpisodeCause:
    """Collects the seconds of one episode.

    ``severities`` holds that of each certain signature which was present in the last minute.
    """

    def __init__(
        self,
        subsystem: Subsystem,
        first_ns: int,
        rules: Sequence[HypothesisRule],
        history: SubjectHistory,
        known: KnownCause | None = None,
    ) -> None:
        self._rules, self._history, self._known = rules, history, known
        self._episode = Episode(first_ns, first_ns, subsystem, [subsystem])
        self._trace = Trace()
        self._subjects = CaseSubjects.begin(history, first_ns)
        self._active: deque[int] = deque(maxlen=MOST_ACTIVE_S)
        self._kept: dict[CaseKey, KeptHighest] = {}

    def kept_highest(self, plan: ColumnPlan, highest: Floats) -> dict[CaseKey, Floats]:
        """Return, by signature, the highest values from before the episode.

        The live score learns what lasts; the signature still compares with what was before.
        """
        return {key: kept.applied(plan, highest) for key, kept in self._kept.items()}

    def save(self) -> list[StateValue]:
        """Return what signatures compare with, for another process."""
        return [
            {**key._asdict(), "labels": list(kept.columns.labels), "highest": kept.highest}
            for key, kept in self._kept.items()
        ]

    def restore(self, rows: Iterable[StateTree]) -> None:
        """Take what ``save`` returned; raises ``StateError``."""
        for row in rows:
            columns = ColumnSet(texts(row, "labels"))
            highest = array(row, "highest", np.float64, (len(columns),))
            key = CaseKey(text(row, "rule"), text(row, "instance"))
            self._kept[key] = KeptHighest(columns, highest)

    @property
    def severities(self) -> list[Severity]:
        severities = self._episode.certain_severities
        return severities or ([self._known.severity] if self._known else [])

    def add(self, second: ObservedSecond, matches: Matches, highest: Floats) -> None:
        """Count a second in which the episode goes on; ``highest`` is normal for its columns."""
        for match in matches.sustained:
            self._kept.setdefault(match.key, KeptHighest.of(match, second.plan, highest))
        affected = {match.rule.subsystem: 0.0 for match in matches.sustained}
        self._trace.add(second, subjects=subject_values(matches.present))
        self._episode.add(second.start_ns, affected)
        self._episode.add_matches(matches.sustained)
        self._active.append(second.start_ns)
        for match in matches.present:
            self._episode.present_ns[match.rule.name] = second.start_ns
        if matches.sustained:
            self._known = None

    def applied(self, finding: Finding, node: str, episode: PaperEpisode) -> Finding:
        """Return a finding of the vote with its cause and its culprits."""
        if not self._active:
            return self._with_known(finding)
        self._episode.subsystems += [
            each for each in episode.peak.subsystems if each not in self._episode.subsystems
        ]
        record = EpisodeRecord(
            node=node,
            episode=self._episode,
            trace=self._trace,
            methods=finding.methods,
            state=State.OPEN,
            subjects=self._subjects,
            active=self._active,
        )
        found = attribution.attribute(record, self._rules, self._history)
        named = attribution.finding(record, found, self._history)
        with_pods = replace(
            finding,
            pods=named.pods,
            subjects=named.subjects,
            share_metric=named.share_metric,
            victims=named.victims,
            notes=(*finding.notes, *named.notes),
        )
        if named.hypothesis is None:
            return self._with_known(with_pods)
        return replace(
            with_pods,
            hypothesis=named.hypothesis,
            subsystem=named.subsystem,
            subsystems=tuple(dict.fromkeys((*finding.subsystems, *named.subsystems))),
            claim=named.claim,
            evidence=_without_repetition(named.evidence, finding.evidence),
            score_percent=max(finding.score_percent, 100 if self._episode.matches else 0),
            confidence_percent=max(finding.confidence_percent, named.confidence_percent),
        )

    def known(self, finding: Finding) -> KnownCause | None:
        """Return what the next analyzer should know of the cause of this finding."""
        if finding.hypothesis is None:
            return None
        return KnownCause(finding.hypothesis, finding.subsystem, finding.severity, finding.claim)

    def _with_known(self, finding: Finding) -> Finding:
        known = self._known
        if known is None:
            return finding
        subsystems = tuple(dict.fromkeys((*finding.subsystems, known.subsystem)))
        return replace(
            finding,
            hypothesis=known.hypothesis,
            subsystem=known.subsystem,
            subsystems=subsystems,
            claim=known.claim,
        )


def _without_repetition(
    first: Sequence[Evidence], second: Sequence[Evidence]
) -> tuple[Evidence, ...]:
    """Return the evidence of both, of each metric and feature the first line."""
    lines: dict[tuple[str, str, str], Evidence] = {}
    for line in (*first, *second):
        lines.setdefault((line.metric, line.instance, line.feature), line)
    return tuple(lines.values())[:MOST_EVIDENCE]
