"""Whether the findings behind open reports are still observed; resolves those that are not.

A report loses its finding when its analyzer restarts, or when its node moves to another analyzer,
leaves the cluster or falls silent.  What the node still shows is detected again, and the new
finding adopts the report (``admission``).  Otherwise the report is resolved after a while, as
unobserved: nobody saw the finding end.
"""

from __future__ import annotations

from reveal_analyzer.sinks.kube import event_policy
from reveal_analyzer.sinks.kube.entries import Entries
from reveal_analyzer.sinks.kube.entry import Admission, Observation, ReportEntry
from reveal_analyzer.telemetry.snapshot import SILENT_SECONDS, Snapshot
from reveal_contract.finding import Resolution

ORPHANED_S = 60.0  # its node is out of warm-up: detection takes ten seconds
ABANDONED_S = 300.0  # its node sends nothing here; and cross-node findings take minutes
SILENT_S = SILENT_SECONDS  # its node has sent nothing for so long

_ORPHANED = (
    "no analyzer observes it any more: its analyzer restarted and has not detected it again;"
    " whether it lasts is unknown"
)
_SILENT = f"its node has sent nothing for {SILENT_S / 60:.0f} minutes: whether it lasts is unknown"


class ObservationTracker:
    """Follows the snapshots of the analyzer; not for several threads at once."""

    def __init__(self, entries: Entries) -> None:
        self._entries = entries
        self._connected_since_s: float | None = None

    def update(self, snapshot: Snapshot, summary_name: str, now_ns: int) -> None:
        """Set the observation of each open report but the summary, and resolve lost ones."""
        if not snapshot.connected:
            self._connected_since_s = None
        elif self._connected_since_s is None:
            self._connected_since_s = snapshot.time_s
        for entry in self._entries:
            if entry.report.open and entry.report.name != summary_name:
                self._update_entry(entry, snapshot, now_ns)

    def _update_entry(self, entry: ReportEntry, snapshot: Snapshot, now_ns: int) -> None:
        if self._is_observed(entry, snapshot):
            entry.observe(Observation.ACTIVE if snapshot.connected else Observation.PAUSED)
            return
        cross_node = entry.report.cross_node
        ours = snapshot.leads if cross_node else snapshot.owns(entry.report.node)
        if not ours and snapshot.connected and not entry.pending:
            # Another analyzer decides, and it lists the report from the API.  One that still waits
            # for the API must be written first: nobody else has it.
            self._entries.drop(entry)
        elif not ours or self._connected_since_s is None:
            # Without Redis nobody knows who owns the node.
            entry.observe(Observation.UNKNOWN)
        elif self._is_silent(entry, snapshot):
            self._resolve(entry, _SILENT, now_ns)
        else:
            self._wait(entry, snapshot, now_ns)

    def _is_observed(self, entry: ReportEntry, snapshot: Snapshot) -> bool:
        """Whether this analyzer observes the finding behind the report."""
        if entry.report.cross_node:
            return snapshot.leads and entry.finding_id in snapshot.cross_node_findings
        node = snapshot.nodes.get(entry.report.node)
        # An update from before the node's analysis was reset belongs to a finding that is lost.
        if node is None or entry.updated_s is None or entry.updated_s < node.since_s:
            return False
        return not self._is_silent(entry, snapshot)

    def _is_silent(self, entry: ReportEntry, snapshot: Snapshot) -> bool:
        node = snapshot.nodes.get(entry.report.node)
        if node is None or self._connected_since_s is None or entry.report.cross_node:
            return False
        return snapshot.time_s - max(node.last_slice_s, self._connected_since_s) >= SILENT_S

    def _wait(self, entry: ReportEntry, snapshot: Snapshot, now_ns: int) -> None:
        """Leave an orphan time to be detected again: its clock starts after the warm-up."""
        node = None if entry.report.cross_node else snapshot.nodes.get(entry.report.node)
        since_s = entry.orphaned_since_s
        if since_s is None or (node is not None and node.learning):
            since_s = snapshot.time_s
            entry.observe(Observation.ORPHANED, since_s)
        patience = ABANDONED_S if node is None else ORPHANED_S
        if snapshot.time_s - since_s >= patience:
            self._resolve(entry, _ORPHANED, now_ns)

    def _resolve(self, entry: ReportEntry, reason: str, now_ns: int) -> None:
        # A configuration finding has no Events, and a summarized one had no Event at its opening.
        if entry.report.anomaly and entry.admission is not Admission.SUMMARIZED:
            event = event_policy.resolved(Resolution.UNOBSERVED, reason, now_ns)
            self._entries.add_events(entry, [event])
        entry.report = entry.report.resolved(reason, now_ns, Resolution.UNOBSERVED)
