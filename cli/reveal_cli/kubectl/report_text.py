"""Reports as text: a line for each, or all that is known of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from rich.console import RenderableType
from rich.text import Text

from reveal_cli.findings_table import (
    evidence_text,
    gpu_hours_text,
    hours_text,
    state_text,
    subject_text,
    verification_text,
)
from reveal_cli.jobs import affected_job, present_subjects, subject_name
from reveal_cli.kubectl.reports import ClusterReport
from reveal_cli.options import format_duration
from reveal_cli.terminal import aligned, grid
from reveal_contract.finding import Finding, Pod, Subject, rfc3339
from reveal_contract.kube.names import clipped
from reveal_contract.time_units import NS_PER_SECOND

_EVIDENCE_ROWS = 3
_NONE = "-"
_TITLES = ("JOB", "SEVERITY", "NODE", "CAUSE", "CULPRIT", "COST", "FOR", "SILENCED", "REPORT")
_CELL_BYTES = 60  # the name of the report is complete: other verbs need it


def worst_first(items: Sequence[ClusterReport]) -> list[ClusterReport]:
    """Return reports grouped by job: the job with the worst finding first, older ones first."""
    ordered = sorted(items, key=_order)
    jobs = list(dict.fromkeys(job_text(item) for item in ordered))
    return sorted(ordered, key=lambda item: jobs.index(job_text(item)))


def _order(item: ClusterReport) -> tuple[int, float, float, int, str]:
    return *item.finding.worst_first, item.finding.first_observed_ns, item.name


def job_text(item: ClusterReport) -> str:
    """Return the job that a finding is about, else its node."""
    return affected_job(item.finding) or f"(node {item.report.node})"


def open_lines(items: Sequence[ClusterReport], now_ns: int) -> list[str]:
    """Return a title and a line for each report, in this order.

    As with ``kubectl get``, a line is never folded: names can be copied, and each row can be found
    by ``grep``.
    """
    return aligned([_TITLES, *(_cells(item, now_ns) for item in items)])


def _cells(item: ClusterReport, now_ns: int) -> tuple[str, ...]:
    finding = item.finding
    cells = (
        job_text(item), finding.severity.value, item.report.node, cause_text(item),
        subject_text(finding), short_cost(finding), age_text(finding, now_ns),
        silence_column(item, now_ns),
    )  # fmt: skip
    return (*(clipped(cell, _CELL_BYTES) for cell in cells), item.name)


def cause_text(item: ClusterReport) -> str:
    """Return the known cause, else the metric of the strongest evidence."""
    hypothesis = item.finding.hypothesis
    return hypothesis.name if hypothesis else item.report.columns.cause or _NONE


def short_cost(finding: Finding) -> str:
    """Return the GPU-hours that were lost, and what the job lost that lost most, for a column."""
    hours = [f"{hours_text(finding.lost_gpu_hours)} GPU-h"] if finding.cost else []
    return ", ".join((*hours, *_slowdown(finding))) or _NONE


def _slowdown(finding: Finding) -> Iterator[str]:
    if finding.impact is not None:
        yield f"steps {finding.impact.slowdown_percent:+.0f} %"
    elif finding.lost_time:
        yield f"work {finding.lost_time[0].slowdown_percent:+.0f} %"


def silence_column(item: ClusterReport, now_ns: int) -> str:
    """Return how long a report is silenced still."""
    silence = item.active_silence(now_ns)
    return f"for {_duration(silence.until_ns - now_ns)}" if silence else _NONE


def silence_text(item: ClusterReport, now_ns: int) -> str:
    """Return the end of the active silence and its reason; "" without one."""
    silence = item.active_silence(now_ns)
    if silence is None:
        return ""
    reason = f": {silence.reason}" if silence.reason else ""
    left = _duration(silence.until_ns - now_ns)
    return f"until {_moment(silence.until_ns)} (for {left}){reason}"


def age_text(finding: Finding, now_ns: int) -> str:
    """Return how long a finding lasts, or lasted."""
    end_ns = now_ns if finding.resolved_ns is None else finding.resolved_ns
    return _duration(end_ns - finding.first_observed_ns)


def repeated_lines(items: Iterable[ClusterReport]) -> list[str]:
    """Return a line for each cause that a node had several findings of, the most first."""
    onsets: dict[tuple[str, str], list[int]] = defaultdict(list)
    for item in items:
        onsets[item.report.node, cause_text(item)].append(item.finding.first_observed_ns)
    repeated = {where: times for where, times in onsets.items() if len(times) > 1}
    return [
        f"repeated: {cause} on {node}, {len(times)} findings since {_moment(min(times))}"
        for (node, cause), times in sorted(repeated.items(), key=lambda each: -len(each[1]))
    ]


def report_blocks(item: ClusterReport, now_ns: int) -> Iterator[RenderableType]:
    """Yield all that is known of a finding: cause, culprit, cost and what to do."""
    finding = item.finding
    head = f"{finding.severity.value}, {state_text(finding)}: {cause_text(item)}"
    yield Text(f"{head} on {item.report.node}", style="bold")
    parts = [(label, text) for label, text in _parts(item, now_ns) if text]
    yield grid(parts, indent=2)
    yield ""


def _parts(item: ClusterReport, now_ns: int) -> Iterator[tuple[str, str]]:
    finding = item.finding
    yield "what", finding.claim
    yield "when", _when(finding, now_ns)
    yield "cause", _known_cause(finding)
    for label, text in _labeled("culprit", culprits(finding)):
        yield label, text
    yield "victims", ", ".join(finding.victims)
    for label, text in _labeled("cost", costs(finding)):
        yield label, text
    yield "verified", verification_text(finding)
    yield "what to do", finding.hypothesis.remediation if finding.hypothesis else ""
    yield "silenced", silence_text(item, now_ns)
    for label, text in _labeled("evidence", map(evidence_text, finding.evidence[:_EVIDENCE_ROWS])):
        yield label, text
    for label, text in _labeled("notes", finding.notes):
        yield label, text
    yield "report", item.name


def _labeled(label: str, lines: Iterator[str] | Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield lines with a label beside the first one."""
    for number, line in enumerate(lines):
        yield (label if number == 0 else ""), line


