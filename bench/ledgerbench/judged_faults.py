"""Findings of an analyzer about the faults of a recorded session: cause, culprit, delay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from faultbench.evaluation import TimedUpdate, listen
from faultbench.sessions import GRACE_S, SETTLE_S, Case, Slice
from ledgerbench.recorded_shares import RecordedShares
from ledgerbench.truth_faults import Expected
from reveal_analyzer.node import Announced
from reveal_cli.faults import Culprit
from reveal_contract import ledger
from reveal_contract.channels import ChannelTable
from reveal_contract.finding import Finding, FindingChange
from reveal_contract.settings import AnalyzerSettings

_PREFIX = f"{ledger.SOURCE}."
# how recordings are judged: by name, the mode, and whether the ledger's channels are there
WITH, WITHOUT, PAPER = "with the ledger", "without", "paper"
JUDGES: Mapping[str, tuple[str, bool]] = {
    WITH: ("online", True), WITHOUT: ("online", False), PAPER: ("paper", False),
}  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """What was found about one fault: the right finding, else the first one that opened.

    ``seconds`` after the onset; None if nothing was found.
    """

    seconds: float | None = None
    cause: str = ""
    culprit: str = ""
    cause_right: bool = False
    culprit_right: bool = False

    @property
    def right(self) -> bool:
        return self.cause_right and self.culprit_right


def updates(
    judge: str, slices: Sequence[Slice], warmup_s: int, shares: RecordedShares
) -> list[TimedUpdate]:
    """Return all that an analyzer says while it lives through a whole session."""
    mode, has_ledger = JUDGES[judge]
    settings = AnalyzerSettings(mode=mode, warmup_seconds=warmup_s)
    played = shares.play(slices if has_ledger else without_ledger(slices))
    return list(listen(played, settings, Announced(shares=shares.current)))


def without_ledger(slices: Iterable[Slice]) -> Iterator[Slice]:
    """Yield the slices as a collector without the ledger would have sent them."""
    tables: dict[bytes, tuple[ChannelTable, np.ndarray[tuple[int], np.dtype[np.bool_]]]] = {}
    for each in slices:
        if each.table.key not in tables:
            kept = [not channel.metric.startswith(_PREFIX) for channel in each.table.slow]
            slow = tuple(c for c, is_kept in zip(each.table.slow, kept, strict=True) if is_kept)
            tables[each.table.key] = ChannelTable(each.table.fast, slow), np.array(kept, np.bool_)
        table, mask = tables[each.table.key]
        message = replace(
            each.message, table=table.key, slow=each.message.slow[mask],
            slow_missing=each.message.slow_missing[mask],
        )  # fmt: skip
        yield Slice(each.end, message, table)


def verdict(case: Case, expected: Expected, heard: Sequence[TimedUpdate]) -> Verdict:
    """Return the first right finding while the fault was there, else the first that opened.

    A finding that was right before the onset already says nothing about this fault.
    """
    old = {
        each.finding.id
        for each in heard
        if each.seconds <= case.onset and _of(each, case, expected).right
    }
    during = [
        each
        for each in heard
        if case.onset < each.seconds <= case.offset + GRACE_S
        and each.finding.id not in old
        and each.change in (FindingChange.OPENED, FindingChange.CHANGED)
    ]
    results = [_of(each, case, expected) for each in during]
    opened = (
        result
        for each, result in zip(during, results, strict=True)
        if each.change is FindingChange.OPENED
    )
    right = (result for result in results if result.right)
    return next(right, None) or next(opened, None) or Verdict()


def _of(update: TimedUpdate, case: Case, expected: Expected) -> Verdict:
    cause, culprit = cause_of(update.finding), culprit_of(update.finding)
    nobody = expected.culprit is Culprit.NOBODY
    return Verdict(
        update.seconds - case.onset, cause, culprit, cause in expected.causes,
        nobody or culprit == case.subject,
    )  # fmt: skip


def cause_of(finding: Finding) -> str:
    return finding.hypothesis.name if finding.hypothesis else ""


def culprit_of(finding: Finding) -> str:
    return finding.foremost.name if finding.foremost else ""


def others(
    cases: Sequence[Case], heard: Sequence[TimedUpdate], guilty: Iterable[str], since: float
) -> list[TimedUpdate]:
    """Return findings that opened after ``since``, without a fault and not about a neighbour."""
    neighbours = set(guilty)
    return [
        each
        for each in heard
        if each.change is FindingChange.OPENED
        and each.seconds > since
        and culprit_of(each.finding) not in neighbours
        and not any(case.onset < each.seconds <= case.offset + SETTLE_S for case in cases)
    ]
