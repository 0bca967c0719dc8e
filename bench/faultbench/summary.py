"""Totals of a judged directory, and the table a person reads."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from faultbench import host
from faultbench.evaluation import Judged, Outcome
from faultbench.other_detector import Beside
from faultbench.sessions import Case
from faultbench.stats import Share, middle, rate_interval
from faultbench.step_loss import HARM

_HEAD = (
    f"{'fault':<16}{'workload':<9}{'other':>6}{'lost':>6}  {'found':<5} {'suspected':>9} "
    f"{'after':>7}  {'subsystem':<11}{'subject':<8}{'false':>5}  by"
)
_UNDER = " " * 16 + " " * 9 + f"{'cores':>6}{'%':>6}"


def table(judged: Sequence[Judged]) -> Iterator[str]:
    """One row a case, full strength first."""
    yield _HEAD
    yield _UNDER
    outcomes = sorted(
        (outcome for each in judged for outcome in each.outcomes),
        key=lambda each: (each.case.weak, each.case.fault, each.workload, each.session),
    )
    for weak in (False, True):
        rows = [each for each in outcomes if each.case.weak is weak]
        if rows:
            yield f"-- {'weak' if weak else 'full strength'}"
            yield from map(_row, rows)


def _row(outcome: Outcome) -> str:
    case = outcome.case
    found = outcome.found is not None
    return (
        f"{case.fault:<16}{outcome.workload:<9}{case.neighbour_cores:>6.2f}"
        f"{_lost(case):>6}  "
        f"{'yes' if found else 'no':<5} {_seconds(outcome.suspected):>9} "
        f"{_seconds(outcome.found):>7}  {_named(outcome):<11}{_subject(outcome):<8}"
        f"{outcome.false:>5}  {outcome.by}"
    )


def _lost(case: Case) -> str:
    return "" if case.lost is None else f"{100 * case.lost:.0f}"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f} s"


def _named(outcome: Outcome) -> str:
    if outcome.found is None:
        return "-"
    return outcome.subsystem if outcome.subsystem_right else f"({outcome.subsystem})"


def _subject(outcome: Outcome) -> str:
    if outcome.found is None:
        return "-"
    return {None: "nobody", True: "yes", False: "no"}[outcome.subject_right]


def totals(judged: Sequence[Judged]) -> dict[str, Any]:
    """The figures the bench is judged by, for full strength and weak faults apart."""
    outcomes = [outcome for each in judged for outcome in each.outcomes]
    false = [found for each in judged for found in each.false]
    hours = sum(each.healthy_seconds for each in judged) / 3600
    low, high = rate_interval(len(false), hours)
    return {
        "strong": _strength([each for each in outcomes if not each.case.weak]),
        "weak": _strength([each for each in outcomes if each.case.weak]),
        "healthy": {
            "minutes": hours * 60,
            "false": len(false),
            "per_hour": len(false) / hours if hours else 0.0,
            "per_hour_interval": [low, high],
        },
    }


def _strength(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    found = [each for each in outcomes if each.found is not None]
    named = [each for each in found if each.subject_right is not None]
    harmful = [each for each in outcomes if (each.case.lost or 0.0) >= HARM]
    hints = [each.suspected for each in outcomes if each.suspected is not None]
    return {
        "kinds": len({each.case.kind for each in outcomes}),
        "found": _share(len(found), len(outcomes)),
        "harmful_found": _share(sum(each.found is not None for each in harmful), len(harmful)),
        "subsystem_right": _share(sum(each.subsystem_right for each in found), len(found)),
        "subject_right": _share(sum(bool(each.subject_right) for each in named), len(named)),
        "median_suspected_s": middle(hints),
        "median_found_s": middle([each.found for each in found if each.found is not None]),
        "other_findings": sum(len(each.others) for each in found),
    }


def _share(hits: int, of: int) -> dict[str, Any]:
    share = Share(hits, of)
    return {"hits": hits, "of": of, "interval": list(share.interval)}


def lines(sums: dict[str, Any]) -> Iterator[str]:
    """The totals in words."""
    for name, title in (("strong", "full strength"), ("weak", "weak")):
        row = sums[name]
        if not row["found"]["of"]:
            continue
        harmful = row["harmful_found"]
        of_harm = f"of those that cost {HARM:.0%} of the job's pace {_share_text(harmful)}; "
        yield (
            f"{title}: {row['kinds']} kinds, found {_share_text(row['found'])}; "
            f"{of_harm if harmful['of'] else ''}"
            f"subsystem right {_share_text(row['subsystem_right'])}; "
            f"subject right {_share_text(row['subject_right'])}; "
            f"median suspected {_seconds(row['median_suspected_s'])}, "
            f"found {_seconds(row['median_found_s'])} after onset; "
            f"{row['other_findings']} more findings beside the right ones"
        )
    healthy = sums["healthy"]
    low, high = healthy["per_hour_interval"]
    yield (
        f"healthy: {healthy['minutes']:.1f} min, {healthy['false']} false findings, "
        f"{healthy['per_hour']:.1f} an hour (95 %: {low:.1f} to {high:.1f})"
    )


def _share_text(row: dict[str, Any]) -> str:
    return str(Share(row["hits"], row["of"]))


def false_lines(judged: Iterable[Judged]) -> Iterator[str]:
    """Each false finding, with what it claimed."""
    for each in judged:
        for found in each.false:
            when = f"{found.session} at {found.seconds:.0f} s"
            yield f"  false: {when}, {found.subsystem}: {found.claim}"
        for found in each.in_warmup:
            yield f"  in warm-up: {found.session} at {found.seconds:.0f} s: {found.claim}"


def reduced_lines(judged: Iterable[Judged]) -> Iterator[str]:
    """The sessions in which the collector read less than it could: their figures are its own."""
    for each in judged:
        if each.reduced_seconds:
            yield (
                f"  reduced: {each.session}: for {each.reduced_seconds:.0f} of "
                f"{each.recorded_seconds:.0f} s the collector read less than it could; "
                f"{each.session}.log says what"
            )


def beside_line(others: Sequence[Beside]) -> str:
    """The other detector's totals over the same sessions."""
    cases = [each for each in others if each.is_case]
    delays = [each.found for each in cases if each.found is not None]
    right = Share(sum(each.subsystem_right for each in cases), len(delays))
    hours = sum(each.healthy_seconds for each in others) / 3600
    false = sum(each.false for each in others)
    return (
        f"beside: found {Share(len(delays), len(cases))}; subsystem right {right}; "
        f"median found {_seconds(middle(delays))}; "
        f"{false} false in {hours * 60:.1f} min, {false / hours if hours else 0:.1f} an hour"
    )


