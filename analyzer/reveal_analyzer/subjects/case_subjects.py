"""What a case keeps about subjects: how they were before it, its culprits and its victims.

Later looks may make an answer more certain.  None replaces it because memory expired: if no active
second of the case is in memory, the last answer stays.  The foremost culprit changes only while the
case is young, or when it is back at its level from before while another subject is not, which is no
culprit of another case.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from reveal_analyzer.state.records import restore_record, save_record
from reveal_analyzer.state.tree import (
    StateError,
    StateTree,
    StateValue,
    flag,
    integer,
    section,
    texts,
)
from reveal_analyzer.subjects.comparison import LEAST_CHANGE, Comparison, MetricComparison
from reveal_analyzer.subjects.culprits import CulpritQuery, Kept, find_culprits
from reveal_analyzer.subjects.directory import SubjectKey
from reveal_analyzer.subjects.finding_subjects import NamedSubjects
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_analyzer.subjects.means import SubjectMeans
from reveal_analyzer.subjects.reference import SubjectReference, restore_means, save_means
from reveal_contract import catalogue
from reveal_contract.time_units import NS_PER_SECOND

_YOUNG_S = 60  # a culprit that shows later than this reacted to the case
_RECENT_S = 10  # for so long a culprit must be back at its level from before
_MOST_NOTES = 2


@dataclass
class CaseSubjects:
    """Subjects of one case that began at ``first_ns``."""

    first_ns: int
    reference: SubjectReference
    onset: SubjectMeans | None = None
    named: NamedSubjects = field(default_factory=NamedSubjects)
    fell: bool = False  # whether the culprits are those that lost
    hurt: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def begin(
        cls, history: SubjectHistory, first_ns: int, excluded: Collection[int] = ()
    ) -> CaseSubjects:
        """Return the subjects of a case that opens; ``excluded`` as in ``before``."""
        return cls(first_ns, history.before(first_ns, excluded))

    def culprits(
        self, history: SubjectHistory, query: CulpritQuery, active: Sequence[int]
    ) -> NamedSubjects:
        """Return the culprits as they are known now; ``active`` are starts of seconds, in order."""
        if self.onset is None:
            self.onset = history.onset(self.first_ns)
        comparison = history.comparison(query.searched, self.reference, active, self.onset)
        if comparison is not None:
            self._update(history, query, active, comparison)
        return self.named

    def victims(
        self, history: SubjectHistory, metrics: Sequence[str], active: Sequence[int]
    ) -> tuple[str, ...]:
        """Return the names of the subjects that lose by the case, without its culprits."""
        if not metrics:
            return ()
        victims = history.victims(metrics, self.reference, active)
        self.hurt = self.hurt if victims is None else victims
        return tuple(name for name in self.hurt if name not in self.named.culprits)

    def is_culprit_back(self, history: SubjectHistory) -> bool:
        """Return whether the foremost culprit has been back at its level from before for 10 s."""
        recent = history.latest(_RECENT_S)
        if not self.named.first or len(recent) < _RECENT_S:
            return False
        comparison = history.comparison([self.named.metric], self.reference, recent)
        return comparison is not None and self._is_back(comparison)

    def successor(
        self, history: SubjectHistory, query: CulpritQuery, seconds: Sequence[int]
    ) -> NamedSubjects | None:
        """Return the culprits of these seconds if the foremost one is back by then, else None.

        None of another case succeeds, and nobody where no culprit is known.
        """
        metrics = {*query.searched, self.named.metric} - {""}
        comparison = history.comparison(metrics, self.reference, seconds, self.onset)
        if comparison is None or not self._is_back(comparison):
            return None
        answer = find_culprits(query, comparison)
        others = {self._first_now(comparison), *query.others}
        return answer if answer.first and answer.first not in others else None

    def save(self) -> dict[str, StateValue]:
        """Return it as a state tree."""
        return {
            "first_ns": self.first_ns,
            "reference": self.reference.save(),
            "onset": save_means(self.onset) if self.onset else None,
            "named": save_record(self.named),
            "fell": self.fell,
            "hurt": list(self.hurt),
            "notes": list(self.notes),
        }

    @classmethod
    def restore(cls, tree: StateTree) -> CaseSubjects:
        """Return the subjects of a saved state tree; raises ``StateError``."""
        named = restore_record(NamedSubjects, section(tree, "named"))
        if named.metric:
            _checked(named.metric)
        return cls(
            first_ns=integer(tree, "first_ns"),
            reference=SubjectReference.restore(section(tree, "reference")),
            onset=restore_means(section(tree, "onset")) if tree.get("onset") is not None else None,
            named=named,
            fell=flag(tree, "fell"),
            hurt=texts(tree, "hurt"),
            notes=texts(tree, "notes"),
        )

    def _update(
        self,
        history: SubjectHistory,
        query: CulpritQuery,
        active: Sequence[int],
        comparison: Comparison,
    ) -> None:
        settled = comparison.active.last_ns - self.first_ns >= _YOUNG_S * NS_PER_SECOND
        so_far = self._first_now(comparison)
        if settled and so_far and self._replace(history, query, active):
            return
        answer = find_culprits(query, comparison, Kept(so_far, settled))
        # while nobody grows any more, those who did stay named
        if not so_far or (answer.first and (answer.first == so_far or not settled)):
            self.named, self.fell = answer, query.fell

    def _replace(self, history: SubjectHistory, query: CulpritQuery, active: Sequence[int]) -> bool:
        """Name another culprit if the one named so far is back, and say so in a note."""
        answer = self.successor(history, query, list(active)[-_RECENT_S:])
        if answer is None:
            return False
        time = datetime.fromtimestamp(active[-1] // NS_PER_SECOND, UTC)
        note = (
            f"at {time:%H:%M:%S}Z {self.named.first} is back at its level from before,"
            f" and {answer.first} is not"
        )
        self.notes = (*self.notes[1 - _MOST_NOTES :], note)
        self.named, self.fell = answer, query.fell
        return True

    def _first_now(self, comparison: Comparison) -> str:
        """Return the name that the foremost culprit has by now: its pod may be known since."""
        key = self._key_now(comparison)
        return comparison.directory.display_name(key) if key else ""

    def _key_now(self, comparison: Comparison) -> SubjectKey | None:
        if self.named.foremost is None or not self.named.first:
            return None
        return comparison.directory.current(self.named.foremost, self.reference.end_ns)

    def _is_back(self, comparison: Comparison) -> bool:
        """Return whether the foremost culprit is back at its level from before the case."""
        key = self._key_now(comparison)
        table = MetricComparison(self.named.metric, comparison)
        if key is None or not table.was_read:
            return False
        owner = comparison.directory.display_name(key)
        own = [change.change for change in table.changes() if change.owner == owner]
        if not own:
            return not comparison.directory.may_live(key, comparison.active.last_ns)
        left = max(own) if not self.fell else -min(own)
        return left < LEAST_CHANGE / 2


def _checked(metric: str) -> None:
    try:
        catalogue.find(metric)
    except catalogue.UnknownMetricError:
        raise StateError(f"{metric!r} is no metric of this version") from None
