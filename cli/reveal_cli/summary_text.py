"""What a scan or an analysis prints at its end: findings, remedies, and how far they reach."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rich.console import RenderableType

from reveal_cli.configuration_hints import hint_blocks
from reveal_cli.errors import DONE, FOUND
from reveal_cli.findings_table import FindingsTable
from reveal_cli.lost_time_text import SMALL, ByNode, largest_share, lost_time_lines
from reveal_cli.options import format_duration
from reveal_cli.terminal import grid
from reveal_contract.finding import Finding, FindingKind, Severity

# share of time spent waiting during the warm-up, from which the baseline hides faults
_LOADED = 0.3


@dataclass(frozen=True)
class Coverage:
    """What the findings are based on: times in seconds, received and lost slices.

    ``lost_time`` is what the ledger says of the busy subjects of each node, ``no_ledger`` why BPF
    programs do not count it: then it is not known, or not who took it.
    ``unanswered`` are the sources that could not be read at the end, each with its reason.
    ``recorded`` is true for a recording, which may be of another host.
    """

    watched: float
    judged: float
    warmup: float
    slices: int
    channels: int
    lost: int = 0
    redis_away: float = 0.0
    load: Mapping[str, float] = field(default_factory=dict)
    lost_time: ByNode = field(default_factory=dict)
    no_ledger: str = ""
    missing_sources: int = 0
    unanswered: Sequence[str] = ()
    recorded: bool = False


def summary_blocks(
    findings: Sequence[Finding], coverage: Coverage, hints: Sequence[Finding] = ()
) -> list[RenderableType]:
    """Return all that is printed at the end; ``hints`` are configuration findings."""
    blocks: list[RenderableType] = []
    if findings:
        blocks += [FindingsTable(findings), ""]
        if remedies := remedies_of(findings):
            blocks += ["What to do", grid(remedies.items(), indent=2), ""]
    lost = lost_time_lines(coverage.lost_time)
    rest = [*limit_lines(coverage), *hint_blocks(hints)]
    return [*blocks, verdict_text(findings, coverage), *lost, *rest]


def remedies_of(findings: Sequence[Finding]) -> dict[str, str]:
    """Return the remedy of each hypothesis that a finding names."""
    return {
        finding.hypothesis.name: finding.hypothesis.remediation
        for finding in findings
        if finding.hypothesis is not None and finding.hypothesis.remediation
    }


def exit_code(findings: Sequence[Finding], fail_on: Severity | None) -> int:
    """Return 3 where a finding is at least as severe as ``fail_on``, else 0.

    Configuration findings count only where the user asked for ``Low``.
    """
    if fail_on is None:
        return DONE
    counted = [f for f in findings if f.kind is FindingKind.ANOMALY or fail_on is Severity.LOW]
    return FOUND if any(f.severity.rank >= fail_on.rank for f in counted) else DONE


def verdict_text(findings: Sequence[Finding], coverage: Coverage) -> str:
    """Return in a sentence what was found, and how much was judged."""
    if findings:
        count = f"{len(findings)} finding{'s' if len(findings) > 1 else ''}"
        return f"{count} in {format_duration(coverage.watched)}: {_extent(coverage)}."
    if not coverage.judged:
        return (
            f"Nothing was judged: the data ended after {format_duration(coverage.watched)}, within"
            f" the {format_duration(coverage.warmup)} in which the baseline is learned."
        )
    if largest_share(coverage.lost_time) >= SMALL:
        return f"No finding, but time was lost, see below: {_extent(coverage)}."
    return f"Nothing is wrong, as far as can be seen: {_extent(coverage)}."


def _extent(coverage: Coverage) -> str:
    lost = f"{coverage.lost} lost" if coverage.lost else "none lost"
    return (
        f"{format_duration(coverage.judged)} judged after {format_duration(coverage.warmup)} of"
        f" learning, {coverage.slices} slices of {coverage.channels} channels, {lost}"
    )


def limit_lines(coverage: Coverage) -> list[str]:
    """Return what limits the verdict: losses, load while learning, what is missing."""
    lines = []
    if coverage.redis_away:
        away = format_duration(coverage.redis_away)
        lines.append(f"Redis was unreachable for {away}; slices lost: {coverage.lost}.")
    if coverage.load:
        lines.append(_load(coverage.load))
    if coverage.no_ledger:
        is_known = any(coverage.lost_time.values())
        unknown = "Who took the lost time" if is_known else "Lost time"
        lines.append(f"{unknown} is not known: {coverage.no_ledger}.")
    lines += [f"Not read: {source}." for source in coverage.unanswered]
    if count := coverage.missing_sources:
        host = "the recorded host" if coverage.recorded else "this host"
        command = "`reveal doctor` there" if coverage.recorded else "`reveal doctor`"
        sources = f"{count} source{'s' if count > 1 else ''}"
        lines.append(f"Not available on {host}: {sources}; {command} lists them.")
    return lines


def _load(load: Mapping[str, float]) -> str:
    """Return the load of the host while the baseline was learned: cores, shares of time waited."""
    parts = [f"{load['cpu.busy']:.1f} cores busy"] if "cpu.busy" in load else []
    parts += [
        f"{100 * share:.0f} % of the time waiting for {name.partition('.')[0]}"
        for name, share in load.items()
        if name.endswith(".pressure.some")
    ]
    line = f"While learning: {', '.join(parts)}."
    if max((share for name, share in load.items() if name != "cpu.busy"), default=0) >= _LOADED:
        line += " The baseline includes this load: scan again on a quieter host to find more."
    return line
