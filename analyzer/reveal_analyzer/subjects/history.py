"""Recent counters of the subjects of one node, and the questions that cases ask about them."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Collection, Sequence

from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.subjects.comparison import Change, Comparison
from reveal_analyzer.subjects.culprits import (
    NOBODY,
    CulpritQuery,
    Kept,
    find_culprits,
    find_victims,
)
from reveal_analyzer.subjects.directory import (
    KEPT_S,
    Directory,
    KnownSubjects,
    SubjectSource,
    no_subjects,
)
from reveal_analyzer.subjects.finding_subjects import NamedSubjects, named_subjects
from reveal_analyzer.subjects.means import Layout, Row, SubjectMeans, subject_means
from reveal_analyzer.subjects.reference import SubjectReference
from reveal_contract.channels import Channel
from reveal_contract.finding import Confidence
from reveal_contract.subjects import Identity
from reveal_contract.time_units import NS_PER_SECOND

_BEFORE_S = 60  # seconds before a case: its active seconds are compared with them
_LEAST_BEFORE_S = 15  # without the seconds of other cases; with fewer, those count, too
MARGIN_S = 3  # just before the onset: may already belong to the case
ONSET_S = 5  # first seconds of a case: who has not grown in them reacted to it
_LISTED_NS = 300 * NS_PER_SECOND  # until subjects are read again: each time costs a request
MOST_ACTIVE_S = 60  # the latest active seconds of a case, which describe it


class SubjectHistory:
    """Counters of the subjects of one node over the last minutes.

    ``source`` returns the node's subject table as it is now.
    """

    def __init__(self, source: SubjectSource = no_subjects) -> None:
        self._subjects = KnownSubjects(source)
        self._rows: deque[Row] = deque(maxlen=KEPT_S)
        self._channels: tuple[Channel, ...] = ()
        self._layout = Layout.of(())
        self._directory: Directory | None = None
        self._listed_ns = 0

    @property
    def listed(self) -> tuple[Identity, ...]:
        """The subjects as they were announced when channels last came or went, or later."""
        return self._subjects.last

    def push(self, second: Second) -> None:
        """Keep the counters of one second."""
        is_new = second.plan.channels is not self._channels
        if is_new:
            self._channels = second.plan.channels
            self._layout = Layout.of(self._channels)
        # a subject that is listed under another instance leaves the table at once
        if is_new or abs(second.start_ns - self._listed_ns) >= _LISTED_NS:
            self._subjects.current(second.start_ns)
            self._listed_ns = second.start_ns
        kept = second.channels[self._layout.kept]
        self._rows.append(Row(second.start_ns, self._layout, kept))
        self._directory = None

    def before(self, first_ns: int, excluded: Collection[int] = ()) -> SubjectReference:
        """Return what subjects used in the minute before a case that began at ``first_ns``.

        Starts of seconds in ``excluded`` belong to other cases: they are left out if enough other
        seconds are in memory.  So are seconds from before a long gap.
        """
        end_ns = first_ns - MARGIN_S * NS_PER_SECOND
        earlier = [row for row in self._rows if row.start_ns < end_ns]
        recent = _since(end_ns - KEPT_S * NS_PER_SECOND, earlier)
        preferred = (_without(excluded, recent), _without(excluded, earlier), recent)
        rows = next((rows for rows in preferred if len(rows) >= _LEAST_BEFORE_S), earlier)
        return SubjectReference(end_ns, subject_means(rows[-_BEFORE_S:], self.directory()))

    def onset(self, first_ns: int) -> SubjectMeans | None:
        """Return what subjects used in the first seconds of a case; None until they are over."""
        end_ns = first_ns + ONSET_S * NS_PER_SECOND
        rows = self._between(first_ns, end_ns)
        is_over = bool(self._rows) and self._rows[-1].start_ns >= end_ns
        return subject_means(rows, self.directory()) if rows and is_over else None

    def culprits(
        self,
        query: CulpritQuery,
        reference: SubjectReference,
        active: Collection[int],
        onset: SubjectMeans | None = None,
        kept: Kept = NOBODY,
    ) -> NamedSubjects | None:
        """Return the subjects that explain a case, most first; None if it is not in memory.

        ``active`` are the starts of its active seconds.
        """
        comparison = self.comparison(query.searched, reference, active, onset)
        return find_culprits(query, comparison, kept) if comparison else None

    def victims(
        self, metrics: Sequence[str], reference: SubjectReference, active: Collection[int]
    ) -> tuple[str, ...] | None:
        """Return the names of the subjects that lost by a case, most first; None as above."""
        comparison = self.comparison(metrics, reference, active)
        return find_victims(metrics, comparison) if comparison else None

    def comparison(
        self,
        metrics: Collection[str],
        reference: SubjectReference,
        active: Collection[int],
        onset: SubjectMeans | None = None,
    ) -> Comparison | None:
        """Return the comparison of the active seconds with a reference; None as above."""
        starts = frozenset(active)
        rows = [row for row in self._rows if row.start_ns in starts][-MOST_ACTIVE_S:]
        if not rows:
            return None
        means = subject_means(rows, self.directory(), metrics)
        return Comparison(self.directory(), reference, means, onset, self._is_young(reference))

    def seconds(self, first_ns: int, last_ns: int) -> tuple[int, ...]:
        """Return the starts of the seconds in memory from ``first_ns`` until ``last_ns``."""
        return tuple(row.start_ns for row in self._between(first_ns, last_ns))

    def latest(self, count: int) -> tuple[int, ...]:
        """Return the starts of the last seconds."""
        return tuple(row.start_ns for row in self._rows)[-count:]

    def identify(self, instance: str, time_ns: int) -> NamedSubjects:
        """Return the subject of an instance at a time, whether or not its share changed."""
        return self._named("", [(instance, 0.0)], time_ns, Confidence.CO_LOCATED)

    def measured(
        self, metric: str, shares: Sequence[tuple[str, float]], time_ns: int
    ) -> NamedSubjects:
        """Return culprits that are known by measurement, with their shares (percent) of a metric.

        ``shares`` are by instance, the foremost first.
        """
        return self._named(metric, shares, time_ns, Confidence.MEASURED)

    def name(self, instance: str, time_ns: int) -> str:
        """Return the name that people use for the subject of an instance at a time."""
        directory = self.directory()
        return directory.display_name(directory.key(instance, time_ns))

    def identity(self, instance: str, time_ns: int) -> Identity | None:
        """Return what was announced of the subject that had an instance by a time."""
        directory = self.directory()
        return directory.identity(directory.key(instance, time_ns))

    def _named(
        self,
        metric: str,
        shares: Sequence[tuple[str, float]],
        time_ns: int,
        confidence: Confidence,
    ) -> NamedSubjects:
        directory = self.directory()
        known = []
        for instance, percent in shares:
            key = directory.key(instance, time_ns)
            name = directory.display_name(key)
            change = Change(key, name, 0.0, 0.0, 0.0, 0.0, percent, 0.0)
            known.append((change, confidence))
        return named_subjects(metric, known, directory)

    def directory(self) -> Directory:
        """Return the identities of the subjects as they are known now."""
        if self._directory is None:
            now_ns = self._rows[-1].start_ns if self._rows else 0
            self._directory = Directory(self._subjects.current(now_ns))
        return self._directory

    def _is_young(self, reference: SubjectReference) -> bool:
        """Return whether the first seconds of a case are not over yet."""
        over_ns = reference.end_ns + (MARGIN_S + ONSET_S) * NS_PER_SECOND
        return self._rows[-1].start_ns + NS_PER_SECOND < over_ns

    def _between(self, first_ns: int, last_ns: int) -> list[Row]:
        late = itertools.dropwhile(lambda row: row.start_ns < first_ns, self._rows)
        return [row for row in late if row.start_ns < last_ns]


def _since(since_ns: int, rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.start_ns >= since_ns]


def _without(excluded: Collection[int], rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.start_ns not in excluded]
