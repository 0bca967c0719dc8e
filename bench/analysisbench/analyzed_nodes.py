"""Nodes whose analysis has seen minutes already, and what a second of one costs."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import replace

from benchmark_report import Row, median_seconds
from reveal_analyzer.hypotheses import loader
from reveal_analyzer.node import NodeAnalyzer
from reveal_contract import wire
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.time_units import NS_PER_SECOND
from slice_sources import Slice

HISTORY_S = 330  # seconds after which the past is full
ROUNDS, CALLS = 5, 50  # seconds timed: refits of the ranges among them


class Node:
    """One node at its ``age``; slices come round again when the recorded ones are over."""

    def __init__(self, recorded: Sequence[Slice], settings: AnalyzerSettings, age: int) -> None:
        self._rules = loader.load(settings.hypotheses)
        self.analysis = NodeAnalyzer("bench", settings, rules=self._rules)
        self._slices = endless(recorded)
        for _ in range(age):
            self.step()

    def step(self) -> int:
        """One second; how many changes of findings it brought."""
        message, table = next(self._slices)
        return len(self.analysis.analyze(message, table))

    def copied(self) -> NodeAnalyzer:
        """Another node of the same past; what nodes of equal tables share stays shared."""
        plans = list(self.analysis._deriver._plans.values())
        shared: list[object] = [*plans, self._rules, *self._rules]
        shared += [rule.certain for rule in self._rules]
        for plan in plans:
            shared += [plan.channels, plan.columns, *plan.columns, *plan.channels]
        return copy.deepcopy(self.analysis, {id(item): item for item in shared})


def endless(recorded: Sequence[Slice]) -> Iterator[Slice]:
    """Second after second without a gap."""
    first, second = recorded[0][0], 0
    while True:
        message, table = recorded[second % len(recorded)]
        start_ns = first.start_ns + second * NS_PER_SECOND
        yield replace(message, sequence=second, start_ns=start_ns), table
        second += 1


def costs(recorded: Sequence[Slice], modes: Sequence[str]) -> list[Row]:
    """Decoding, and the analysis of a second: with the three on every window, and without."""
    table = recorded[0][1]
    gauges = wire.gauges(table)
    data = [wire.encode(message, gauges) for message, _ in recorded]
    seconds = median_seconds(lambda: [wire.decode(each, gauges) for each in data], calls=3)
    rows = [row("decode a slice", recorded, seconds / len(data))]
    for mode in modes:
        node = Node(recorded, AnalyzerSettings(mode=mode), HISTORY_S)
        seconds = median_seconds(node.step, CALLS, ROUNDS)
        rows.append(row(f"a second of a node, mode {mode}", recorded, seconds))
    return rows


def row(what: str, recorded: Sequence[Slice], seconds: float) -> Row:
    table = recorded[0][1]
    return {
        "what": what,
        "channels": len(table.fast) + len(table.slow),
        "reveal us": seconds * 1e6,
        "nodes a core": 1 / seconds,
    }
