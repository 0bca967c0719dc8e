"""The last lines of a scan or an analysis: what was found, for how long, and what was not seen."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from reveal_cli.configuration_hints import hint_lines
from reveal_cli.errors import DONE, FOUND
from reveal_cli.findings_table import MAX_WIDTH, MIN_WIDTH, advice, findings_table
from reveal_cli.options import clock
from reveal_contract.finding import Finding, FindingKind, Severity

# waiting for so much of the warm-up, a host hides the faults that make it wait
_LOADED = 0.3


@dataclass(frozen=True)
class Seen:
    """How far the findings reach: times in seconds, losses in slices."""

    watched: float
    judged: float
    warmup: float
    slices: int
    channels: int
    lost: int = 0
    away: float = 0.0
    load: Mapping[str, float] = field(default_factory=dict)
    missing: Sequence[Mapping[str, str]] = ()


def width() -> int:
    """Of the terminal the data goes to; the widest table for a file or pipe."""
    if not sys.stdout.isatty():
        return MAX_WIDTH
    return max(MIN_WIDTH, min(shutil.get_terminal_size().columns, MAX_WIDTH))


def closing(
    findings: Sequence[Finding],
    seen: Seen,
    columns: int = MAX_WIDTH,
    hints: Sequence[Finding] = (),
) -> list[str]:
    """The whole of what is printed for people at the end; ``hints`` are no anomalies."""
    lines = []
    if findings:
        lines += [*findings_table(findings, columns), ""]
        if said := advice(findings):
            lines += ["What to do", *_wrapped(said, columns, "  "), ""]
    lines += _wrapped([_verdict(findings, seen), *_reservations(seen)], columns, "")
    return lines + hint_lines(hints, columns)


def exit_code(findings: Sequence[Finding], fail_on: Severity | None) -> int:
    """3 where a finding is at least as severe as the user asked to fail on, else 0.

    How a host is set up makes nobody fail who asked for worse than ``Low``.
    """
    if fail_on is None:
        return DONE
    counted = [f for f in findings if f.kind is FindingKind.ANOMALY or fail_on is Severity.LOW]
    return FOUND if any(f.severity.rank >= fail_on.rank for f in counted) else DONE


def _wrapped(lines: Sequence[str], columns: int, indent: str) -> list[str]:
    deeper = indent + "  "
    return [
        part
        for line in lines
        for part in textwrap.wrap(line, columns, initial_indent=indent, subsequent_indent=deeper)
    ]


def _verdict(findings: Sequence[Finding], seen: Seen) -> str:
    if findings:
        many = f"{len(findings)} finding{'s' if len(findings) > 1 else ''}"
        return f"{many} in {clock(seen.watched)}: {_extent(seen)}."
    if not seen.judged:
        return (
            f"Nothing was judged: it ended after {clock(seen.watched)}, while still learning"
            f" what is normal ({clock(seen.warmup)})."
        )
    return f"Nothing is wrong, as far as can be seen: {_extent(seen)}."


def _extent(seen: Seen) -> str:
    lost = f"{seen.lost} lost" if seen.lost else "none lost"
    return (
        f"{clock(seen.judged)} judged after {clock(seen.warmup)} of learning,"
        f" {seen.slices} slices of {seen.channels} channels, {lost}"
    )


def _reservations(seen: Seen) -> list[str]:
    lines = []
    if seen.away:
        lines.append(f"Redis was away for {clock(seen.away)}; slices lost: {seen.lost}.")
    if seen.load:
        lines.append(_load(seen.load))
    if seen.missing:
        lines.append(f"Not seen here: {', '.join(map(_source, seen.missing))}.")
    return lines


def _load(load: Mapping[str, float]) -> str:
    """How loaded the host was while it was learned: cores, and shares of time waited."""
    parts = [f"{load['cpu.busy']:.1f} cores busy"] if "cpu.busy" in load else []
    parts += [
        f"{share:.0%} of the time waiting for {name.partition('.')[0]}"
        for name, share in load.items()
        if name.endswith(".pressure.some")
    ]
    line = f"While learning: {', '.join(parts)}."
    if max((share for name, share in load.items() if name != "cpu.busy"), default=0) >= _LOADED:
        line += " Such load was taken for normal: scan again on a quieter host to see more."
    return line


def _source(missing: Mapping[str, str]) -> str:
    """A missing source with its reason, as the collector reports it."""
    return f"{missing.get('source', '?')} ({missing.get('reason', 'no reason given')})"
