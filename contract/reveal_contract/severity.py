"""Severity of a finding: every threshold that decides it, whatever the source of the finding.

Only two severities are set elsewhere: a certain signature and a configuration rule name their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from reveal_contract.finding import Severity

# score divided by its threshold
_HIGH_SCORE, _MEDIUM_SCORE = 4.0, 2.0
# share of the time that a victim wanted, lost to one culprit
_CRITICAL_LOSS, _HIGH_LOSS = 0.5, 0.2
# percent by which the steps of a job take longer
_CRITICAL_SLOWDOWN, _HIGH_SLOWDOWN, _MEDIUM_SLOWDOWN = 30.0, 15.0, 5.0
_ALL_DETECTORS, _MOST_DETECTORS = 3, 2  # of the paper


def of_score(ratio: float) -> Severity:
    """Return the severity of a score, given as a multiple of its threshold."""
    if ratio >= _HIGH_SCORE:
        return Severity.HIGH
    return Severity.MEDIUM if ratio >= _MEDIUM_SCORE else Severity.LOW


def of_episode(ratio: float, certain: Sequence[Severity]) -> Severity:
    """Return the severity of an episode: the worst of its score and its certain signatures.

    ``ratio`` is the highest score of the present harm as a multiple of its threshold; ``certain``
    holds the severities of the signatures that match.  How long the harm has lasted does not count.
    """
    # a score below its threshold must not raise the severity that a signature asks for
    severities = certain if certain and ratio <= 1 else [of_score(ratio), *certain]
    return max(severities, key=lambda severity: severity.rank)


def of_agreement(agreeing: int, certain: Sequence[Severity]) -> Severity:
    """Return the severity of an episode of Paper mode.

    ``agreeing`` of the paper's detectors agree; ``certain`` holds the severities of the signatures
    that match.  The vote alone is High or Medium; without a vote the signatures decide.
    """
    severities = list(certain)
    if agreeing >= _ALL_DETECTORS:
        severities.append(Severity.HIGH)
    elif agreeing >= _MOST_DETECTORS or not certain:
        severities.append(Severity.MEDIUM)
    return max(severities, key=lambda severity: severity.rank)


def of_slowdown(percent: float, *, resumed: bool = False) -> Severity:
    """Return the severity of a job whose steps take ``percent`` longer.

    ``resumed``: since a pause of the job.  It may be another run, with longer steps on purpose.
    """
    if resumed:
        percent = min(percent, _MEDIUM_SLOWDOWN)
    if percent >= _CRITICAL_SLOWDOWN:
        return Severity.CRITICAL
    if percent >= _HIGH_SLOWDOWN:
        return Severity.HIGH
    return Severity.MEDIUM if percent >= _MEDIUM_SLOWDOWN else Severity.LOW


def of_loss(share: float) -> Severity:
    """Return the severity of a loss: the share of the wanted time that one culprit took."""
    if share >= _CRITICAL_LOSS:
        return Severity.CRITICAL
    return Severity.HIGH if share >= _HIGH_LOSS else Severity.MEDIUM


def of_outlier(ratio: float | None, *, permanent: bool) -> Severity:
    """Return the severity of a node that differs from its peers.

    ``ratio`` is the highest score of a harmful metric as a multiple of its threshold, ``None`` if
    only settings differ.
    """
    if ratio is None:  # a different setting is no proof of harm
        return Severity.LOW
    # a permanent difference, such as a missing device, does not depend on the load: its score
    # says nothing more
    return Severity.MEDIUM if permanent else of_score(ratio)
