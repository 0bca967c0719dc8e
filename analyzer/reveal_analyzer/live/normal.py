"""What is normal for each column of a node now: ranges, and levels in base units."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32, Indices
from reveal_analyzer.live.baseline import Baseline
from reveal_analyzer.live.column_map import ColumnMap
from reveal_analyzer.live.constant_columns import ConstantColumns
from reveal_analyzer.live.new_levels import ColumnsBefore
from reveal_analyzer.live.ranges import Ranges, spread_floors
from reveal_analyzer.live.reference import ColumnReference
from reveal_analyzer.live.settings import LiveSettings

_SIGNATURE_VIEW = 1  # signatures compare with what was sustained for 2 of 3 s
_MIN_HISTORY = 6  # seconds before a range means anything


class NormalLevels:
    """Ranges of the active columns, None before there is a history, and levels of all columns.

    ``baseline`` is the middle level of each column, ``highest`` the highest that it sustained for
    2 of 3 s, in base units.
    """

    def __init__(self, settings: LiveSettings) -> None:
        self.ranges: Ranges | None = None
        self.baseline: Floats = np.zeros(0)
        self.highest: Floats = np.zeros(0)
        self._views = len(settings.views)
        self._floors = spread_floors(settings)

    def adopt_table(self, columns: ConstantColumns) -> None:
        """Adopt all columns of another table, as if they had been constant; ``fit`` comes next."""
        self.highest = columns.rounded_levels()
        self.baseline = _six_digits(self.highest)

    def fit(self, baseline: Baseline, columns: ConstantColumns) -> None:
        """Follow the history, if it is long enough."""
        if len(baseline.history) < _MIN_HISTORY:
            return
        self.ranges, active = baseline.history.ranges(), columns.active
        self.baseline, self.highest = self.baseline.copy(), self.highest.copy()
        self.baseline[active] = _six_digits(columns.scaling.base_units(self.ranges.middle))
        self.highest[active] = columns.scaling.base_units(self.ranges.high[_SIGNATURE_VIEW])

    def remap(self, column_map: ColumnMap) -> None:
        """Adopt another set of active columns."""
        if self.ranges is not None:
            self.ranges = self.ranges.remap(column_map, self._floors)

    def bounds(self, state: ConstantColumns, columns: Indices) -> Floats32:
        """Return the bounds (views, 4, n) of any columns; before there is a history no limits."""
        bounds = np.empty((self._views, 4, columns.size), np.float32)
        if self.ranges is None:
            bounds[:, 0], bounds[:, 1], bounds[:, 2:] = np.inf, -np.inf, 1.0
            return bounds
        bounds[:, :2] = state.all_scaled_levels[columns]
        bounds[:, 2:] = self._floors[:, None, None]
        positions = state.positions[columns]
        active = positions >= 0
        bounds[..., active] = self.ranges.bounds[..., positions[active]]
        return bounds

    def reference(
        self, state: ConstantColumns, baseline: Baseline, columns: Indices
    ) -> ColumnReference:
        """Return what is normal for these columns (indices among all) now."""
        own: Floats32 = np.zeros((2, columns.size), np.float32)
        highest, middle = np.full(columns.size, np.inf), np.full(columns.size, np.nan)
        if self.ranges is not None:
            positions = state.positions[columns]
            active = positions >= 0
            own[:, active] = baseline.own_excess[1][:, positions[active]]
            highest, middle = self.highest[columns], self.baseline[columns]
        all_labels = state.plan.labels
        labels = tuple(all_labels[column] for column in columns.tolist())
        return ColumnReference(
            labels, self.bounds(state, columns), own, highest, middle, baseline.thresholds
        )

    def before(self, state: ConstantColumns, baseline: Baseline, columns: Indices) -> ColumnsBefore:
        """Return what is kept of active columns whose level begins to be learned."""
        positions = state.positions[columns]
        return ColumnsBefore(
            columns=columns,
            quantiles=baseline.history.quantiles(positions),
            bounds=self.bounds(state, columns).transpose(2, 0, 1),
            own_excess=baseline.own_excess[..., positions].transpose(2, 0, 1),
        )


def _six_digits(values: Floats) -> Floats:
    """Round to six significant digits, as the seventh is noise of single precision."""
    with np.errstate(divide="ignore"):
        unit = 10.0 ** np.clip(np.floor(np.log10(np.abs(values))) - 5, -300, 300)
    rounded: Floats = np.round(values / unit) * unit
    return rounded
