"""The subjects of a finding: what they used and lost before it, and in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from reveal_analyzer.arrays import Floats, Ints
from reveal_analyzer.ledger.accounts import Accounts
from reveal_analyzer.ledger.lost_time import LostTime, lost_time
from reveal_analyzer.ledger.totals import summed
from reveal_cli.lost_time_text import culprit_text, percent
from reveal_cli.page_data.history import NodeHistory
from reveal_cli.page_data.model import SubjectRow
from reveal_contract import ledger
from reveal_contract.finding import Confidence, Finding, Pod, Subject
from reveal_contract.time_units import NS_PER_SECOND

MOST_ROWS = 12
_BEFORE_NS = 60 * NS_PER_SECOND
_LEAST_LOST = 0.01
_PAIRS = {ledger.TAKEN_CPU: ledger.LOST_CPU, ledger.TAKEN_DISK: ledger.LOST_DISK}


def subject_rows(
    finding: Finding, history: NodeHistory, span_ns: tuple[int, int], *, fell: bool = False
) -> list[SubjectRow]:
    """Return those that the finding names, and those that lost time in it, most first.

    ``fell``: its cause names the subject that lost most, not the one that grew.
    """
    before_ns = span_ns[0] - _BEFORE_NS, span_ns[0]
    lost_before, lost_during = _lost(history, before_ns), _lost(history, span_ns)
    used_before, used_during = _used(history, before_ns), _used(history, span_ns)
    roles = _roles(finding, fell)
    lost_most = [each.subject for each in lost_during.values() if each.share >= _LEAST_LOST]
    names = list(dict.fromkeys([*roles, *lost_most]))[:MOST_ROWS]
    return [
        SubjectRow(
            name,
            roles.get(name, "loses time"),
            _share(lost_before.get(name)),
            _share(lost_during.get(name)),
            used_before.get(name),
            used_during.get(name),
            _lost_to(lost_during.get(name)),
        )
        for name in names
    ]


def judged(history: NodeHistory, metric: str, subject: str) -> tuple[Ints, Floats]:
    """Return one of ``ledger.JUDGED`` of a subject in each second; nothing without a ledger.

    What it took from others is in ns, the share of its time in which it was stopped in millionths.
    """
    times = [time_ns for time_ns, _ in history.accounts]
    if metric == ledger.STOPPED_SHARE:
        amounts = [
            1e6 * summed([each]).share(subject, ledger.STOPPED) for _, each in history.accounts
        ]
    else:
        amounts = [_taken_by(each, _PAIRS[metric], subject) for _, each in history.accounts]
    return np.array(times, np.int64), np.array(amounts)


def _taken_by(accounts: Accounts, metric: str, culprit: str) -> float:
    pairs = accounts.layout.pairs[metric].pairs
    amounts = zip(pairs, accounts.taken[metric].tolist(), strict=True)
    return float(sum(time for pair, time in amounts if pair.culprit == culprit != pair.victim))


def _roles(finding: Finding, fell: bool) -> dict[str, str]:
    """Return the subjects that a finding names, with their parts in it."""
    return {name: role for name, role in _named(finding, fell) if name}


def _named(finding: Finding, fell: bool) -> Iterator[tuple[str, str]]:
    if finding.impact is not None:
        yield finding.impact.subject, "slowed job"
    yield from ((loss.subject, "loses time by it") for loss in finding.lost_time)
    yield from ((name, "suffers from it") for name in finding.victims)
    causes: list[Pod | Subject] = [*finding.pods, *finding.subjects]
    for each in causes:
        name = f"{each.namespace}/{each.name}" if isinstance(each, Pod) else each.name
        known = each.confidence is not Confidence.CO_LOCATED
        named = "fell most" if fell else f"causes it ({each.share_percent} %)"
        yield name, named if known else "is there"


def _lost(history: NodeHistory, span_ns: tuple[int, int]) -> Mapping[str, LostTime]:
    accounts = [each for time_ns, each in history.accounts if span_ns[0] <= time_ns < span_ns[1]]
    return {each.subject: each for each in lost_time(summed(accounts))} if accounts else {}


def _share(lost: LostTime | None) -> float | None:
    return None if lost is None else lost.share


def _lost_to(lost: LostTime | None) -> str:
    """Return what most was lost to: ``waiting for a CPU: 21 % to batch/reindex``."""
    if lost is None or not lost.losses:
        return ""
    first = lost.losses[0]
    if first.share < _LEAST_LOST:
        return ""
    to = f" to {culprit_text(first.culprit)}" if first.culprit else ""
    return f"{first.reason}: {percent(first.share)}{to}"


def _used(history: NodeHistory, span_ns: tuple[int, int]) -> dict[str, float]:
    """Return the CPUs that each subject used, on average."""
    rows = [used for time_ns, used in history.usage if span_ns[0] <= time_ns < span_ns[1]]
    return {name: _mean([row[name] for row in rows if name in row]) for name in _names(rows)}


def _names(rows: Sequence[Mapping[str, float]]) -> set[str]:
    return {name for row in rows for name in row}


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if value == value]  # noqa: PLR0124 - not NaN
    return sum(known) / len(known) if known else 0.0
