"""Public surface for detectors and causes: what code outside the project imports.

Names outside this module are internal and may change without notice.  ``docs/extending.md`` has an
example of a detector; ``docs/how-to/add-a-cause.md`` describes the files of causes.
"""

from reveal_analyzer.detectors.base import Arrays, ScaledDetector
from reveal_analyzer.detectors.isolation_forest import IsolationForest
from reveal_analyzer.detectors.mahalanobis import Mahalanobis
from reveal_analyzer.detectors.threshold import Threshold, validation_threshold
from reveal_analyzer.detectors.zscore import ZScore
from reveal_analyzer.hypotheses.loader import load as load_hypotheses
from reveal_analyzer.hypotheses.loader import parse as parse_hypotheses
from reveal_analyzer.hypotheses.model import HypothesisError, HypothesisRule

__all__ = [
    "Arrays",
    "HypothesisError",
    "HypothesisRule",
    "IsolationForest",
    "Mahalanobis",
    "ScaledDetector",
    "Threshold",
    "ZScore",
    "load_hypotheses",
    "parse_hypotheses",
    "validation_threshold",
]
