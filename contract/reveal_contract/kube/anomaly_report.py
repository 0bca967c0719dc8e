"""A finding as an AnomalyReport: pure.

``docs/reference/api-anomalyreport.md`` describes each field.
A ``Report`` holds the typed finding.  It becomes plain objects only where it is written to the
API, and objects of the API become reports in ``report_parser``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

from reveal_contract.costs import PodCost
from reveal_contract.finding import (
    Finding,
    FindingKind,
    FindingScope,
    Resolution,
    Severity,
    State,
    rfc3339,
)
from reveal_contract.kube.names import (
    ANALYZER_MANAGER,
    API_VERSION,
    APP,
    LABEL_MANAGED_BY,
    LABEL_NAME,
    LABEL_NODE,
    LABEL_PROFILE,
    LABEL_SEVERITY,
    LABEL_STATE,
    LABEL_SUBSYSTEM,
    PROFILE_KIND,
    REPORT_KIND,
    clipped,
    label_value,
    report_name,
)
from reveal_contract.kube.report_limits import LISTS, MAX_BYTES, kept_entries, limited
from reveal_contract.metric import Subsystem
from reveal_contract.names import camel_case
from reveal_contract.time_units import NS_PER_SECOND

__all__ = [
    "EACH_SECOND",
    "MAX_BYTES",
    "Columns",
    "Report",
    "ReportIdentity",
    "ReportOwner",
    "WindowLengths",
    "Windows",
    "report",
]

_NS_PER_MS = 1_000_000
_IN_SPEC = ("id", "kind", "nodeName", "scope", "firstSeenTime")  # of a finding's row
# fields of rows that stay although they are empty: the schema requires them
_REQUIRED = ("metric", "value", "name", "namespace", "kind", "subject", "slowdownPercent")
_FIELDS = tuple(spec.name for spec in fields(Finding))
_CAUSE_BYTES = 128
_NAMED_PODS = 3
_POD_NAMES_BYTES = 512


@dataclass(frozen=True, slots=True)
class ReportOwner:
    """The profile that a report belongs to, as the API knows it."""

    name: str
    uid: str
    generation: int


@dataclass(frozen=True, slots=True)
class ReportIdentity:
    """The spec of a report, which never changes."""

    profile: str
    node: str
    finding_id: str
    scope: FindingScope
    kind: FindingKind
    subsystem: Subsystem
    first_observed_ns: int

    def to_spec(self) -> dict[str, Any]:
        """Return the spec as the API has it."""
        return {
            "profileRef": {"name": self.profile},
            "nodeName": self.node,
            "findingID": self.finding_id,
            "scope": self.scope.value,
            "kind": self.kind.value,
            "subsystem": self.subsystem.value,
            "firstSeenTime": rfc3339(self.first_observed_ns),
        }


@dataclass(frozen=True, slots=True)
class Columns:
    """Fields for the columns of ``kubectl get``, which can neither count nor choose."""

    cause: str = ""
    agree: str = ""
    pod_names: str = ""


class WindowLengths(NamedTuple):
    """Seconds of a window that is judged, and between the begins of two."""

    window: int = 1
    stride: int = 1


EACH_SECOND = WindowLengths()


@dataclass(frozen=True, slots=True)
class Windows:
    """The anomalous windows, from the first to the last."""

    count: int
    first_ns: int
    last_ns: int

    @classmethod
    def between(cls, first_ns: int, last_ns: int, lengths: WindowLengths) -> Windows:
        """Return the windows that are within a stretch of time, at least one."""
        last_ns = max(first_ns, last_ns)
        later_ns = last_ns - first_ns - lengths.window * NS_PER_SECOND  # after the first window
        count = later_ns // (lengths.stride * NS_PER_SECOND) + 1
        return cls(max(1, count), _whole_ms(first_ns), _whole_ms(last_ns))

    def to_row(self) -> dict[str, Any]:
        """Return the windows as the API has them."""
        return {
            "count": self.count,
            "firstTime": rfc3339(self.first_ns),
            "lastTime": rfc3339(self.last_ns),
        }


@dataclass(frozen=True, slots=True)
class Report:
    """One AnomalyReport: its name, what never changes and what is known by now.

    ``generation`` is that of the profile whose settings decided.  ``extra`` are fields of the
    status that this version does not know: another version wrote them, and they are kept.
    """

    name: str
    identity: ReportIdentity
    finding: Finding
    columns: Columns = Columns()
    windows: Windows | None = None
    generation: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @property
    def node(self) -> str:
        """The node that the report is about."""
        return self.identity.node

    @property
    def severity(self) -> Severity:
        """The severity by now."""
        return self.finding.severity

    @property
    def open(self) -> bool:
        """Whether the finding goes on."""
        return self.finding.state is State.OPEN

    @property
    def anomaly(self) -> bool:
        """Whether it is an anomaly and not a configuration finding."""
        return self.identity.kind is FindingKind.ANOMALY

    @property
    def cross_node(self) -> bool:
        """Whether it was found by comparing nodes."""
        return self.identity.scope.is_across_nodes

    @property
    def age_ns(self) -> int:
        """Time from the first to the last observation."""
        return self.finding.last_observed_ns - self.identity.first_observed_ns

    @property
    def core(self) -> tuple[str, ...]:
        """The parts whose change is written at once; others wait for the next refresh."""
        finding = self.finding
        cause = finding.hypothesis.name if finding.hypothesis else ""
        pods = [f"{pod.namespace}/{pod.name}" for pod in finding.pods]
        # the first pod is the most likely cause; the order of the others says little
        named = ",".join([*pods[:1], *sorted(pods[1:])])
        kept = finding.evidence_ref.name if finding.evidence_ref else ""
        return finding.state, finding.severity, finding.subsystem, cause, named, kept

    @property
    def spec(self) -> dict[str, Any]:
        """The spec as the API has it."""
        return self.identity.to_spec()

    @property
    def status(self) -> dict[str, Any]:
        """The status as the API has it; empty fields are left out."""
        row = self.finding.to_dict()
        status = {key: _without_empty(value) for key, value in row.items() if key not in _IN_SPEC}
        status |= {
            "cause": self.columns.cause,
            "agree": self.columns.agree,
            "podNames": self.columns.pod_names,
            "profileGeneration": self.generation,
            "windows": self.windows.to_row() if self.windows else None,
            **self.extra,
        }
        return {key: value for key, value in status.items() if value not in (None, [], "")}

    def labels(self) -> dict[str, str]:
        """Return the labels that people select by."""
        return {
            LABEL_NAME: APP,
            LABEL_MANAGED_BY: ANALYZER_MANAGER,
            LABEL_PROFILE: label_value(self.identity.profile),
            LABEL_NODE: label_value(self.node),
            LABEL_SUBSYSTEM: self.finding.subsystem.value,
            LABEL_SEVERITY: self.severity.value,
            LABEL_STATE: self.finding.state.value,
        }

    def to_create(self, owner: ReportOwner | None = None) -> dict[str, Any]:
        """Return the object without its status, which the server takes by the subresource only."""
        metadata: dict[str, Any] = {"name": self.name, "labels": self.labels()}
        if owner is not None:
            metadata["ownerReferences"] = [_reference(owner)]
        return {
            "apiVersion": API_VERSION,
            "kind": REPORT_KIND,
            "metadata": metadata,
            "spec": self.spec,
        }

    def to_apply(self) -> dict[str, Any]:
        """Return the whole status for server-side apply, which removes what is left out."""
        return {
            "apiVersion": API_VERSION,
            "kind": REPORT_KIND,
            "metadata": {"name": self.name},
            "status": self.status,
        }

    def to_apply_verification(self) -> dict[str, Any]:
        """Return the status with the verification alone, for server-side apply."""
        verification = {"verification": self.status.get("verification")}
        return {**self.to_apply(), "status": verification}

    def continuing(self, other: Report) -> Report:
        """Return this report under the name and identity of ``other``, which it continues."""
        return replace(self, name=other.name, identity=other.identity)

    def resolved(self, note: str, resolved_ns: int, resolution: Resolution) -> Report:
        """Return it resolved, with a note why: no finding behind it says so.

        It never ends before it was last observed, although that time is of another clock.
        """
        notes = (*self.finding.notes[: LISTS["notes"][0] - 1], note)
        last_ns = max(self.finding.first_observed_ns, self.finding.last_observed_ns)
        over = replace(
            self.finding,
            state=State.RESOLVED,
            resolution=resolution,
            resolved_ns=max(_whole_ms(resolved_ns), last_ns),
            notes=notes,
        )
        return _fitted(replace(self, finding=over))

    def refreshed(self, now_ns: int, lengths: WindowLengths = EACH_SECOND) -> Report:
        """Return it as last observed at ``now_ns``; what it costs goes on until then."""
        windows = self.windows
        if windows is not None:
            windows = Windows.between(windows.first_ns, now_ns, lengths)
        finding = replace(
            _with_later_cost(self.finding, now_ns), last_observed_ns=_whole_ms(now_ns)
        )
        return replace(self, finding=finding, windows=windows)


def _with_later_cost(finding: Finding, now_ns: int) -> Finding:
    """Return the finding with what it costs until a later time, if jobs lose as much."""
    if (before := finding.cost) is None:
        return finding
    cost = before.extended((now_ns - finding.last_observed_ns) / NS_PER_SECOND)
    factor = cost.lost_gpu_hours / before.lost_gpu_hours if before.lost_gpu_hours else 1.0
    pods = (PodCost(each.name, each.lost_gpu_hours * factor) for each in finding.pod_costs)
    return replace(finding, cost=cost, pod_costs=tuple(pods))


def report(
    finding: Finding, profile: str, generation: int, lengths: WindowLengths = EACH_SECOND
) -> Report:
    """Return the report of a finding of ``profile``; it is within the limits of the schema."""
    within = _as_kept(limited(finding))
    identity = ReportIdentity(
        profile=profile,
        node=within.node_name,
        finding_id=within.id,
        scope=within.scope,
        kind=within.kind,
        subsystem=within.subsystem,
        first_observed_ns=within.first_observed_ns,
    )
    windows = None
    if finding.kind is FindingKind.ANOMALY:
        windows = Windows.between(finding.first_observed_ns, finding.last_observed_ns, lengths)
    name = report_name(profile, finding.node_name, finding.id)
    return _fitted(Report(name, identity, within, _columns(within), windows, generation))


def _as_kept(finding: Finding) -> Finding:
    """Return the finding with the precision of the API, whole milliseconds.

    A resolved one always has a time: reports are kept for a while from then on.
    """
    resolved_ns = finding.resolved_ns
    if finding.state is State.RESOLVED and resolved_ns is None:
        resolved_ns = finding.last_observed_ns
    return replace(
        finding,
        first_observed_ns=_whole_ms(finding.first_observed_ns),
        last_observed_ns=_whole_ms(finding.last_observed_ns),
        resolved_ns=None if resolved_ns is None else _whole_ms(resolved_ns),
    )


def _columns(finding: Finding) -> Columns:
    loudest = finding.evidence[0].metric if finding.evidence else ""
    cause = finding.hypothesis.name if finding.hypothesis else loudest
    agree = sum(method.agrees for method in finding.methods)
    names = [f"{pod.namespace}/{pod.name}" for pod in finding.pods]
    more = [f"+{len(names) - _NAMED_PODS}"] if len(names) > _NAMED_PODS else []
    return Columns(
        cause=clipped(cause, _CAUSE_BYTES),
        agree=f"{agree}/{len(finding.methods)}" if finding.methods else "",
        pod_names=clipped(",".join([*names[:_NAMED_PODS], *more]), _POD_NAMES_BYTES),
    )


def _fitted(whole: Report) -> Report:
    """Return the report with its lists shortened until it is within ``MAX_BYTES``."""
    kept = kept_entries(whole.to_create(), whole.status)
    finding = whole.finding
    lists = {name: getattr(finding, name) for name in _FIELDS if camel_case(name) in kept}
    shorter = {
        name: entries[:count]
        for name, entries in lists.items()
        if (count := kept[camel_case(name)]) < len(entries)
    }
    return replace(whole, finding=replace(finding, **shorter)) if shorter else whole


def _without_empty(value: Any) -> Any:
    """Return rows without empty texts: they say nothing, and an empty direction is invalid."""
    if isinstance(value, dict):
        return {key: part for key, part in value.items() if part != "" or key in _REQUIRED}
    if isinstance(value, list):
        return [_without_empty(item) for item in value]
    return value


def _reference(owner: ReportOwner) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": PROFILE_KIND,
        "name": owner.name,
        "uid": owner.uid,
        "controller": False,
        "blockOwnerDeletion": False,
    }


def _whole_ms(ns: int) -> int:
    return ns - ns % _NS_PER_MS