def culprits(finding: Finding) -> Iterator[str]:
    """Yield who causes the finding, how much it has, and how this is known."""
    foremost = finding.foremost
    if foremost is None:
        present = present_subjects(finding)
        yield f"not known; on the node: {', '.join(present)}" if present else "not known"
        return
    known: list[Pod | Subject] = [*finding.pods, *finding.subjects]
    for each in sorted(known, key=lambda subject: subject is not foremost):
        yield _culprit(each, finding.share_metric)


def _culprit(subject: Pod | Subject, metric: str) -> str:
    share = f" {subject.share_percent} % of {metric}" if metric else ""
    change = f" ({subject.change_percent:+d} points)" if metric else ""
    return f"{subject_name(subject)}:{share}{change} {subject.confidence.value}"


def costs(finding: Finding) -> Iterator[str]:
    """Yield what jobs lost by the finding: all together in GPU-hours, then each of them."""
    if cost := gpu_hours_text(finding):
        yield cost
    if (impact := finding.impact) is not None:
        low, high = f"{impact.low_percent:.1f}", f"{impact.high_percent:.1f}"
        longer = f"{impact.slowdown_percent:.1f} % longer ({low} to {high})"
        yield f"steps of {impact.subject} take {longer}"
    for loss in finding.lost_time:
        yield (
            f"{loss.subject} lost {loss.lost_percent:.0f} % of its time,"
            f" its work takes {loss.slowdown_percent:.0f} % longer"
        )


def _known_cause(finding: Finding) -> str:
    known = finding.hypothesis
    return f"{known.name} ({known.confidence_percent} % sure)" if known else "no known cause fits"


def _when(finding: Finding, now_ns: int) -> str:
    begin, lasts = _moment(finding.first_observed_ns), age_text(finding, now_ns)
    if finding.resolved_ns is None:
        return f"since {begin}, for {lasts}"
    return f"{begin} to {_moment(finding.resolved_ns)}, {lasts}"


def _moment(ns: int) -> str:
    return f"{rfc3339(ns)[:19]}Z"


def _duration(ns: int) -> str:
    return format_duration(max(0, ns) / NS_PER_SECOND)
