"""Reference of a case: what was normal for its columns before the fault, kept as long as it lasts.

The live score learns a lasting fault as the new normal, so that it can detect others.  A case
therefore compares the present with the reference that it took when it began.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32, Indices
from reveal_analyzer.derive.columns import ColumnPlan, previous_indices


@dataclass(frozen=True, eq=False)
class ColumnReference:
    """What was normal for some columns; they are known by label, as tables change.

    ``bounds`` (views, 4, n) and ``own_excess`` (2, n) are in scaled units: see ``Ranges`` and
    ``Baseline``.  ``highest`` and ``baseline`` (n,) are the highest sustained and the middle level
    in base units.  ``thresholds`` are those of the subsystems.
    """

    labels: tuple[str, ...]
    bounds: Floats32
    own_excess: Floats32
    highest: Floats
    baseline: Floats
    thresholds: Floats

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, chosen: Indices) -> ColumnReference:
        """Return the reference of some of its columns."""
        return ColumnReference(
            tuple(self.labels[index] for index in chosen),
            self.bounds[..., chosen],
            self.own_excess[:, chosen],
            self.highest[chosen],
            self.baseline[chosen],
            self.thresholds,
        )

    def extended(self, other: ColumnReference) -> ColumnReference:
        """Return this reference with the columns of a later one that it does not have yet."""
        known = set(self.labels)
        added = [index for index, label in enumerate(other.labels) if label not in known]
        if not added:
            return self
        return _joined([self, other.select(np.array(added, np.intp))])


class ReferenceIndices:
    """Indices of the columns of references in the present plan."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[ColumnReference, tuple[ColumnPlan, Indices]]
        self._known = WeakKeyDictionary()

    def of(self, reference: ColumnReference, plan: ColumnPlan) -> Indices:
        """Return the index of each column of a reference, -1 where the plan has it no more."""
        known = self._known.get(reference)
        if known is None or known[0] is not plan:
            known = plan, previous_indices(reference.labels, plan.labels)
            self._known[reference] = known
        return known[1]


def _joined(parts: Sequence[ColumnReference]) -> ColumnReference:
    return ColumnReference(
        tuple(label for part in parts for label in part.labels),
        np.concatenate([part.bounds for part in parts], axis=-1),
        np.concatenate([part.own_excess for part in parts], axis=-1),
        np.concatenate([part.highest for part in parts]),
        np.concatenate([part.baseline for part in parts]),
        parts[0].thresholds,
    )
