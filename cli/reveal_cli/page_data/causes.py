"""The causes that are not those of a finding, each with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Bools, Floats
from reveal_analyzer.hypotheses.column_stats import ColumnStats
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.hypotheses.rejection import Episode, rejections
from reveal_analyzer.tables.scoring.api import Table
from reveal_analyzer.tables.scoring.scales import plain_scale
from reveal_cli.page_data.model import RuledOut
from reveal_cli.page_data.scores import NodeTable
from reveal_contract.finding import Finding

_MARGIN_NS = 10 * 10**9
_BAND = (0.05, 0.95)


@dataclass(frozen=True)
class Reference:
    """The calm seconds of a node: median and band (columns,) of each column, and its spread."""

    center: Floats
    low: Floats
    high: Floats
    spread: Floats

    @classmethod
    def of(cls, table: Table, busy_ns: Sequence[tuple[int, int]]) -> Reference:
        """Return that of the seconds outside of some times; of all where none is outside."""
        calm = _outside(table, busy_ns)
        values = table.values[calm] if calm.any() else table.values
        unknown = np.isnan(values).all(axis=0)
        known = np.where(unknown, 0.0, values)
        low, center, high = np.nanquantile(known, (_BAND[0], 0.5, _BAND[1]), axis=0)
        center[unknown] = np.nan
        return cls(center, low, high, plain_scale(known).spread)


def ruled_out(
    finding: Finding,
    source: NodeTable,
    reference: Reference,
    rules: Sequence[HypothesisRule],
    span_ns: tuple[int, int],
    node: tuple[int, bool],
) -> list[RuledOut]:
    """Return the other causes of the finding's subsystems; ``node``: its CPUs, and its ledger."""
    first, end = np.searchsorted(source.table.times_ns, [span_ns[0], span_ns[1] + 1]).tolist()
    if first >= end:
        return []
    values = source.table.values[first:end]
    means = _means(values)
    stats = ColumnStats(tuple(source.columns), means, _excess(means, reference))
    name = finding.hypothesis.name if finding.hypothesis else ""
    chosen = next((rule for rule in rules if rule.name == name), None)
    subsystems = finding.subsystems or (finding.subsystem,)
    found = rejections(rules, chosen, subsystems, Episode(values, stats, reference.center, *node))
    return [RuledOut(each.name, each.result.value, each.reason) for each in found]


def _outside(table: Table, busy_ns: Sequence[tuple[int, int]]) -> Bools:
    calm: Bools = np.ones(len(table), bool)
    for first, last in busy_ns:
        calm &= (table.times_ns < first - _MARGIN_NS) | (table.times_ns > last + _MARGIN_NS)
    return calm


def _means(values: Floats) -> Floats:
    known = ~np.isnan(values)
    counts = known.sum(axis=0)
    sums = np.where(known, values, 0.0).sum(axis=0)
    means: Floats = np.divide(sums, counts, out=np.full(counts.shape, np.nan), where=counts > 0)
    return means


def _excess(means: Floats, reference: Reference) -> Floats:
    """Return how far each mean is above and below the band (2, columns), in spreads."""
    spread = np.where(reference.spread > 0, reference.spread, np.inf)
    up, down = (means - reference.high) / spread, (reference.low - means) / spread
    excess: Floats = np.nan_to_num(np.maximum(np.stack([up, down]), 0.0))
    return excess
