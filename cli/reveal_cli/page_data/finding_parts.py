"""The findings of a page, each with all that the recording has on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

import numpy as np

from reveal_analyzer.arrays import Floats, Ints
from reveal_analyzer.hypotheses import loader
from reveal_cli.page_data.causes import Reference, ruled_out
from reveal_cli.page_data.history import History, NodeHistory
from reveal_cli.page_data.losses import judged, subject_rows
from reveal_cli.page_data.model import (
    FindingPart,
    Panel,
    PeerStrip,
    PeerValue,
    RankedRow,
    RuledOut,
)
from reveal_cli.page_data.samples import (
    SampleRequest,
    SampleSeries,
    band_of,
    read_samples,
    window_lines,
)
from reveal_cli.page_data.scores import NodeTable, ranked_rows
from reveal_cli.page_data.units import known_metric, label_of, level_feature, unit_of
from reveal_cli.recordings import Slices
from reveal_cli.summary_text import Coverage
from reveal_contract import cpulist, ledger
from reveal_contract.finding import Evidence, Finding
from reveal_contract.time_units import NS_PER_SECOND

MOST_DETAILED = 12  # findings with charts, the most severe first
MOST_PANELS = 6
_WINDOW_NS = 60 * NS_PER_SECOND  # before and after a finding


@dataclass(frozen=True)
class Judged:
    """A recording and what was judged from it; ``hypotheses`` are files of one's own causes."""

    path: Path
    title: str
    findings: Sequence[Finding]
    hints: Sequence[Finding]
    coverage: Coverage
    hypotheses: Sequence[str] = ()
    notes: Sequence[str] = ()


def worst_first(findings: Sequence[Finding]) -> list[Finding]:
    """Return findings by severity, then by what they cost, then by onset."""
    return sorted(findings, key=_order)


def _order(finding: Finding) -> tuple[int, float, float, int, str]:
    return *finding.worst_first, finding.first_observed_ns, finding.id


