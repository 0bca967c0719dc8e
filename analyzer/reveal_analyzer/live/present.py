"""The present second of one node, compared with references from before."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Bools, Floats32, Indices
from reveal_analyzer.kernels import live
from reveal_analyzer.kernels.live import UNIT
from reveal_analyzer.live.constant_columns import ConstantColumns
from reveal_analyzer.live.reference import ColumnReference, ReferenceIndices

_NO_VIEWS: Floats32 = np.zeros((0, 2, 0), np.float32)


class PresentSecond:
    """Views of the last second, for any of the node's columns, constant ones included.

    ``missing`` are the indices of the columns without a value, ``unobserved`` (columns) those that
    have not been read for longer.
    """

    def __init__(self) -> None:
        self._state: ConstantColumns | None = None
        self._views = _NO_VIEWS
        self._missing: Indices = np.zeros(0, np.intp)
        self._unobserved: Bools = np.zeros(0, np.bool_)
        self._reference_indices = ReferenceIndices()

    def update(
        self, state: ConstantColumns, views: Floats32, missing: Indices, unobserved: Bools
    ) -> None:
        """Replace the second by the next one; ``views`` are those of the active columns."""
        self._state, self._views = state, views
        self._missing, self._unobserved = missing, unobserved

    @property
    def width(self) -> int:
        """Return the number of all columns."""
        return len(self._state.columns) if self._state else 0

    def is_missing(self, columns: Indices) -> Bools:
        """Return which of the columns have no value in this second."""
        missing = self._unobserved[columns]
        return missing | np.isin(columns, self._missing) if self._missing.size else missing

    def views_of(self, columns: Indices) -> Floats32:
        """Return what these columns sustained: (views, 2, n)."""
        assert self._state is not None, "update comes first"
        positions = self._state.positions[columns]
        constant = positions < 0
        if not self._views.shape[-1]:
            result = np.empty((*self._views.shape[:2], columns.size), np.float32)
        else:
            result = self._views.take(positions, axis=-1)
        result[..., constant] = self._state.all_scaled_levels[columns[constant]]
        return result

    def deviation(self, reference: ColumnReference) -> Floats32:
        """Return the weighted excess of a reference's columns (n,), 0 without a value."""
        if self._state is None or not len(reference):
            return np.zeros(len(reference), np.float32)
        indices = self._indices(reference)
        gone = indices < 0
        columns = np.where(gone, 0, indices)
        outside = live.excess(self.views_of(columns), reference.bounds)
        outside /= np.maximum(reference.own_excess, UNIT)
        weighted = live.weigh(outside, self._state.whole.weights[:, columns])
        weighted[gone | self.is_missing(columns)] = 0.0
        return weighted

    def placed(self, reference: ColumnReference, weighted: Floats32) -> Floats32:
        """Return values of a reference's columns (n,) by column of the node, 0 elsewhere."""
        result = np.zeros(self.width, np.float32)
        if self._state is not None and len(reference):
            indices = self._indices(reference)
            known = indices >= 0
            result[indices[known]] = weighted[known]
        return result

    def indices(self, reference: ColumnReference) -> Indices:
        """Return the index of each column of a reference, -1 where the table has it no more."""
        return self._indices(reference) if self._state else np.full(len(reference), -1, np.intp)

    def _indices(self, reference: ColumnReference) -> Indices:
        assert self._state is not None, "update comes first"
        return self._reference_indices.of(reference, self._state.plan)
