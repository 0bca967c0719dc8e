"""Counter of the GPU-hours that jobs lost, by what the costs of findings grew.

``ledger.cost_meter`` measures them, and ``reveal_contract.costs`` computes their price.
"""

from __future__ import annotations

import prometheus_client
from prometheus_client import CollectorRegistry

from reveal_contract.finding import Finding, FindingChange, FindingUpdate, State

_UNKNOWN = "Unknown"  # the cause of findings that no hypothesis explains

Labels = tuple[str, str, str]  # node, cause, scope


class LostGpuHours:
    """Counts by node, cause and scope.

    What a finding cost before this process took it over was counted by another one.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self._counter = prometheus_client.Counter(
            "reveal_lost_gpu_hours",
            "GPU-hours that jobs lost by findings",
            ("node", "cause", "scope"),
            registry=registry,
        )
        self._series: set[Labels] = set()
        self._counted: dict[str, tuple[str, float]] = {}  # node and hours, by id of open findings

    def write(self, update: FindingUpdate) -> None:
        """Count what an opened, changed or resolved finding cost since its last update."""
        finding, hours = update.finding, update.finding.lost_gpu_hours
        begin = 0.0 if update.change is FindingChange.OPENED else hours
        _, counted = self._counted.pop(finding.id, ("", begin))
        if hours > counted:
            self._add(finding, hours - counted)
        if finding.state is State.OPEN:
            self._counted[finding.id] = finding.node_name, max(hours, counted)

    def forget(self, node: str, *, lost: bool) -> None:
        """Forget the findings of a node; its series end, too, unless only its findings are lost."""
        self._counted = {id_: each for id_, each in self._counted.items() if each[0] != node}
        if lost:
            return
        for labels in [labels for labels in self._series if labels[0] == node]:
            self._counter.remove(*labels)
            self._series.discard(labels)

    def _add(self, finding: Finding, hours: float) -> None:
        cause = finding.hypothesis.name if finding.hypothesis else _UNKNOWN
        labels = finding.node_name, cause, finding.scope.value
        self._series.add(labels)
        self._counter.labels(*labels).inc(hours)
