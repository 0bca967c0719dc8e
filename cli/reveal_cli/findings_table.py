"""The table of findings that the commands print, and the texts of its cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Column
from rich.text import Text

from reveal_analyzer.formatting import amount
from reveal_cli.options import format_duration
from reveal_cli.terminal import grid, table
from reveal_contract import catalogue
from reveal_contract.finding import (
    Evidence,
    Finding,
    FindingScope,
    Pod,
    Resolution,
    Severity,
    State,
)

# on a narrower terminal a finding is a list of its fields
_TABLE_WIDTH = 100
_EVIDENCE_ROWS = 3
_STYLES = {
    Severity.CRITICAL: "bold red",
    Severity.HIGH: "red",
    Severity.MEDIUM: "yellow",
    Severity.LOW: "cyan",
}


@dataclass(frozen=True)
class FindingsTable:
    """The findings as a table, or as a list of fields where the terminal is narrow.

    Times are in ``zone``, or that of this machine; ``from_start``: they are seconds since a start.
    A sample of a table stands for ``sample_s``, which a finding of a single sample lasts.
    """

    findings: Sequence[Finding]
    zone: tzinfo | None = None
    from_start: bool = False
    sample_s: float = 0.0

    def __rich_console__(self, _: Console, options: ConsoleOptions) -> RenderResult:
        yield self._list() if options.max_width < _TABLE_WIDTH else self._table()

    def _table(self) -> RenderableType:
        state_width = max([8, *(len(state_text(finding)) for finding in self.findings)])
        # claim, subject and evidence share what the narrow columns leave
        rows = table(
            Column("TIME", width=8), Column("SUBSYSTEM"), Column("SEVERITY"),
            Column("STATE", width=state_width), Column("CLAIM", ratio=5),
            Column("SUBJECT", ratio=3), Column("EVIDENCE", ratio=4), expand=True,
        )  # fmt: skip
        for finding in self.findings:
            rows.add_row(*self._fields(finding).values())
        return rows

    def _list(self) -> RenderableType:
        rows = [
            (name.lower(), text)
            for finding in self.findings
            for name, text in [*self._fields(finding).items(), ("", "")]
        ]
        return grid(rows[:-1])

    def _fields(self, finding: Finding) -> dict[str, RenderableType]:
        evidence = finding.evidence[:_EVIDENCE_ROWS]
        return {
            "TIME": self._time(finding),
            "SUBSYSTEM": finding.subsystem.value,
            "SEVERITY": Text(finding.severity.value, style=_STYLES[finding.severity]),
            "STATE": state_text(finding),
            "CLAIM": _claim_with_cost(finding),
            "SUBJECT": _subject_with_share(finding),
            "EVIDENCE": "\n".join(map(evidence_text, evidence)),
        }

    def _time(self, finding: Finding) -> str:
        """Return onset and length, with the day where the findings are of several days."""
        first_ns = finding.first_observed_ns
        lasts = self._length((finding.last_observed_ns - first_ns) / 1e9)
        if self.from_start:
            return f"{first_ns / 1e9:g} s for {lasts}"
        days = {_moment(each.first_observed_ns, self.zone).date() for each in self.findings}
        day = f"{_moment(first_ns, self.zone):%d %b} " if len(days) > 1 else ""
        return f"{day}{_moment(first_ns, self.zone):%H:%M:%S} for {lasts}"

    def _length(self, between_s: float) -> str:
        """Return the length of a finding, by the time between its first and last sample."""
        if 0.0 < between_s + self.sample_s < 1.0:
            return f"{between_s + self.sample_s:.3g}s"
        return format_duration(max(1.0, between_s + self.sample_s))


def evidence_text(evidence: Evidence) -> str:
    """Return a metric with its value and baseline: ``cpu.busy 93 % (baseline 5 %)``."""
    instance = f"{{{evidence.instance}}}" if evidence.instance else ""
    baseline = f" (baseline {_amount(evidence.baseline, evidence)})" if evidence.baseline else ""
    return f"{evidence.metric}{instance} {_amount(evidence.value, evidence)}{baseline}"


def state_text(finding: Finding) -> str:
    """Return the state; how it was resolved where nobody saw the finding end."""
    ended = finding.resolution in (Resolution.NONE, Resolution.ENDED)
    return finding.state.value if ended else finding.resolution.value


def subject_text(finding: Finding) -> str:
    """Return the subject that causes the finding, or "-" where none was identified.

    A subject that is only there counts if the finding is about it: a job whose steps take longer,
    or the work of a node that differs from others.
    """
    first = finding.foremost
    if first is None and (_is_about_job(finding) or finding.scope is FindingScope.CROSS_NODE):
        first = finding.pods[0] if finding.pods else next(iter(finding.subjects), None)
    if isinstance(first, Pod):
        return f"{first.namespace}/{first.name}"
    return first.name if first else "-"


def _subject_with_share(finding: Finding) -> str:
    """Return the subject that causes the finding, and its share of which metric."""
    first, subject = finding.foremost, subject_text(finding)
    if first is None or not finding.share_metric:
        return subject
    return f"{subject}\n{first.share_percent} % of {finding.share_metric}"


def claim_text(finding: Finding) -> str:
    """Return the claim, followed by the subject unless the claim names it."""
    subject = subject_text(finding)
    named = subject == "-" or subject in finding.claim
    return finding.claim if named else f"{finding.claim} ({subject})"


def local_time(ns: int) -> str:
    """Return the time of day in this machine's zone."""
    return f"{_moment(ns):%H:%M:%S}"


