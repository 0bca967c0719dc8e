"""Detection thresholds of each sensitivity: the one table behind the profile's ``sensitivity``.

They act in three places: ``limit`` and ``multiple`` in the analyzer's ``live.settings``,
``table_factor`` in ``reveal_cli.table_analysis``, and ``quantile`` in the analyzer's ``node`` for
Paper mode.
"""

from __future__ import annotations

from typing import NamedTuple


class Sensitivity(NamedTuple):
    """Thresholds of the live score, in robust spreads, of tables, and of the paper's detectors."""

    limit: float  # least threshold of the live score
    multiple: float  # least multiple of the node's own healthy score
    table_factor: float  # factor on the default threshold of a table's score
    quantile: float  # of healthy windows' scores: the threshold of each detector of Paper mode


# keys are ``reveal_contract.settings.SENSITIVITIES``
SENSITIVITIES = {
    "Low": Sensitivity(limit=9.0, multiple=2.2, table_factor=1.0, quantile=0.99),
    "Medium": Sensitivity(limit=6.0, multiple=1.5, table_factor=0.85, quantile=0.97),
    "High": Sensitivity(limit=4.5, multiple=1.1, table_factor=0.7, quantile=0.95),
}
