"""Which nodes a comparison covered, and by what: what was not compared is not known to be well."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from reveal_analyzer.fleet.outliers import Drift, Outlier
from reveal_analyzer.fleet.summary import Summary


@dataclass
class ComparedNodes:
    """The compared summaries by node, the nodes compared by load, and (node, job) by jobs."""

    summaries: dict[str, Summary] = field(default_factory=dict)
    loaded: set[str] = field(default_factory=set)
    parts: set[tuple[str, str]] = field(default_factory=set)

    @classmethod
    def of(
        cls,
        summaries: Iterable[Summary],
        groups: Iterable[Sequence[Summary]],
        jobs: Iterable[tuple[str, Sequence[Summary]]],
    ) -> ComparedNodes:
        """Return the nodes of a class, its groups by workload, and the parts of its jobs."""
        return cls(
            {summary.node: summary for summary in summaries},
            {summary.node for group in groups for summary in group},
            {(summary.node, job) for job, parts in jobs for summary in parts},
        )

    def update(self, other: ComparedNodes) -> None:
        """Add the nodes of another class."""
        self.summaries.update(other.summaries)
        self.loaded |= other.loaded
        self.parts |= other.parts

    def minute(self, node: str) -> int | None:
        """Return the minute of a node; ``None`` if it was not compared."""
        summary = self.summaries.get(node)
        return None if summary is None else summary.minute

    def covers(self, deviation: Outlier | Drift) -> bool:
        """Return whether the node was compared by that again, so that its absence is an end."""
        summary = self.summaries.get(deviation.node)
        if summary is None:
            return False
        if isinstance(deviation, Drift):
            return deviation.fact in summary.facts
        return self._is_in_group(deviation) and math.isfinite(_level(summary, deviation))

    def _is_in_group(self, outlier: Outlier) -> bool:
        if outlier.job:
            return (outlier.node, outlier.job) in self.parts
        return outlier.standing or outlier.node in self.loaded


def _level(summary: Summary, outlier: Outlier) -> float:
    """Return the level of the job, or of the node, which replaces a missing one of the job."""
    part = summary.jobs.get(outlier.job)
    of_node = summary.level(outlier.metric)
    return part.levels.get(outlier.metric, of_node) if part is not None else of_node
