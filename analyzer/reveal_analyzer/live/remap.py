"""Other columns than before: where each came from, and what it was until now."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats32, Indices

_Any = TypeVar("_Any", bound=np.floating[Any])


class Shift(NamedTuple):
    """Of each column its place before, -1 where it had none; and what such a one was, as seen."""

    source: Indices
    level: Floats32

    def levels(self, rows: NDArray[_Any]) -> NDArray[_Any]:
        """Rows of levels in the order of the columns now."""
        made = self.excess(rows)
        new = self.source < 0
        made[..., new] = self.level[new]
        return made

    def excess(self, rows: NDArray[_Any]) -> NDArray[_Any]:
        """Rows of what was never seen of a new column: 0."""
        if not rows.shape[-1]:
            return np.zeros((*rows.shape[:-1], self.source.size), rows.dtype)
        made = rows.take(self.source, axis=-1)  # unlike an index it keeps the order of memory
        made[..., self.source < 0] = 0.0
        return made
