"""Claims: one sentence about a finding, which holds for any number of CPUs, tasks and devices.

Time per second is a share of the time where one clock counts it: a stalled host, a throttled GPU.
Sums over CPUs, tasks or requests may exceed all the time: they are seconds a second.
"""

from __future__ import annotations

import numpy as np

from reveal_analyzer.derive.columns import CHANGE, LARGEST, TOTAL, Column
from reveal_analyzer.episodes.trace import Trace
from reveal_analyzer.formatting import amount, human, is_summed_time, is_time
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.hypotheses.signature_matcher import SignatureMatch
from reveal_contract.metric import Kind

_VALUE, _OF_THE_TIME = "{value}", "{value} of the time"
_PER_SECOND = (" a second", " every second")
_WHERE = {LARGEST: " of the busiest CPU", TOTAL: " of all subjects together"}


def rule_claim(trace: Trace, rule: HypothesisRule, match: SignatureMatch | None) -> str:
    """Return the sentence of a known cause, with the value of its first condition or expectation.

    Of a signature that matched, it is the value of the column that met the condition, and never
    that of another device.
    """
    if _VALUE not in rule.claim:
        return _capitalized(rule.claim)
    column = match.columns[0] if match else None
    index = trace.stats.index_of(column) if column else _largest_expected(trace, rule)
    if index is None or np.isnan(trace.stats.values[index]):
        metric = column.metric.name if column else rule.expects[0].metric
        return f"The evidence fits {rule.name}; the value of {metric} was not read"
    value = float(trace.stats.values[index])
    return _capitalized(_filled(rule.claim, trace.stats.columns[index], value))


def column_claim(trace: Trace, index: int) -> str:
    """Return the sentence of a finding without a known cause: its strongest column."""
    column = trace.stats.columns[index]
    value, baseline = float(trace.stats.values[index]), float(trace.baseline[index])
    metric = column.metric
    instance = f"{{{column.instance}}}" if column.instance else ""
    name = f"{metric.name}{instance} ({metric.origin}){_WHERE.get(column.feature, '')}"
    if column.feature == CHANGE:
        verb = "falls" if value < 0 else "grows"
        return f"{name} {verb} by {_amount(column, abs(value))}"
    return f"{name} at {_amount(column, value)}, baseline {_amount(column, baseline)}"


def _largest_expected(trace: Trace, rule: HypothesisRule) -> int | None:
    """Return the column of the first expectation that has a value.

    Of several instances it is the one that left its baseline most.  The sentence is about the first
    expectation: a later one has its place only if it measures the same.
    """
    stats, same = trace.stats, rule.stated_metrics
    for expectation in rule.expects:
        indices = stats.indices(expectation)
        known = indices[~np.isnan(stats.values[indices])]
        if known.size and expectation.metric in same:
            excess = stats.excess[int(expectation.direction == "down"), known]
            ranked = excess if excess.max() > 0 else stats.values[known]
            return int(known[int(np.argmax(ranked))])
    return None


def _filled(claim: str, column: Column, value: float) -> str:
    """Return a claim with its value; the words around it decide how the value is written."""
    per_second = any(words in claim for words in _PER_SECOND)
    if is_time(column.metric):
        if per_second:
            return claim.replace(_VALUE, human(value, "ns", Kind.GAUGE))
        share = _time_phrase(column, value)
        return claim.replace(_OF_THE_TIME, share).replace(_VALUE, share)
    text = _amount(column, value)
    return claim.replace(_VALUE, text.removesuffix("/s") if per_second else text)


def _time_phrase(column: Column, value: float) -> str:
    """Return time per second: ``38 % of the time``, or ``1.8 s a second`` of a sum."""
    if is_summed_time(column.metric, column.feature, column.instance):
        return f"{human(value, 'ns', Kind.GAUGE)} a second"
    return f"{human(value, 'ns', Kind.COUNTER)} of the time"


def _amount(column: Column, value: float) -> str:
    return amount(column.metric, column.feature, column.instance, value)


def _capitalized(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
