"""The findings and nodes of a cluster, as a source of ``reveal ui``."""

from __future__ import annotations

import time

from reveal_cli.errors import CliError
from reveal_cli.jobs import affected_job
from reveal_cli.kubectl.cluster import Cluster
from reveal_cli.kubectl.evidence import page_of
from reveal_cli.kubectl.pod_samples import nodes_of, samples_of
from reveal_cli.kubectl.ranked_node import RankedNode
from reveal_cli.kubectl.top import analyzers_of, stream_of
from reveal_cli.progress import ProgressView
from reveal_cli.ranking import SpanRanking
from reveal_cli.time_spans import Span
from reveal_cli.ui.live_watches import LiveWatches
from reveal_cli.ui.source import ListedFinding, Listing

_LISTED_S = 30.0


class ClusterNodes:
    """The nodes of all profiles, through their analyzers."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster, self._namespace = cluster, namespace
        self._names: list[str] = []
        self._listed_again_s = 0.0
        self._watches = LiveWatches(lambda node: stream_of(cluster, node, "", namespace))

    def names(self) -> list[str]:
        """Return the nodes that collectors run on, as of the last half minute.

        Raises ``CliError``.
        """
        now = time.monotonic()
        if now >= self._listed_again_s:
            profiles = analyzers_of(self._cluster, "", self._namespace)
            self._names = sorted({name for pods in profiles for name in nodes_of(pods)})
            self._listed_again_s = now + _LISTED_S
        return self._names

    def view(self, node: str) -> ProgressView:
        """Return the state of a node now."""
        return self._watches.view(node)

    def ranking(self, node: str, asked: Span) -> SpanRanking:
        """Return the metrics of a node in a span."""
        return RankedNode(self._cluster, node, "", self._namespace).ranking(asked)


class ClusterFindings:
    """The reports of a cluster as a source of findings."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.title = cluster.requests.server
        self.nodes = ClusterNodes(cluster, namespace)
        self._cluster, self._namespace = cluster, namespace

    def listing(self) -> Listing:
        """Return the findings of all reports."""
        listed = self._cluster.reports()
        findings = [
            ListedFinding(item.name, item.finding, affected_job(item.finding), item.name)
            for item in listed.reports
        ]
        left_out = listed.unreadable
        warnings = [f"{left_out} reports are of another version of Reveal"] if left_out else []
        try:
            nodes = self.nodes.names()
        except CliError as error:
            nodes = []
            warnings.append(f"nodes without a finding are not known: {error}")
        return Listing(findings, nodes, warnings)

    def page(self, key: str) -> str:
        """Return the page of a report, from the samples that an analyzer keeps."""
        item = self._cluster.report(key)
        if item.report.identity.kind.value != "Anomaly":
            raise CliError(f"report {item.name} is about the configuration: it has no samples")
        return page_of(samples_of(self._cluster.requests, item, self._namespace), item)
