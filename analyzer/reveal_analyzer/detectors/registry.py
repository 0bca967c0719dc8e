"""The detectors in use and their names; a new detector is added here.

They decide in the paper mode.  Otherwise ``live.score`` decides, and findings list which of them
agree.
"""

from __future__ import annotations

from reveal_analyzer.detectors.base import ScaledDetector
from reveal_analyzer.detectors.isolation_forest import IsolationForest
from reveal_analyzer.detectors.mahalanobis import Mahalanobis
from reveal_analyzer.detectors.zscore import ZScore

METHODS = ("ZScore", "Mahalanobis", "IsolationForest")


def new_detectors(random_state: int) -> tuple[ScaledDetector, ...]:
    """Return new, unfitted detectors in the order of ``METHODS``."""
    return ZScore(), Mahalanobis(), IsolationForest(random_state=random_state)