def write(path: Path, judged: Sequence[Judged], others: Sequence[Beside]) -> None:
    """All figures as JSON, with the machine they were judged on."""
    rows = {
        "machine": host.describe(),
        "totals": totals(judged),
        "cases": [_case(outcome) for each in judged for outcome in each.outcomes],
        "false": [asdict(found) for each in judged for found in each.false],
        "in_warmup": [asdict(found) for each in judged for found in each.in_warmup],
        "sessions": [
            {
                "name": each.session,
                "workload": each.workload,
                "neighbour_cores": each.neighbour_cores,
                "healthy_seconds": each.healthy_seconds,
                "recorded_seconds": each.recorded_seconds,
                "reduced_seconds": each.reduced_seconds,
            }
            for each in judged
        ],
        "beside": [asdict(other) for other in others],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows, indent=1, sort_keys=True) + "\n")


def _case(outcome: Outcome) -> dict[str, Any]:
    case = outcome.case
    return {
        "fault": case.fault,
        "kind": case.kind,
        "weak": case.weak,
        "lost": case.lost,
        "session": outcome.session,
        "workload": outcome.workload,
        "neighbour_cores": case.neighbour_cores,
        "suspected_s": outcome.suspected,
        "found_s": outcome.found,
        "by": outcome.by,
        "claim": outcome.claim,
        "subsystem": outcome.subsystem,
        "subsystems_expected": sorted(case.subsystems),
        "subsystem_right": outcome.found is not None and outcome.subsystem_right,
        "other_findings": outcome.others,
        "subjects": outcome.subjects[:3],
        "subject_expected": case.subject,
        "subject_right": outcome.subject_right if outcome.found is not None else None,
        "false": outcome.false,
    }