class FindingParts:
    """The findings with what the recording has on them."""

    def __init__(self, judged: Judged, history: History, tables: Mapping[str, NodeTable]) -> None:
        self._history, self._tables = history, tables
        self._findings = worst_first(judged.findings)
        known = [finding for finding in self._findings if finding.node_name in tables]
        self._detailed = {finding.id for finding in known[:MOST_DETAILED]}
        self._rules = loader.load(judged.hypotheses)
        self._references = {n: Reference.of(t.table, self._busy(n)) for n, t in tables.items()}
        self._rankings = self._ranked()
        self._requests = {f.id: _requests(f, self._rankings[f.id]) for f in self._detailed_findings}
        self._samples = self._read(judged.path)

    def all(self) -> list[FindingPart]:
        """Return the findings, the worst first; those beyond the first few without details."""
        return [
            self._detailed_part(finding)
            if finding.id in self._detailed
            else FindingPart(finding, self._since_start(_span_ns(finding)))
            for finding in self._findings
        ]

    @property
    def _detailed_findings(self) -> list[Finding]:
        return [finding for finding in self._findings if finding.id in self._detailed]

    def _detailed_part(self, finding: Finding) -> FindingPart:
        node, span_ns = self._history.nodes[finding.node_name], _span_ns(finding)
        window = (
            max(self._history.start_ns, span_ns[0] - _WINDOW_NS),
            min(self._history.end_ns, span_ns[1] + _WINDOW_NS),
        )
        return FindingPart(
            finding,
            self._since_start(span_ns),
            self._since_start(window),
            [*self._panels(finding, window)],
            self._ruled_out(finding, node),
            subject_rows(finding, node, span_ns, fell=self._fell(finding)),
            self._rankings[finding.id],
            self._peers(finding),
        )

    def _ranked(self) -> dict[str, Sequence[RankedRow]]:
        """Return the metrics that stand out in each finding, one pass for each node."""
        found: dict[str, Sequence[RankedRow]] = {}
        ordered = sorted(self._detailed_findings, key=lambda finding: finding.node_name)
        for node, group in groupby(ordered, key=lambda finding: finding.node_name):
            findings = list(group)
            rankings = ranked_rows(self._tables[node], [_span_ns(f) for f in findings])
            found |= {f.id: rows for f, rows in zip(findings, rankings, strict=True)}
        return found

    def _read(self, path: Path) -> dict[SampleRequest, SampleSeries]:
        """Return the samples of all charts; those of computed metrics are of seconds."""
        edges_ns: dict[SampleRequest, list[int]] = {}
        for finding in self._detailed_findings:
            for request in self._requests[finding.id]:
                edges_ns.setdefault(request, []).extend(_span_ns(finding))
        steps = {name: node.step for name, node in self._history.nodes.items()}
        found = read_samples(Slices(path), edges_ns, steps)
        for request, series in found.items():
            if not series.values.size:
                series.fill(*self._computed(request))
        return found

    def _computed(self, request: SampleRequest) -> tuple[Ints, Floats]:
        if request.metric in ledger.JUDGED:
            return judged(self._history.nodes[request.node], request.metric, request.instance)
        source = self._tables[request.node]
        for index, column in enumerate(source.columns):
            if (column.metric.name, column.instance, column.feature) == request[1:]:
                return source.table.times_ns, source.table.values[:, index]
        return np.zeros(0, np.int64), np.zeros(0)

    def _panels(self, finding: Finding, window_ns: tuple[int, int]) -> Iterator[Panel]:
        names = {(each.metric, each.instance): each.known_as for each in finding.evidence}
        for request in self._requests[finding.id]:
            series, metric = self._samples[request], known_metric(request.metric)
            lines = window_lines(
                series.times_ns, series.values, _span_ns(finding), window_ns,
                self._history.start_ns, series.apart_s,
            )  # fmt: skip
            if metric is not None and lines:
                yield Panel(
                    label_of(request.metric, request.instance),
                    names.get((request.metric, request.instance), ""),
                    unit_of(metric, request.feature, request.instance), lines,
                    band_of(series.times_ns, series.values, self._busy(request.node)),
                    series.period_ns / 1e9,
                )  # fmt: skip

    def _ruled_out(self, finding: Finding, node: NodeHistory) -> list[RuledOut]:
        """Return the other causes; those of another finding of the same time are no alternative."""
        size = self._cpus(node.name), bool(node.accounts)
        source, reference = self._tables[node.name], self._references[node.name]
        found = ruled_out(finding, source, reference, self._rules, _span_ns(finding), size)
        also = {
            other.hypothesis.name
            for other in self._findings
            if other.hypothesis and other.id != finding.id and _overlap(other, finding)
        }
        return [
            replace(each, result="found as well", reason="another finding of this time has it")
            if each.name in also
            else each
            for each in found
        ]

    def _peers(self, finding: Finding) -> PeerStrip | None:
        """Return the first evidence of a finding on all nodes; None where there is one node."""
        first = next(iter(finding.evidence), None)
        metric = known_metric(first.metric) if first else None
        if first is None or metric is None or len(self._tables) < 2:
            return None
        feature = level_feature(first.feature)
        values = [
            PeerValue(node, value, node == finding.node_name)
            for node in self._tables
            if (value := self._median(node, first, finding)) is not None
        ]
        unit, title = (
            unit_of(metric, feature, first.instance),
            label_of(first.metric, first.instance),
        )
        return PeerStrip(title, unit, values) if len(values) > 1 else None

    def _median(self, node: str, evidence: Evidence, finding: Finding) -> float | None:
        """Return the median of a metric on a node in the time of a finding; None if not known."""
        feature = level_feature(evidence.feature)
        request = SampleRequest(node, evidence.metric, evidence.instance, feature)
        times, values = self._computed(request)
        first, end = np.searchsorted(times, _span_ns(finding)).tolist()
        known = values[first:end][~np.isnan(values[first:end])]
        return float(np.median(known)) if known.size else None

    def _fell(self, finding: Finding) -> bool:
        """Return whether the cause names the subject that lost most."""
        name = finding.hypothesis.name if finding.hypothesis else ""
        return any(rule.subjects_fell for rule in self._rules if rule.name == name)

    def _cpus(self, node: str) -> int:
        online = [facts.cpu.online for facts, _ in self._history.facts if facts.node == node]
        return max([1, *(len(cpulist.parse(cpus)) for cpus in online if cpus)])

    def _busy(self, node: str) -> list[tuple[int, int]]:
        return [_span_ns(f) for f in self._findings if f.node_name == node]

    def _since_start(self, span_ns: tuple[int, int]) -> tuple[float, float]:
        start = self._history.start_ns
        return max(0.0, (span_ns[0] - start) / 1e9), max(0.0, (span_ns[1] - start) / 1e9)


def _requests(finding: Finding, ranking: Sequence[RankedRow]) -> list[SampleRequest]:
    """Return the metrics of the charts: the evidence, then those that stand out most."""
    rows = [
        *((each.metric, each.instance, level_feature(each.feature)) for each in finding.evidence),
        *((each.metric, each.instance, each.feature) for each in ranking),
    ]
    unique = list(dict.fromkeys(row for row in rows if known_metric(row[0])))
    return [SampleRequest(finding.node_name, *row) for row in unique[:MOST_PANELS]]


def _span_ns(finding: Finding) -> tuple[int, int]:
    return finding.first_observed_ns, finding.last_observed_ns + NS_PER_SECOND


def _overlap(first: Finding, second: Finding) -> bool:
    return first.node_name == second.node_name and (
        first.first_observed_ns <= second.last_observed_ns
        and second.first_observed_ns <= first.last_observed_ns
    )