def _moment(ns: int, zone: tzinfo | None = None) -> datetime:
    return datetime.fromtimestamp(ns // 1_000_000_000, UTC).astimezone(zone)


def _amount(number: str, evidence: Evidence) -> str:
    """Return a decimal string with a readable unit; unchanged where it is not a plain amount."""
    try:
        metric = catalogue.find(evidence.metric)
        return amount(metric, evidence.feature, evidence.instance, float(number))
    except (catalogue.UnknownMetricError, ValueError):
        return f"{number} {evidence.unit}".rstrip()


def claim_with_impact(finding: Finding) -> str:
    """Return the claim and what the job lost that lost most, unless the claim states it."""
    impact = finding.impact
    if impact is not None and not _is_about_job(finding):
        return (
            f"{finding.claim}; steps of {impact.subject} take {impact.slowdown_percent:.1f} %"
            f" longer ({impact.low_percent:.1f} to {impact.high_percent:.1f})"
        )
    if impact is None and finding.lost_time:
        loss = finding.lost_time[0]
        return (
            f"{finding.claim}; {loss.subject} lost {loss.lost_percent:.0f} % of its time by it,"
            f" its work takes {loss.slowdown_percent:.0f} % longer"
        )
    return finding.claim


def _claim_with_cost(finding: Finding) -> str:
    cost, verified = gpu_hours_text(finding), verification_text(finding)
    lines = (f"cost: {cost}" if cost else "", f"verified: {verified}" if verified else "")
    return "\n".join((claim_with_impact(finding), *filter(None, lines)))


def verification_text(finding: Finding) -> str:
    """Return what the last change did for the job: ``steps of … take 9.1 % less time after: …``."""
    found = finding.verification
    if found is None:
        return ""
    head, effect = f"{found.verdict.value}: steps of {found.subject}", found.effect
    if effect is None:
        return f"{head} could not be read after: {found.change}"
    more = "less" if effect.percent >= 0 else "more"
    interval = f"{effect.low:.1f} to {effect.high:.1f} % less"
    return f"{head} take {abs(effect.percent):.1f} % {more} time ({interval}) after: {found.change}"


def gpu_hours_text(finding: Finding) -> str:
    """Return what a finding costs: ``1.8 GPU-hours so far (1.2 to 2.4), 0.9 of 8 GPUs``.

    The amount follows if the price is known.  A resolved finding has no present loss.  Return ""
    where no GPUs are known.
    """
    cost = finding.cost
    if cost is None:
        return ""
    hours, low, high = map(hours_text, (cost.lost_gpu_hours, cost.low, cost.high))
    amount = f", {cost.amount}" if cost.amount else ""
    if finding.state is State.RESOLVED:
        return f"{hours} GPU-hours ({low} to {high}){amount}"
    lost = f"{cost.lost_gpus:.1f} of {cost.gpus} GPUs"
    return f"{hours} GPU-hours so far ({low} to {high}), {lost}{amount}"


def hours_text(hours: float) -> str:
    """Return hours with a decimal, and parts of an hour with three: ``12.5``, ``0.003``."""
    return f"{hours:.1f}" if hours >= 1 else f"{hours:.3f}".rstrip("0").rstrip(".")


def _is_about_job(finding: Finding) -> bool:
    """Return whether the finding is the slowdown of a job, and not one that slows a job down."""
    impact = finding.impact
    return impact is not None and finding.claim.startswith(f"Steps of {impact.subject} ")
